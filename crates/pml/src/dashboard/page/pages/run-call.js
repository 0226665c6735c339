// One call beside the timeline, with its arguments and its result, which are read when it is opened.

import { get } from '../api.js';
import { html, useEffect, useRef, useState } from '../html.js';
import { count, duration, exact } from '../ui/format.js';
import { Value } from '../ui/lines.js';
import { Loading } from '../ui/empty.js';
import { Mark, Status } from '../ui/status.js';
import { Code, Problem, Sentence, Text } from '../ui/text.js';

export function CallPanel({ run, number, call, onClose }) {
  const node = useRef(null);
  const [content, setContent] = useState(null);
  const [problem, setProblem] = useState(null);
  const done = call && call.status !== 'running' && call.status !== 'waiting';
  useEffect(() => {
    const abort = new AbortController();
    get(`/api/runs/${encodeURIComponent(run)}/calls/${number}`, { signal: abort.signal })
      .then(setContent, (error) => { if (!abort.signal.aborted) setProblem(error); });
    return () => abort.abort();
  }, [run, number, done]);
  const keyed = (event) => {
    if (event.key === 'Escape') {
      event.preventDefault();
      onClose();
    }
  };
  return html`<section class="side-panel" aria-label=${`Call ${number}`} tabindex="-1" ref=${node} onKeyDown=${keyed}>
    <header><h2><span class="soft">#${number}</span> ${call ? html`<${Code} text=${call.tool} />` : 'Call'}</h2>
      <button type="button" class="quiet" onClick=${onClose}>Close <kbd>Esc</kbd></button></header>
    ${call && html`<${CallFacts} call=${call} />`}
    <${Problem} error=${problem} />
    ${content === null && !problem && html`<${Loading} />`}
    ${content && html`<${Value} label="Arguments" ...${part(content, 'arguments')} bytes=${call?.argumentBytes} />`}
    ${content?.error && html`<div class="problem"><p><strong><${Text} text=${content.error.code ?? 'Error'} /></strong> <${Sentence} text=${content.error.message} />${content.error.hint && html`<br /><span class="hint"><${Sentence} text=${content.error.hint} /></span>`}</p></div>`}
    ${content?.result !== undefined && html`<${Value} label="Result" ...${part(content, 'result')} bytes=${call?.resultBytes} />`}
    ${content && content.result === undefined && !content.error && html`<p class="soft">There is no result${done ? '' : ' yet'}.</p>`}
  </section>`;
}

/** A value that was cut is the beginning of its JSON text. */
function part(content, name) {
  return { value: content[name], truncated: content.truncated?.[name] === true };
}

function CallFacts({ call }) {
  const facts = [
    ['Status', html`<${Status} status=${call.status} />`],
    ['Time', call.status === 'running' ? 'so far' : duration(call.durationMs)],
    ['Started', exact(call.startedAt)],
    call.parent?.capability && ['Capability', html`<${Code} text=${call.parent.capability} />`],
    call.nodeId && ['Node', html`<${Code} text=${call.nodeId} />`],
    call.retries > 0 && ['Retries', count(call.retries)],
    call.savedMs > 0 && ['Saved', duration(call.savedMs)],
    call.notAhead && ['Not ahead', call.notAhead],
  ].filter(Boolean);
  return html`<dl class="facts">${facts.map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value}</dd>`)}</dl>
    <p class="marks"><${CallMarks} call=${call} /></p>`;
}

/** What is special about a call, in a word each. */
export function CallMarks({ call }) {
  return html`${call.cached && html`<${Mark} kind="info" title="Not called: its result is that of an earlier dry run">cached</${Mark}>`}
    ${call.speculated && html`<${Mark} title="It was made before the program asked for it">ahead</${Mark}>`}
    ${call.mocked && html`<${Mark} kind="warn" title="Its result was made up">mocked</${Mark}>`}
    ${call.retries > 0 && html`<${Mark} kind="warn" title="It was tried again">${count(call.retries)}× retried</${Mark}>`}`;
}
