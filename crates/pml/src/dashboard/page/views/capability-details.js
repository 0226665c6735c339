// What else is known of a capability: what it was used for, its parameters, what was learned of its decisions.

import { html } from '../html.js';
import { href } from '../router.js';
import { count, duration, percent, plural, size } from '../ui/format.js';
import { Code, Text } from '../ui/text.js';
import { Ago } from '../ui/time.js';
import { pathWords } from './path-words.js';

const LIKELY = 'How likely a path is to succeed is careful: it begins at 50 % and each run moves it a tenth of the way, so that three that worked make 64 %.';

export function Details({ capability, definition }) {
  const { intents = [], learning, contains = [], cache } = capability;
  return html`<div class="capability-details">
    <section class="panel"><h2>Used for</h2>
      ${intents.length === 0 ? html`<p class="fine">No intent yet.</p>` : html`<ul class="plain-list">${intents.slice(0, 8).map((intent) => html`<li><${Text} text=${intent.text} /> <span class="soft">× ${count(intent.count)}, <${Ago} at=${intent.lastAt} /></span></li>`)}
        ${intents.length > 8 && html`<li class="soft">and ${count(intents.length - 8)} more</li>`}</ul>`}
    </section>
    <section class="panel"><h2>Parameters</h2><${Parameters} schema=${capability.parametersSchema} /></section>
    ${learning?.paths?.length > 0 && html`<section class="panel"><h2>Learned paths</h2><ul class="plain-list">${usualFirst(learning.paths).slice(0, 6).map((path) => html`
      <li><${Path} words=${pathWords(path.path, definition)} /> <span class="soft">· ${plural(path.count, 'run')}, likely to succeed ${percent(path.successRate)}, ${duration(path.avgDurationMs)}</span></li>`)}</ul>
      <p class="fine">${LIKELY}</p></section>`}
    ${contains.length > 0 && html`<section class="panel"><h2>Calls capabilities</h2><ul class="plain-list">${contains.map((inner) => html`
      <li>${inner.name ? html`<a href=${href('capability', { name: inner.name })}><${Text} text=${inner.name} /></a>` : html`<${Code} text=${inner.id} />`} <span class="soft">× ${count(inner.count)}</span></li>`)}</ul></section>`}
    ${cache?.entries > 0 && html`<section class="panel"><h2>Cached results</h2><p>${plural(cache.entries, 'entry', 'entries')}${Number.isFinite(cache.bytes) && `, ${size(cache.bytes)}`}</p></section>`}
  </div>`;
}

function usualFirst(paths) {
  return paths.toSorted((one, other) => other.count - one.count);
}

function Path({ words }) {
  if (words.length === 0) return html`<span class="soft">nothing called:</span>`;
  return words.map(({ label, times }, index) => html`${index > 0 && ' → '}<${Code} text=${label} />${times > 1 && html` <span class="soft">× ${times}</span>`}`);
}

function Parameters({ schema }) {
  const properties = Object.entries(schema?.properties ?? {});
  if (properties.length === 0) return html`<p class="fine">It takes no arguments.</p>`;
  const required = new Set(schema.required ?? []);
  return html`<ul class="plain-list">${properties.map(([name, property]) => html`<li><${Code} text=${name} /> <span class="soft">${[property?.type].flat().filter(Boolean).join(' or ') || 'any'}${required.has(name) ? '' : ', optional'}</span>
    ${property?.default !== undefined && html` <span class="soft">usually <${Code} text=${JSON.stringify(property.default)} /></span>`}
    ${property?.description && html`<br /><span class="fine"><${Text} text=${property.description} /></span>`}</li>`)}</ul>`;
}
