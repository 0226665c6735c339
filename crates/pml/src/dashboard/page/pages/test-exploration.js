// Ways to serve an intent, each tried, side by side.

import { send } from '../api.js';
import { html, useState } from '../html.js';
import { navigate } from '../navigation.js';
import { href } from '../router.js';
import { confirm } from '../ui/dialog.js';
import { count, percent, plural } from '../ui/format.js';
import { Value } from '../ui/lines.js';
import { Mark, Status } from '../ui/status.js';
import { Code, Problem, Sentence, Text } from '../ui/text.js';
import { Meter } from './discover.js';

export function Exploration({ found }) {
  return html`<section aria-label="Paths">
    <p class="soft summary-line">${plural(found.pathsExplored, 'path')} tried, ${count(found.viablePaths.length)} viable. Run one here, or let an agent run it by its id: <code>${'pml_execute {"explorePath": "…", "confirm": true}'}</code></p>
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
    <p class="fine"><code><${Text} text=${path.pathId} /></code> · ${count(path.realExecutions)} real, ${count(path.mockedExecutions)} made up${path.workedBefore > 0 && ' · chosen before, and it worked'}</p>
    <ol class="steps">${path.outputs.map((output, index) => html`<li key=${index}><${Code} text=${output.tool} /> ${output.mocked && html`<${Mark} kind="warn" title="Its answer was made up">made up</${Mark}>`}
      <code class="preview"><${Text} text=${output.preview} /></code></li>`)}</ol>
    <h4>Running it would</h4>${path.effects?.length > 0 ? html`<ul class="effects">${path.effects.map((effect) => html`<li><${Sentence} text=${effect.text.replace(/^would /, '')} /></li>`)}</ul>` : html`<p class="soft">change nothing</p>`}
    ${path.warnings?.length > 0 && html`<ul class="reasons">${path.warnings.map((warning) => html`<li><${Sentence} text=${warning} /></li>`)}</ul>`}
    ${failing.length > 0 && html`<p class="fine">Failed before: ${failing.map((tool, index) => html`${index > 0 && ', '}<${Code} text=${tool.tool} /> ${count(tool.failures)} of ${count(tool.calls)}`)}</p>`}
    ${path.result !== undefined && html`<${Value} label="Result" value=${path.result} />`}
    <${Run} path=${path} />
  </article>`;
}

/** Runs a path for real, with the values that nobody gave when it was tried. */
function Run({ path }) {
  const [texts, setTexts] = useState({});
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const missing = path.missing ?? [];
  const run = async () => {
    const sure = await confirm({ title: 'Run it for real?', text: `${path.path.join(' → ')}\nCalls that need your approval wait in the inbox.`, yes: 'Run' });
    if (!sure) return;
    setBusy(true);
    setProblem(null);
    try {
      const args = Object.fromEntries(missing.map((name) => [name, valueOf(texts[name])]));
      navigate(href('run', { id: (await send('POST', '/api/execute', { explorePath: path.pathId, confirm: true, args })).run }));
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  };
  return html`${missing.map((name) => html`<label key=${name} class="field"><${Text} text=${name} /> <input type="text" placeholder="text, or JSON" value=${texts[name] ?? ''} onInput=${(event) => setTexts({ ...texts, [name]: event.currentTarget.value })} /></label>`)}
    <div class="actions"><button type="button" disabled=${busy || missing.some((name) => !texts[name])} onClick=${run}>Run for real…</button></div>
    <${Problem} error=${problem} />`;
}

function valueOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function Failed({ path }) {
  return html`<article class="panel stack failed-path">
    <h3><${Status} status="failed" label="fails" /></h3>
    <ol class="steps">${path.path.map((tool, index) => html`<li key=${index}><${Code} text=${tool} /> ${tool === path.failurePoint && html`<${Mark} kind="bad">fails here</${Mark}>`}</li>`)}</ol>
    <p class="fails-text"><${Sentence} text=${path.error} /></p>
  </article>`;
}
