// What came of calls that were made before their programs asked for them, by tool.

import { html } from '../html.js';
import { href } from '../router.js';
import { count, duration, percent } from '../ui/format.js';
import { Code } from '../ui/text.js';
import { aheadTotals } from './savings-chart.js';

export function Ahead({ tools }) {
  if (tools.length === 0) {
    return html`<section class="panel ahead"><h2>Calls made ahead</h2><p class="fine">None so far. While a program computes, PML makes the reads that it will ask for next, if earlier runs or its text make them likely.</p></section>`;
  }
  const all = aheadTotals(tools);
  const rows = tools.toSorted((one, other) => other.savedMs - one.savedMs || other.hits - one.hits);
  return html`<section class="panel ahead"><h2>Calls made ahead, since the beginning</h2>
    <p>${percent(all.used)} of ${count(all.made)} were used, which saved ${duration(all.savedMs)}. ${count(all.wasted)} were made for nothing.</p>
    <div class="scroll"><table class="plain"><thead><tr><th scope="col">Tool or capability</th><th scope="col" class="num" title="Results that programs asked for and got">Used</th><th scope="col" class="num" title="Results that programs asked for and that could not be used">Not usable</th>
      <th scope="col" class="num" title="Results that no program asked for">For nothing</th><th scope="col" class="num" title="Results that differed from those of the same calls made later; such a tool is called ahead less">Different</th><th scope="col" class="num">Saved</th><th scope="col" class="num" title="How likely a call must be so that it is made ahead">Made from</th></tr></thead>
      <tbody>${rows.map((tool) => html`<tr key=${tool.tool}><th scope="row">${tool.name ? html`<a href=${href('capability', { name: tool.name })}><${Code} text=${tool.name} /></a>` : html`<${Code} text=${tool.tool} />`}</th>
        <td class="num">${count(tool.hits)}</td><td class="num">${count(tool.misses)}</td><td class="num">${count(tool.wasted)}</td><td class="num">${count(tool.differing)}</td><td class="num">${duration(tool.savedMs)}</td>
        <td class="num">${Number.isFinite(tool.threshold) ? percent(tool.threshold) : '–'}</td></tr>`)}</tbody></table></div></section>`;
}
