// The playground of discovery: type an intent, see what is found and why, and what would run.

import { get, send } from '../api.js';
import { html, useEffect, useRef, useState } from '../html.js';
import { offered, setQuery } from '../navigation.js';
import { href } from '../router.js';
import { Empty, PageHead } from '../ui/empty.js';
import { count, percent, plural } from '../ui/format.js';
import { Value } from '../ui/lines.js';
import { Mark } from '../ui/status.js';
import { Code, Problem, Sentence, Text } from '../ui/text.js';
import { Ago } from '../ui/time.js';

const PAUSE_MS = 450;
const LIMIT = 20;
const EXAMPLES = ['convert a CSV file to JSON', 'find files that changed this week', 'send a message to the team'];

/** Intents of agents that are offered to begin with. */
const OFFERED = 12;

export const title = 'Discover';

/** What agents asked for lately; it is only something to begin with, so that the page does without. */
export async function load({ query, signal }) {
  if (query.get('q')) return { intents: [] };
  const { capabilities } = await get('/api/capabilities?recent=true&limit=30', { signal });
  const intents = capabilities.flatMap((capability) => capability.intents.map((intent) => ({ ...intent, capability: capability.name })));
  return { intents: intents.sort((one, other) => other.lastAt - one.lastAt).slice(0, OFFERED) };
}

export function view({ query, data }) {
  const wanted = query.get('q') ?? '';
  const [text, setText] = useState(wanted);
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const timer = useRef(0);
  const sent = useRef('');
  useEffect(() => {
    if (wanted !== sent.current) setText(wanted);
    sent.current = wanted;
    if (!wanted) {
      setFound(null);
      return undefined;
    }
    const abort = new AbortController();
    setBusy(true);
    setProblem(null);
    send('POST', '/api/discover', { intent: wanted, limit: LIMIT }, { signal: abort.signal })
      .then(setFound, (error) => { if (!abort.signal.aborted) setProblem(error); })
      .finally(() => { if (!abort.signal.aborted) setBusy(false); });
    return () => abort.abort();
  }, [wanted]);
  const ask = (next) => {
    clearTimeout(timer.current);
    sent.current = next;
    setQuery({ q: next });
  };
  const typed = (event) => {
    const next = event.currentTarget.value;
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => ask(next.trim()), PAUSE_MS);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  return html`<${PageHead} title="Discover" note="What an agent finds for an intent, and why." />
    <form class="toolbar" role="search" onSubmit=${(event) => { event.preventDefault(); ask(text.trim()); }}>
      <input class="filter wide" type="search" data-filter aria-label="Intent" placeholder="What do you want to do?" value=${text} onInput=${typed} autocomplete="off" autofocus=${!wanted} />
      <button type="submit" class="primary">Discover</button>
      <span class="fine" role="status">${busy ? 'Looking…' : found && wanted ? plural(found.total ?? found.results.length, 'result') : ''}</span>
    </form>
    <${Problem} error=${problem} />
    ${!wanted && html`<${Beginning} intents=${data.intents} onAsk=${(intent) => { setText(intent); ask(intent); }} />`}
    ${wanted && found && html`<div class=${busy ? 'discovery stale' : 'discovery'}>
      <${Ranking} found=${found} />
      <aside class="stack"><${WouldRun} would=${found.wouldRun} /><${Suggestion} suggestion=${found.suggestion} /></aside>
    </div>`}`;
}

function Beginning({ intents, onAsk }) {
  return html`<div class="discovery">
    <section class="panel"><h2>Type an intent</h2><p class="soft">You see what an agent would find for it: the ranking with its reasons, the DAG that would be suggested, and the capability that would run with what keeps it from running. Nothing is run.</p>
      <h4>For instance</h4><p class="actions">${EXAMPLES.map((example) => html`<button type="button" onClick=${() => onAsk(example)}>${example}</button>`)}</p></section>
    <section class="panel"><h2>What agents asked for lately</h2>
      ${intents.length === 0 ? html`<p class="fine">Nothing yet. What an agent says with <code>pml_execute</code> is kept beside the capability that served it.</p>`
        : html`<ul class="plain-list">${intents.map((intent) => html`<li><button type="button" class="link" onClick=${() => onAsk(intent.text)}><${Text} text=${intent.text} /></button> <span class="fine"><${Ago} at=${intent.lastAt} />, served by <${Code} text=${intent.capability} /></span></li>`)}</ul>`}</section>
  </div>`;
}

function Ranking({ found }) {
  if (found.results.length === 0) {
    return html`<${Empty} title="Nothing fits">${(found.notes?.length ? found.notes : ['Try other words, or connect a server that can do it.']).map((note) => html`<p><${Sentence} text=${note} /></p>`)}</${Empty}>`;
  }
  return html`<section aria-label="Ranking"><ol class="ranking">${found.results.map((result, index) => html`<${Result} key=${`${result.type} ${result.id}`} result=${result} place=${index + 1} />`)}</ol>
    ${found.suggestions?.length > 0 && html`<h4>See also</h4><ul class="plain-list">${found.suggestions.map((one) => html`<li key=${one.id ?? one.toolId}><${Related} one=${one} /></li>`)}</ul>`}
    ${found.notes?.length > 0 && html`<ul class="fine notes-list">${found.notes.map((note) => html`<li><${Sentence} text=${note} /></li>`)}</ul>`}</section>`;
}

const RELATED_AS = { capability: 'capability', tool: 'tool', next_tool: 'comes next' };

function Related({ one }) {
  const name = html`<${Code} text=${one.name} />`;
  const linked = one.type === 'capability' && offered.has('capability') ? html`<a href=${href('capability', { name: one.id })}>${name}</a>` : name;
  return html`${linked} <span class="fine">${RELATED_AS[one.type] ?? one.type}: <${Sentence} text=${one.reason} /></span>`;
}

function Result({ result, place }) {
  const name = html`<${Code} text=${result.type === 'capability' ? result.name : result.id} />`;
  const linked = result.type === 'capability' && offered.has('capability') ? html`<a href=${href('capability', { name: result.id })}>${name}</a>` : name;
  return html`<li class="result">
    <span class="place">${place}</span>
    <div class="result-body">
      <div class="result-head"><strong>${linked}</strong> <${Mark} kind=${result.type === 'capability' ? 'info' : ''}>${result.type === 'capability' ? 'capability' : 'tool'}</${Mark}>
        ${Number.isFinite(result.usageCount) && html`<span class="fine">${plural(result.usageCount, 'use')}${Number.isFinite(result.successRate) ? `, ${percent(result.successRate)} succeeded` : ''}</span>`}
        <span class="score" title="The probability that it serves the intent"><${Meter} share=${result.score} /> ${result.score.toFixed(2)}</span></div>
      <p><${Text} text=${result.description} /></p>
      ${result.reasons?.length > 0 && html`<ul class="reasons">${result.reasons.map((reason) => html`<li><${Sentence} text=${reason} /></li>`)}</ul>`}
      ${result.also?.length > 0 && html`<p class="fine">The same tool: ${result.also.map((id, at) => html`${at > 0 ? ', ' : ''}<${Code} text=${id} />`)}</p>`}
      <details><summary>How it is called</summary><pre class="value"><${Text} text=${result.signature} breaks="plain" /></pre></details>
    </div>
  </li>`;
}

/** A share 0..1 as a small bar; the number stands beside it. */
export function Meter({ share }) {
  return html`<span class="meter" aria-hidden="true"><i style=${{ width: `${Math.max(0, Math.min(1, share)) * 100}%` }}></i></span>`;
}

function WouldRun({ would }) {
  return html`<section class="panel"><h2>What would run</h2>
    ${!would ? html`<p class="soft">No capability serves this intent yet. The agent would write a program; its run teaches one.</p>` : html`
      <p class="actions"><strong>${offered.has('capability') ? html`<a href=${href('capability', { name: would.capability.name })}><${Code} text=${would.capability.name} /></a>` : html`<${Code} text=${would.capability.name} />`}</strong>
        ${would.ready ? html`<${Mark} kind="ok">runs without a question</${Mark}>` : html`<${Mark} kind="warn">does not run by itself</${Mark}>`}</p>
      ${would.reasons?.length > 0 && html`<ul class="reasons">${would.reasons.map((reason) => html`<li><${Sentence} text=${reason} /></li>`)}</ul>`}
      <${Value} label="Arguments" value=${would.arguments ?? {}} />
      <p><a class="button" href=${href('test', {}, { capability: would.capability.name, args: JSON.stringify(would.arguments ?? {}) })}>Test it</a></p>`}
  </section>`;
}

function Suggestion({ suggestion }) {
  const document = suggestion?.dagStructure;
  const tasks = document?.tasks ?? [];
  return html`<section class="panel"><h2>Suggested DAG</h2>
    ${!suggestion ? html`<p class="soft">Nothing is suggested: the tools that fit are not known to work together.</p>` : html`
      ${Number.isFinite(suggestion.confidence) && html`<p class="score-line"><${Meter} share=${suggestion.confidence} /> ${percent(suggestion.confidence)} sure</p>`}
      ${suggestion.rationale && html`<p class="soft"><${Sentence} text=${suggestion.rationale} /></p>`}
      ${suggestion.warning && html`<p class="notice"><${Sentence} text=${suggestion.warning} /></p>`}
      <ol class="steps">${tasks.map((task) => html`<li key=${task.id}><${Code} text=${task.tool ?? task.id} />
        ${task.dependsOn?.length > 0 && html`<span class="fine">after <${Text} text=${task.dependsOn.join(', ')} /></span>`}</li>`)}</ol>
      ${suggestion.missing?.length > 0 && html`<h4>Missing</h4><ul class="reasons">${suggestion.missing.map((missing) => html`<li><${Code} text=${missing.name} /> of <${Code} text=${missing.task} /></li>`)}</ul>`}
      <details><summary>The document</summary><${Value} label="DAG" value=${document} /></details>`}
  </section>`;
}
