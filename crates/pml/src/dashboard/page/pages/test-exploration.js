// Ways to serve an intent, each tried, side by side.

import { html } from '../html.js';
import { count, percent, plural } from '../ui/format.js';
import { Value } from '../ui/lines.js';
import { Mark, Status } from '../ui/status.js';
import { Code, Sentence, Text } from '../ui/text.js';
import { Meter } from './discover.js';

export function Exploration({ found }) {
  return html`<section aria-label="Paths">
    <p class="soft summary-line">${plural(found.pathsExplored, 'path')} tried, ${count(found.viablePaths.length)} viable. An agent runs one with its id: <code>${'pml_execute {"explorePath": "…", "confirm": true}'}</code></p>
    ${found.warnings?.map((warning) => html`<p class="notice"><${Sentence} text=${warning} /></p>`)}
    <div class="side-by-side">
      ${found.viablePaths.map((path, index) => html`<${Viable} key=${path.pathId} path=${path} place=${index + 1} />`)}
      ${found.failedPaths.map((path, index) => html`<${Failed} key=${index} path=${path} />`)}
    </div>
  </section>`;
}

function Viable({ path, place }) {
  const failing = (path.history ?? []).filter((tool) => tool.failures > 0);
  return html`<article class="panel stack">
    <h3>${place}. <span class="score-line"><${Meter} share=${path.confidence} /> ${percent(path.confidence)} sure</span></h3>
    <p class="fine"><code><${Text} text=${path.pathId} /></code> · ${count(path.realExecutions)} real, ${count(path.mockedExecutions)} made up</p>
    <ol class="steps">${path.outputs.map((output, index) => html`<li key=${index}><${Code} text=${output.tool} /> ${output.mocked && html`<${Mark} kind="warn" title="Its answer was made up">made up</${Mark}>`}
      <code class="preview"><${Text} text=${output.preview} /></code></li>`)}</ol>
    <h4>Running it would</h4>${path.effects?.length > 0 ? html`<ul class="effects">${path.effects.map((effect) => html`<li><${Sentence} text=${effect.text.replace(/^would /, '')} /></li>`)}</ul>` : html`<p class="soft">change nothing</p>`}
    ${path.warnings?.length > 0 && html`<ul class="reasons">${path.warnings.map((warning) => html`<li><${Sentence} text=${warning} /></li>`)}</ul>`}
    ${failing.length > 0 && html`<p class="fine">Failed before: ${failing.map((tool, index) => html`${index > 0 && ', '}<${Code} text=${tool.tool} /> ${count(tool.failures)} of ${count(tool.calls)}`)}</p>`}
    ${path.result !== undefined && html`<${Value} label="Result" value=${path.result} />`}
  </article>`;
}

function Failed({ path }) {
  return html`<article class="panel stack failed-path">
    <h3><${Status} status="failed" label="fails" /></h3>
    <ol class="steps">${path.path.map((tool, index) => html`<li key=${index}><${Code} text=${tool} /> ${tool === path.failurePoint && html`<${Mark} kind="bad">fails here</${Mark}>`}</li>`)}</ol>
    <p class="fails-text"><${Sentence} text=${path.error} /></p>
  </article>`;
}
