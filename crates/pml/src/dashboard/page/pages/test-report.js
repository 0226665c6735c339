// The report of a dry run: what would change, the calls on a timeline, and what depends on made-up values.

import { html, useMemo, useState } from '../html.js';
import { Lines, Value } from '../ui/lines.js';
import { count, duration, plural } from '../ui/format.js';
import { Mark, Status } from '../ui/status.js';
import { Code, Problem, Sentence, Text } from '../ui/text.js';
import { reportCalls } from './test-calls.js';
import { Timeline } from './run-timeline.js';

export function Report({ report }) {
  const [selected, setSelected] = useState(null);
  const { run, calls } = useMemo(() => reportCalls(report), [report]);
  const chosen = report.capturedCalls.find((call) => call.call === selected);
  const cost = report.estimatedCost?.amounts?.map(({ amount, currency }) => `${amount} ${currency}`).join(' + ');
  return html`<section class="stack report" aria-label="Report">
    <dl class="fact-line"><div><dt>Outcome</dt><dd><${Status} status=${report.status} /></dd></div>
      <div><dt>Took</dt><dd>${duration(report.executionTimeMs)}</dd></div>
      <div><dt>Calls</dt><dd>${count(calls.length)}, ${count(calls.filter((call) => !call.mocked).length)} real</dd></div>
      ${cost && html`<div><dt>A real run costs</dt><dd><${Text} text=${cost} />${report.estimatedCost.unpricedCalls > 0 ? `, ${plural(report.estimatedCost.unpricedCalls, 'call')} without a price` : ''}</dd></div>`}</dl>
    ${report.error && html`<${Problem} error=${report.error} />`}
    <div class="panel"><h2>A real run would</h2>
      ${report.effects.length === 0 ? html`<p class="soft">change nothing.</p>` : html`<ul class="effects">${report.effects.map((effect) => html`<li>
        <${Sentence} text=${effect.text.replace(/^would /, '')} />${effect.calls > 1 ? ` (${plural(effect.calls, 'call')})` : ''}
        ${effect.tainted && html` <${Mark} kind="warn" title="What is changed depends on values that were made up">uncertain</${Mark}>`}</li>`)}</ul>`}
      ${report.warnings.length > 0 && html`<h4>Uncertain</h4><ul class="reasons">${report.warnings.map((warning) => html`<li><${Sentence} text=${warning.message} /></li>`)}</ul>`}</div>
    <div class="report-timeline"><${Timeline} run=${run} calls=${calls} complete selected=${selected} onSelect=${setSelected} fill=${false} /></div>
    ${chosen && html`<${CapturedCall} call=${chosen} onClose=${() => setSelected(null)} />`}
    <${Branches} branches=${report.branches} />
    ${report.paths?.length > 0 && html`<${Paths} paths=${report.paths} />`}
    ${report.result !== undefined && html`<${Value} label="It would return" value=${report.result} />`}
    ${report.console?.length > 0 && html`<div><h4>Console</h4><${Lines} label="Console" lines=${report.console.map((line) => line.text)} /></div>`}
  </section>`;
}

const ORIGINS = {
  real: 'the tool answered', given: 'your mock answered', overlay: 'from what the dry run wrote', recorded: 'an earlier result', connector: 'made up for the service', schema: 'made up from its schema',
  placeholder: 'made up: nothing is known of its result',
};

function CapturedCall({ call, onClose }) {
  const keyed = (event) => {
    if (event.key === 'Escape') onClose();
  };
  const answer = call.response ?? call.mockResponse;
  return html`<section class="panel stack" aria-label=${`Call ${call.call}`} onKeyDown=${keyed}>
    <div class="actions"><h2><span class="soft">#${call.call}</span> <${Code} text=${`${call.server}:${call.tool}`} /></h2><span class="fine">${ORIGINS[call.origin] ?? html`<${Text} text=${call.origin} />`}${call.line ? `, line ${call.line}` : ''}</span>
      ${call.unknownState && html`<${Mark} kind="warn" title="The answer depends on earlier calls in a way that is not known">unknown state</${Mark}>`}
      <button type="button" class="quiet push" onClick=${onClose}>Close</button></div>
    <div class="columns two"><${Value} label="Arguments" value=${call.args} />
      ${call.error ? html`<${Problem} error=${call.error} />` : answer !== undefined && html`<${Value} label="Answer" value=${answer} />`}</div>
  </section>`;
}

function Branches({ branches }) {
  const all = [...branches.covered.map((branch) => [branch, true]), ...branches.uncovered.map((branch) => [branch, false])];
  if (all.length === 0) return null;
  all.sort(([one], [other]) => one.line - other.line);
  return html`<div class="panel"><h2>Branches <span class="fine">${count(branches.covered.length)} taken, ${count(branches.uncovered.length)} not</span></h2>
    <ul class="branches">${all.map(([branch, taken]) => html`<li><${Mark} kind=${taken ? 'ok' : ''}>${taken ? 'taken' : 'not taken'}</${Mark}> <span class="soft">${branch.capability && html`<${Code} text=${branch.capability} />, `}line ${branch.line}</span> <code><${Text} text=${branch.condition} /></code> → <strong><${Text} text=${branch.outcome} /></strong>${branch.reachedBy && html` <span class="fine"><${Sentence} text=${branch.reachedBy} /></span>`}</li>`)}</ul></div>`;
}

function Paths({ paths }) {
  return html`<div><h2 class="section">Paths side by side</h2><div class="side-by-side">${paths.map((path, index) => html`<article class="panel stack" key=${index}>
    <h3>Path ${index + 1} <${Status} status=${path.status} /></h3>
    ${path.because.length > 0 ? html`<ul class="reasons">${path.because.map((reason) => html`<li><${Sentence} text=${reason} /></li>`)}</ul>` : html`<p class="soft">as it was run</p>`}
    <h4>It would</h4>${path.effects.length === 0 ? html`<p class="soft">change nothing</p>` : html`<ul class="effects">${path.effects.map((effect) => html`<li><${Sentence} text=${effect.replace(/^would /, '')} /></li>`)}</ul>`}
  </article>`)}</div></div>`;
}
