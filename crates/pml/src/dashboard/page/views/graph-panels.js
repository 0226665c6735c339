// Beside the map: one node with its neighbours and schemas, and the ways between two nodes.

import { html } from '../html.js';
import { href } from '../router.js';
import { count, plural } from '../ui/format.js';
import { Mark } from '../ui/status.js';
import { Code, Sentence, Text, plain } from '../ui/text.js';

export function NodePanel({ node, waysFrom, onSelect, onClose, onFrom, onTo }) {
  const [out, into] = ['out', 'in'].map((direction) => node.neighbours.filter((one) => one.direction === direction));
  return html`<section class="panel node-panel" aria-label=${`Node ${plain(node.label)}`}>
    <header><h2><${Code} text=${node.label} /></h2> <span class="soft">${node.kind}</span><button type="button" class="quiet push" onClick=${onClose}>Close</button></header>
    ${node.description && html`<p><${Text} text=${node.description} breaks="plain" /></p>`}
    <p class="actions">
      ${node.kind === 'capability' && html`<a class="button" href=${href('capability', { name: node.label })}>Open the capability</a>`}
      <button type="button" onClick=${onFrom}>Ways from here…</button>
      ${waysFrom && waysFrom !== node.id && html`<button type="button" class="primary" onClick=${onTo}>Ways to here</button>`}
    </p>
    <${Neighbours} title="Leads to" list=${out} onSelect=${onSelect} />
    <${Neighbours} title="Comes from" list=${into} onSelect=${onSelect} />
    ${node.further > 0 && html`<p class="fine">and ${count(node.further)} more with weaker relations</p>`}
    ${node.neighbours.length === 0 && html`<p class="fine">Nothing is known of what it goes with.</p>`}
    <${Schema} title="Takes" schema=${node.inputSchema} />
    <${Schema} title=${node.outputObserved ? 'Gives (as observed)' : 'Gives'} schema=${node.outputSchema} />
  </section>`;
}

function Neighbours({ title, list, onSelect }) {
  if (list.length === 0) return null;
  return html`<h3>${title} <span class="soft">${list.length}</span></h3>
    <ul class="plain-list neighbours scroll">${list.map((one) => html`<li>
      <button type="button" class="link" onClick=${() => onSelect(one.id)}><${Text} text=${one.label} /></button> <${Mark} kind=${one.edge.source === 'observed' ? 'info' : ''}>${one.edge.type}</${Mark}>
      <p class="fine"><${Sentence} text=${one.reason} /></p></li>`)}</ul>`;
}

export function WaysPanel({ from, to, ways, onSelect, onSwap, onClose }) {
  return html`<section class="panel ways-panel" aria-label="Ways">
    <header><h2>Ways</h2><button type="button" class="quiet push" onClick=${onClose}>Close</button></header>
    ${!to && html`<p>From <${Code} text=${from} /> to: select another node on the map, in the search or among the neighbours, then <em>Ways to here</em>.</p>`}
    ${ways && html`<p>From <${Code} text=${ways.from.label} /> to <${Code} text=${ways.to.label} /> <button type="button" class="link" onClick=${onSwap}>the other way round</button></p>
      ${ways.ways.length === 0
        ? html`<p class="fine">No way is known.</p>`
        : html`<ol class="graph-ways">${ways.ways.map((way) => html`<li><${Way} way=${way} labels=${ways.labels} onSelect=${onSelect} /></li>`)}</ol>`}
      <div class="two-schemas"><${Schema} title=${html`<${Code} text=${ways.from.label} /> gives`} schema=${ways.from.outputSchema} open />
      <${Schema} title=${html`<${Code} text=${ways.to.label} /> takes`} schema=${ways.to.inputSchema} open /></div>
      <${Schema} title=${html`<${Code} text=${ways.from.label} /> takes`} schema=${ways.from.inputSchema} />
      <${Schema} title=${html`<${Code} text=${ways.to.label} /> gives`} schema=${ways.to.outputSchema} />`}
  </section>`;
}

function Way({ way, labels, onSelect }) {
  return html`<span class="way">${way.through.map((id, index) => html`${index > 0 && html` <span class="soft" title=${plain(way.edges[index - 1]?.type)}>→</span> `}<button type="button" class="link" onClick=${() => onSelect(id)}><${Text} text=${labels[id] ?? id} /></button>`)}</span>
    <ul class="plain-list fine">${way.edges.map((edge) => html`<li><${Mark}>${edge.type}</${Mark}> ${how(edge)}</li>`)}</ul>`;
}

/** How one step hands over to the next. */
function how(edge) {
  const first = edge.mapping?.[0];
  const runs = edge.count > 0 ? `in ${plural(edge.count, 'run')}` : 'not seen in runs yet';
  if (!first) return runs;
  return html`<code><${Text} text=${first.from || 'its result'} /></code> becomes <code><${Text} text=${first.to} /></code>, ${runs}`;
}

/** A JSON Schema, folded away. */
export function Schema({ title, schema, open = false }) {
  if (!schema) return html`<p class="fine">${title}: nothing is declared or was observed.</p>`;
  return html`<details class="schema" open=${open}><summary>${title}</summary><pre class="code" tabindex="0"><${Text} text=${JSON.stringify(schema, null, 2)} breaks="plain" /></pre></details>`;
}
