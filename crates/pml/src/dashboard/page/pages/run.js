// One run: its calls as a tree on an axis of time, and all that it said, decided and asked.

import { get, send } from '../api.js';
import { subscribe } from '../events.js';
import { html, useEffect, useMemo, useRef, useState } from '../html.js';
import { offered, setQuery } from '../navigation.js';
import { href } from '../router.js';
import { confirm } from '../ui/dialog.js';
import { Empty } from '../ui/empty.js';
import { Tabs } from '../ui/filter.js';
import { clock, count, duration, exact, plural } from '../ui/format.js';
import { Lines, Value } from '../ui/lines.js';
import { linesOf } from '../ui/pretty.js';
import { Mark, Status } from '../ui/status.js';
import { useMedia } from '../ui/table.js';
import { Code, Problem, Sentence, Text } from '../ui/text.js';
import { Ago, useTick } from '../ui/time.js';
import { CallPanel } from './run-call.js';
import { LIVE } from './run-list.js';
import { callsAfter, readFrom, withAttempts, withPage } from './run-live.js';
import { Timeline } from './run-timeline.js';

const CALLS_PER_PAGE = 2000;
const REFRESH_MS = 800;

export const title = ({ data }) => data?.run.intent || 'Run';

const base = (id) => `/api/runs/${encodeURIComponent(id)}`;

export async function load({ params, signal }) {
  const [run, calls] = await Promise.all([get(base(params.id), { signal }), get(`${base(params.id)}/calls?limit=${CALLS_PER_PAGE}`, { signal })]);
  return { run, calls };
}

export function view({ params, query, data }) {
  const { run, calls: made, problem, complete, refresh } = useRun(params.id, data);
  const calls = useMemo(() => (run.language === 'json' ? withAttempts(made) : made), [made, run.language]);
  const tab = query.get('tab') ?? 'timeline';
  const selected = query.get('call') ? Number(query.get('call')) : null;
  const narrow = useMedia('(max-width: 64rem)');
  const close = () => {
    setQuery({ call: '' });
    document.querySelector('.table .trow[tabindex="0"]')?.focus();
  };
  const tabs = [
    ['timeline', 'Calls', run.calls || calls.length],
    ['program', run.language === 'json' ? 'DAG' : 'Program'],
    ['values', 'Arguments and result'],
    ['decisions', 'Decisions', run.decisions?.length ?? 0],
    ['questions', 'Questions', run.questions?.length ?? 0],
    ['console', 'Console', run.console?.length ?? 0],
  ];
  const known = tabs.some(([key]) => key === tab) ? tab : 'timeline';
  return html`<${Head} run=${run} onChange=${refresh} />
    <${Problem} error=${problem} />
    <${RunNotes} run=${run} />
    <${Tabs} label="Parts of this run" value=${known} tabs=${tabs} onChange=${(next) => setQuery({ tab: next === 'timeline' ? '' : next })} />
    <div class="run-part" role="tabpanel" aria-label=${tabs.find(([key]) => key === known)[1]}>
      ${known === 'timeline' && html`<div class=${`split ${selected === null ? '' : 'both'}`}>
        ${(!narrow || selected === null) && html`<${Timeline} run=${run} calls=${calls} complete=${complete} selected=${selected} onSelect=${(call) => setQuery({ call })} />`}
        ${selected !== null && html`<${CallPanel} key=${selected} run=${run.id} number=${selected} call=${calls.find((call) => call.call === selected)} onClose=${close} />`}
      </div>`}
      ${known === 'program' && html`<${Program} run=${run} line=${Number(query.get('line') ?? 0)} />`}
      ${known === 'values' && html`<${Values} run=${run} />`}
      ${known === 'decisions' && html`<${Decisions} run=${run} />`}
      ${known === 'questions' && html`<${Questions} run=${run} />`}
      ${known === 'console' && html`<${Console} run=${run} />`}
    </div>`;
}

/**
 * The run and its calls, kept up to date. Events are applied once a frame; what they leave out is read a moment later. Whatever was
 * missed, reading begins again at the first call whose end was not read, and goes on to the last one.
 */
function useRun(id, data) {
  const [state, setState] = useState({ run: data.run, calls: data.calls.items, complete: data.calls.nextCursor === undefined });
  const [problem, setProblem] = useState(null);
  const again = useRef(() => {});
  useEffect(() => {
    const abort = new AbortController();
    const { signal } = abort;
    let calls = data.calls.items;
    let readTo = calls.at(-1)?.call ?? 0;
    let [timer, frame, reading, stale] = [null, null, null, false];
    let heard = [];
    const show = (more = {}) => {
      calls = callsAfter(calls, heard);
      heard = [];
      const shown = calls;
      setState((known) => (known.calls === shown && Object.keys(more).length === 0 ? known : { ...known, ...more, calls: shown }));
    };
    const read = async () => {
      const run = await get(base(id), { signal });
      for (let after = readFrom(calls, 0, readTo), page; !page || page.nextCursor !== undefined; after = readFrom(calls, after, readTo)) {
        page = await get(`${base(id)}/calls?limit=${CALLS_PER_PAGE}&cursor=${after}`, { signal });
        calls = withPage(callsAfter(calls, heard), page.items);
        heard = [];
        after = page.items.at(-1)?.call ?? after;
        readTo = Math.max(readTo, after);
        show({ run, complete: page.nextCursor === undefined });
      }
    };
    const refresh = async () => {
      clearTimeout(timer);
      timer = null;
      if (reading) {
        stale = true;
        return reading;
      }
      stale = false;
      reading = read().then(() => setProblem(null), (error) => { if (!signal.aborted) setProblem(error); });
      await reading;
      reading = null;
      if (stale && !signal.aborted) soon();
      return undefined;
    };
    const soon = () => { timer ??= setTimeout(refresh, REFRESH_MS); };
    again.current = refresh;
    const stop = subscribe({
      '*': (event, name) => {
        if (event.run !== id) return;
        heard.push([name, event]);
        // A hidden tab has no frames; reading applies what was heard.
        frame ??= requestAnimationFrame(() => {
          frame = null;
          show();
        });
        soon();
      },
      reset: soon,
    });
    if (data.calls.nextCursor !== undefined) refresh();
    // What happened between the first reading and now was told to nobody.
    else if (LIVE.has(data.run.status)) soon();
    return () => {
      abort.abort();
      clearTimeout(timer);
      cancelAnimationFrame(frame);
      stop();
    };
  }, [id]);
  return { ...state, problem, refresh: () => again.current() };
}

function Head({ run, onChange }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const abort = async () => {
    const sure = await confirm({ title: 'Abort this run?', text: `${run.intent}\nCalls that were sent may still take effect.`, yes: 'Abort the run', danger: true });
    if (!sure) return;
    setBusy(true);
    setProblem(null);
    try {
      await send('POST', `${base(run.id)}/abort`);
      await onChange();
    } catch (error) {
      if (error.code !== 'SIGN_IN_CANCELLED') setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  return html`<header class="page-head run-head">
    <div class="page-title"><p class="crumb"><a href="/runs">Runs</a> / <code>${run.id}</code></p><h1><${Text} text=${run.intent || 'Run without an intent'} /></h1></div>
    <div class="page-actions">
      ${run.status === 'waiting' && html`<a class="button primary" href=${`/inbox#${encodeURIComponent(run.id)}`}>Answer in the inbox</a>`}
      ${run.capability && offered.has('test') && html`<a class="button" href=${href('test', {}, { capability: run.capability.name })}>Test</a>`}
      ${LIVE.has(run.status) && html`<button type="button" class="danger" disabled=${busy} onClick=${abort}>Abort…</button>`}
    </div>
    <${Facts} run=${run} />
    <${Problem} error=${problem} />
  </header>`;
}

function Facts({ run }) {
  const running = run.status === 'running' && !run.endedAt;
  const now = useTick(running);
  const facts = [
    ['Status', html`<${Status} status=${run.status} />`],
    ['Time', duration(running ? now - run.startedAt : run.durationMs)],
    ['Calls', html`${count(run.calls)}${run.failedCalls > 0 && html` <${Mark} kind="bad">${count(run.failedCalls)} failed</${Mark}>`}`],
    run.speculated > 0 && ['Ahead', html`<span title="Calls made before the program asked for them">${count(run.speculated)}</span>`],
    run.capability && ['Capability', offered.has('capability') ? html`<a href=${href('capability', { name: run.capability.name })}><${Text} text=${run.capability.name} /></a>` : html`<${Text} text=${run.capability.name} />`],
    ['Client', html`<${Text} text=${run.client ?? run.session} />`],
    ['Started', html`<span title=${exact(run.startedAt)}><${Ago} at=${run.startedAt} /></span>`],
  ].filter(Boolean);
  return html`<dl class="fact-line">${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

function RunNotes({ run }) {
  const failure = run.failure ?? run.error;
  return html`${failure && html`<div class="problem" role="status"><p><strong><${Text} text=${failure.code} /></strong> <${Sentence} text=${failure.message} />
      ${failure.line > 0 && html` <button type="button" class="link" onClick=${() => setQuery({ tab: 'program', line: failure.line })}>line ${failure.line}</button>`}
      ${failure.hint && html`<br /><span class="hint"><${Sentence} text=${failure.hint} /></span>`}</p></div>`}
    ${run.question && html`<p class="notice" role="status">It waits: <${Sentence} text=${run.question.summary} /></p>`}
    ${run.warnings?.length > 0 && html`<details class="notes"><summary>${plural(run.warnings.length, 'warning')}</summary>
      <ul>${run.warnings.map((warning) => html`<li><${Sentence} text=${warning} /></li>`)}</ul></details>`}`;
}

function Program({ run, line }) {
  const lines = useMemo(() => linesOf(run.source ?? ''), [run.source]);
  if (!run.source) return html`<${Empty} title="No source is kept"><p>${run.recordsKept === false ? 'The records of this run are no longer stored.' : 'This run called one tool.'}</p></${Empty}>`;
  return html`<${Lines} lines=${lines} label="Program" numbered marked=${line > 0 ? line - 1 : undefined} />`;
}

function Values({ run }) {
  const failed = run.error && !run.result;
  return html`<div class="columns two">
    <${Value} label="Arguments" value=${run.arguments?.preview ?? {}} bytes=${run.arguments?.bytes} truncated=${run.arguments?.truncated ?? false} />
    ${run.result ? html`<${Value} label="Result" value=${run.result.preview} bytes=${run.result.bytes} truncated=${run.result.truncated} />`
      : html`<p class="soft">${failed ? 'It failed, so there is no result.' : 'There is no result yet.'}</p>`}
  </div>`;
}

function Decisions({ run }) {
  const nodes = useMemo(() => new Map((run.structure?.nodes ?? []).map((node) => [String(node.id), node])), [run.structure]);
  if (!run.decisions?.length && run.output === 'at_end') return html`<${Later} what="decides" />`;
  if (!run.decisions?.length) return html`<${Empty} title="No decisions"><p>The program took no branch, or it has not come to one.</p></${Empty}>`;
  return html`<ol class="event-list">${run.decisions.map((item, index) => {
    const node = nodes.get(item.nodeId.split('/').at(-1)) ?? {};
    return html`<li key=${index}><span class="event-time"><${Code} text=${item.nodeId} /></span>
      <span>${node.condition && html`<code><${Text} text=${node.condition} /></code> `}→ <strong><${Text} text=${item.taken} /></strong>${item.times > 1 && ` ${count(item.times)} times`}</span>
      ${node.line > 0 && html`<button type="button" class="link" onClick=${() => setQuery({ tab: 'program', line: node.line })}>line ${node.line}</button>`}</li>`;
  })}</ol>`;
}

/** Of a run that another process has, or that waits without one, only the end tells this. */
function Later({ what }) {
  return html`<${Empty} title="Shown at the end"><p>What this run ${what} is known here when it ends: it waits, or another process has it. Its calls are shown as they happen.</p></${Empty}>`;
}

const KINDS = { approval: 'Approval of calls', in_doubt: 'Calls in doubt', layer: 'Go on after a layer', sign_in: 'Sign-in to a server' };

function Questions({ run }) {
  if (!run.questions?.length) return html`<${Empty} title="No questions"><p>This run asked nobody. What needs your approval is set by the policy.</p></${Empty}>`;
  return html`<ol class="event-list">${run.questions.map((item) => html`<li key=${item.id}>
    <span class="event-time">${clock(item.askedAt)}</span>
    <span><strong>${KINDS[item.kind] ?? html`<${Text} text=${item.kind} />`}</strong></span>
    <span>${item.answeredAt ? html`<${Text} text=${item.answer ?? 'answered'} />${item.by && html` by <${Text} text=${item.by} />`}${item.reason && html`: <${Text} text=${item.reason} />`}, after ${duration(item.answeredAt - item.askedAt)}`
      : html`<a href=${`/inbox#${encodeURIComponent(run.id)}`}>waits for an answer</a>`}</span>
  </li>`)}</ol>`;
}

function Console({ run }) {
  const [lines, tones] = useMemo(() => {
    const entries = (run.console ?? []).flatMap((entry) => linesOf(`${Number.isFinite(entry.atMs) ? duration(entry.atMs - run.startedAt).padStart(9) : ''}  ${entry.text}`).map((text) => [text, entry.level]));
    return [entries.map(([text]) => text), entries.map(([, level]) => `level-${['warn', 'error', 'debug'].includes(level) ? level : 'log'}`)];
  }, [run.console]);
  if (lines.length === 0 && run.output === 'at_end') return html`<${Later} what="prints" />`;
  if (lines.length === 0) return html`<${Empty} title="Nothing printed"><p>What a program writes with <code>console.log</code> is shown here.</p></${Empty}>`;
  return html`${run.consoleCut && html`<p class="notice">It printed more than is kept.</p>`}<${Lines} lines=${lines} tones=${tones} label="Console" />`;
}
