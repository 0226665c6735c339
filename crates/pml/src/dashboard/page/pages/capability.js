// One capability: its definition, its runs, its source, and what can be done with it.

import { get, send } from '../api.js';
import { subscribe } from '../events.js';
import { html, useEffect, useMemo, useRef, useSignal, useState } from '../html.js';
import { navigate, setQuery } from '../navigation.js';
import { href } from '../router.js';
import { confirm, Dialog } from '../ui/dialog.js';
import { Empty, PageHead } from '../ui/empty.js';
import { Tabs } from '../ui/filter.js';
import { clock, count, duration, percent, plural } from '../ui/format.js';
import { Mark, Status } from '../ui/status.js';
import { Code, Problem, Sentence, Text, plain } from '../ui/text.js';
import { Ago } from '../ui/time.js';
import { DefinitionView } from '../views/definition-view.js';
import { Details } from '../views/capability-details.js';
import { Versions } from '../views/capability-versions.js';
import { InvocationView } from '../views/invocation-view.js';
import { useMarking } from '../views/marking.js';
import { callTokens, definitionTokens } from '../views/marks.js';
import { RunForm } from '../views/run-form.js';
import { Source } from '../views/source.js';
import { STATE_KINDS } from './capabilities.js';

export const title = ({ params }) => params.name;

/** Runs that can be compared at once. */
const MOST_COMPARED = 6;
const TRACES = 20;
/** Calls that the panel of a call names for each relation. */
const MOST_NAMED = 6;
/** When to look again after the end of a run, in ms: learning takes less than a second, unless the machine is busy. */
const LEARNED_MS = [700, 4000];
const VIEWS = [['definition', 'Definition'], ['invocation', 'Invocation'], ['both', 'Both']];

export async function load({ params, query, signal }) {
  const path = `/api/capabilities/${encodeURIComponent(params.name)}`;
  const [{ capability }, definition, page, versions] = await Promise.all([
    get(path, { signal }),
    get(`${path}/definition`, { signal }),
    get(tracesPath(params.name), { signal }),
    get(`${path}/versions`, { signal }),
  ]);
  const { traces } = page;
  const wanted = (query.get('runs') ?? '').split(',').filter(Boolean).slice(0, MOST_COMPARED);
  const chosen = wanted.length > 0 ? wanted : traces.slice(0, 1).map((trace) => trace.id);
  const invocations = await Promise.all(chosen.map((id) => invocation(id, signal)));
  return { capability, definition, traces, older: page.nextCursor, versions, invocations: invocations.filter(Boolean) };
}

function tracesPath(name, cursor) {
  return `/api/traces/${encodeURIComponent(name)}?${new URLSearchParams({ limit: TRACES, ...(cursor && { cursor }) })}`;
}

/** A run that is gone leaves the others to be looked at. */
async function invocation(id, signal) {
  try {
    return await get(`/api/trace/${encodeURIComponent(id)}/invocation`, { signal });
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

export function view({ params, query, data, reload }) {
  const { capability, definition, invocations } = data;
  const shownView = VIEWS.some(([key]) => key === query.get('view')) ? query.get('view') : 'definition';
  const root = useRef(null);
  const pinned = useSignal('');
  const [selected, setSelected] = useState(null);
  const [dialog, setDialog] = useState(null);
  useMarking(root, pinned, [shownView, definition, invocations]);
  const fresh = useFreshness(capability.id, root, reload);

  const selectNode = (id) => {
    const same = selected?.node === id;
    setSelected(same ? null : { node: id });
    pinned.value = same ? '' : definitionTokens(definition.nodes.find((node) => node.id === id)).join(' ');
  };
  const selectCall = ({ trace, call }) => {
    const same = selected?.trace === trace && selected.call === call;
    setSelected(same ? null : { trace, call });
    const of = invocations.find((one) => one.traceId === trace);
    pinned.value = same || !of ? '' : callTokens(of).get(call);
  };
  const keyed = (event) => {
    if (event.key === 'Escape' && selected && !event.defaultPrevented) {
      setSelected(null);
      pinned.value = '';
    }
  };
  const [hasDefinition, hasInvocation] = [shownView !== 'invocation', shownView !== 'definition'];
  return html`
    <${Head} capability=${capability} onDialog=${setDialog} />
    <${Facts} capability=${capability} />
    <${Tabs} value=${shownView} label="View" tabs=${VIEWS} onChange=${(key) => setQuery({ view: key === 'definition' ? '' : key })} />
    <div class="capability-views" ref=${root} onKeyDown=${keyed} onPointerLeave=${() => { if (!root.current.contains(document.activeElement)) fresh?.(); }}>
      ${fresh && html`<button type="button" class="fresh" onClick=${fresh}>It ran again, show</button>`}
      <div class="pictures">
        ${hasDefinition && (definition.nodes.length > 0
          ? html`<${DefinitionView} definition=${definition} selected=${selected?.node} onSelect=${selectNode} />`
          : html`<${Empty} title="Nothing to draw"><p>This program calls no tool.</p></${Empty}>`)}
        ${hasInvocation && html`<${Invocations} data=${data} query=${query} selected=${selected} onSelect=${selectCall} />`}
        <${Selection} selected=${selected} data=${data} />
      </div>
      <${Source} definition=${definition} />
    </div>
    <${Details} capability=${capability} definition=${definition} />
    <${Versions} list=${data.versions} shown=${capability.id} onPut=${(name) => (name === params.name ? reload() : navigate(href('capability', { name })))} />
    ${dialog === 'run' && html`<${RunForm} capability=${capability} onClose=${() => setDialog(null)} />`}
    ${dialog === 'rename' && html`<${Rename} capability=${capability} onClose=${() => setDialog(null)} reload=${reload} />`}`;
}

/**
 * Loads the page anew when a run has taught something: events tell of the end of a run, learning follows a moment later. While the
 * pointer or the focus is in the pictures nothing changes there; then this gives what loads it, for a button.
 */
function useFreshness(id, root, reload) {
  const [held, setHeld] = useState(false);
  const latest = useRef(reload);
  latest.current = reload;
  const release = () => {
    setHeld(false);
    latest.current();
  };
  useEffect(() => {
    let [first, second] = [null, null];
    const look = () => {
      const node = root.current;
      if (node?.matches(':hover') || node?.contains(document.activeElement)) setHeld(true);
      else release();
    };
    const soon = () => {
      first ??= setTimeout(() => {
        first = null;
        look();
      }, LEARNED_MS[0]);
      clearTimeout(second);
      second = setTimeout(look, LEARNED_MS[1]);
    };
    const stop = subscribe({
      // A run in another process does not say what it taught.
      run_end: (event) => { if (!event.capability || event.capability === id) soon(); },
      capability_end: (event) => { if (event.capability?.id === id) soon(); },
      reset: soon,
    });
    return () => {
      clearTimeout(first);
      clearTimeout(second);
      stop();
    };
  }, [id]);
  return held ? release : null;
}

function Head({ capability, onDialog }) {
  const [problem, setProblem] = useState(null);
  const forget = async () => {
    const sure = await confirm({
      title: 'Forget this capability?',
      text: `${capability.name} will not be found or run again. The traces of its runs stay.`,
      yes: 'Forget it',
      danger: true,
    });
    if (!sure) return;
    try {
      await send('DELETE', `/api/capabilities/${encodeURIComponent(capability.id)}`);
      navigate(href('capabilities'));
    } catch (error) {
      setProblem(error);
    }
  };
  return html`<${PageHead} title=${html`<${Text} text=${capability.name} />`} note=${html`<${Text} text=${capability.description} />`}>
      <button type="button" class="primary" onClick=${() => onDialog('run')}>Run…</button>
      <a class="button" href=${href('test', {}, { capability: capability.name })}>Test</a>
      <button type="button" onClick=${() => onDialog('rename')}>Rename…</button>
      <button type="button" class="danger" onClick=${forget}>Forget…</button>
    </${PageHead}>
    <${Problem} error=${problem} />`;
}

function Facts({ capability }) {
  const rate = capability.usageCount ? percent(capability.successCount / capability.usageCount) : '–';
  const tools = new Set(capability.toolsUsed.map((tool) => tool.id));
  return html`<div class="capability-facts">
    <${Status} status=${STATE_KINDS[capability.state]} label=${capability.state} title=${capability.degradedBecause} />
    <span><b>${count(capability.usageCount)}</b> ${capability.usageCount === 1 ? 'run' : 'runs'}</span>
    <span><b>${rate}</b> succeeded</span>
    <span title="The mean of its successful runs at work: without starting, and without waiting for people. Beyond ten runs later ones count more."><b>${capability.usageCount ? duration(capability.avgDurationMs) : '–'}</b> mean time</span>
    <span><b>${count(tools.size)}</b> ${tools.size === 1 ? 'tool' : 'tools'}</span>
    <span>last run <b><${Ago} at=${capability.lastUsed} /></b></span>
    ${capability.approved && html`<${Mark} kind="ok" title="A run that a person approved has succeeded">approved before</${Mark}>`}
    <a href=${href('graph', {}, { id: capability.id })}>In the graph</a>
    <a href=${href('runs', {}, { capability: capability.name })}>Its runs</a>
  </div>
  ${capability.degradedBecause && html`<p class="notice"><${Text} text=${capability.degradedBecause} /></p>`}`;
}

function Invocations({ data, query, selected, onSelect }) {
  const { invocations } = data;
  const [earlier, setEarlier] = useState({ traces: [], cursor: data.older });
  const [problem, setProblem] = useState(null);
  const seen = useRef([]);
  const traces = useMemo(() => {
    // A new run moves the last one of the first page to the next; what was shown once stays.
    const byId = new Map([...seen.current, ...earlier.traces, ...data.traces].map((trace) => [trace.id, trace]));
    seen.current = [...byId.values()].sort((one, other) => other.createdAt - one.createdAt);
    return seen.current;
  }, [data.traces, earlier]);
  const shown = invocations.map((one) => one.traceId);
  const older = async () => {
    try {
      const page = await get(tracesPath(data.capability.id, earlier.cursor));
      setEarlier((known) => ({ traces: [...known.traces, ...page.traces], cursor: page.nextCursor }));
      setProblem(null);
    } catch (error) {
      setProblem(error);
    }
  };
  if (traces.length === 0 && invocations.length === 0) {
    return html`<${Empty} title="It has not run yet"><p>Run it with the button above, or let an agent ask for what it does.</p></${Empty}>`;
  }
  const choose = (id) => {
    const next = shown.includes(id) ? shown.filter((one) => one !== id) : [...shown, id].slice(-MOST_COMPARED);
    setQuery({ runs: next.join(',') });
  };
  const others = shown.filter((id) => !traces.some((trace) => trace.id === id));
  return html`<fieldset class="run-picker"><legend class="sr">Runs to show</legend>
      ${traces.map((trace) => html`<label class="run-choice" title=${`${plain(trace.intent)}\n${duration(trace.durationMs)} at work. The list of runs counts from the request to the end, with starting and waiting.`}><input type="checkbox" checked=${shown.includes(trace.id)}
        disabled=${shown.length === 1 && shown[0] === trace.id} onChange=${() => choose(trace.id)} />
        <${Status} status=${trace.status} label="" title=${trace.status} /><span class="sr">${trace.status}</span>${clock(trace.createdAt - trace.durationMs)} <span class="soft">${duration(trace.durationMs)}</span></label>`)}
      ${earlier.cursor && html`<button type="button" class="quiet" onClick=${older}>Older…</button>`}
      ${others.length > 0 && html`<span class="fine">and ${plural(others.length, 'earlier run')}</span>`}
    </fieldset>
    <${Problem} error=${problem} />
    <${InvocationView} invocations=${invocations} side=${query.get('side') === '1'} onSide=${(side) => setQuery({ side: side ? '1' : '' })}
      selected=${selected} onSelect=${onSelect} />`;
}

/** What is known of the selected node or call. The place is kept while nothing is selected, so that nothing moves. */
function Selection({ selected, data }) {
  const found = useMemo(() => describe(selected, data), [selected, data]);
  return html`<section class="selection panel" aria-live="polite" aria-label="Selected">
    ${found ?? html`<p class="fine">Point at a node or a call to see where it is in the other view and in the source. Click it, or press <kbd>Enter</kbd>, to keep it marked.</p>`}
  </section>`;
}

function describe(selected, { definition, invocations }) {
  if (selected?.node) {
    const node = definition.nodes.find((one) => one.id === selected.node);
    if (!node) return null;
    const out = definition.edges.filter((edge) => edge.from === node.id && edge.share !== undefined);
    return html`<h2><${Code} text=${node.detail ?? node.label} /> <span class="soft">${node.kind}</span></h2>
      <dl class="facts">
        ${node.sites.length > 0 && html`<dt>Places</dt><dd>${node.sites.map((site, index) => `${index ? ', ' : ''}${site.line ? `line ${site.line}` : site.nodeId}`)}</dd>`}
        ${Number.isFinite(node.coverage) && html`<dt>Reached</dt><dd>in ${percent(node.coverage)} of ${plural(definition.runs, 'run')}${node.usual ? ', on the usual path' : ''}</dd>`}
        ${out.length > 0 && html`<dt>Outcomes</dt><dd>${out.map((edge, index) => html`${index > 0 && ', '}<code><${Text} text=${edge.label} /></code> ${percent(edge.share)}`)}</dd>`}
        ${node.kind === 'tool' && html`<dt>Graph</dt><dd><a href=${href('graph', {}, { id: node.tool })}>neighbours of this tool</a></dd>`}
        ${node.kind === 'capability' && html`<dt>Opens</dt><dd><a href=${href('capability', { name: node.label })}><${Text} text=${node.label} /></a></dd>`}
      </dl>`;
  }
  const run = invocations.find((one) => one.traceId === selected?.trace);
  const call = run?.nodes.find((one) => one.id === selected.call);
  if (!call) return null;
  return html`<h2><${Code} text=${call.id} /> <${Status} status=${call.status} /></h2>
    <dl class="facts">
      <dt>Time</dt><dd>${duration(call.toMs - call.fromMs)}, from ${duration(call.fromMs)} to ${duration(call.toMs)}</dd>
      ${call.error && html`<dt>Error</dt><dd><code><${Text} text=${call.error.code} /></code> <${Sentence} text=${call.error.message} /></dd>`}
      ${call.retries > 0 && html`<dt>Retries</dt><dd>attempt ${call.retries + 1}</dd>`}
      ${call.speculated && html`<dt>Speculated</dt><dd>made before the program asked for it${call.savedMs ? `, ${duration(call.savedMs)} saved` : ''}</dd>`}
      ${call.cached && html`<dt>Cached</dt><dd>not called: its result is that of an earlier dry run</dd>`}
      ${call.mocked && html`<dt>Mocked</dt><dd>answered with a recorded or made-up value</dd>`}
      ${[['dependency', 'to', 'from', 'Given results of'], ['dependency', 'from', 'to', 'Result passed to'], ['sequence', 'to', 'from', 'Came after']].map(([kind, end, other, words]) => {
        const others = run.edges.filter((edge) => edge.kind === kind && edge[end] === call.id).map((edge) => edge[other]);
        return others.length > 0 && html`<dt>${words}</dt><dd>${others.slice(0, MOST_NAMED).map((id, index) => html`${index > 0 && ', '}<${Code} text=${id} />`)}${others.length > MOST_NAMED && ` and ${count(others.length - MOST_NAMED)} more`}</dd>`;
      })}
      ${call.parent && html`<dt>Within</dt><dd><${Code} text=${call.parent} /></dd>`}
      ${call.kind === 'tool' && html`<dt>Graph</dt><dd><a href=${href('graph', {}, { id: call.tool })}>neighbours of this tool</a></dd>`}
    </dl>`;
}

function Rename({ capability, onClose }) {
  const [name, setName] = useState(capability.name);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const field = useRef(null);
  useEffect(() => field.current.select(), []);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const { capability: renamed } = await send('POST', `/api/capabilities/${encodeURIComponent(capability.id)}/rename`, { name: name.trim() });
      onClose();
      navigate(href('capability', { name: renamed.name }) + location.search);
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  };
  return html`<${Dialog} title="Rename" onClose=${onClose}>
    <form class="stack" onSubmit=${submit}>
      <label class="field">Name<input ref=${field} value=${name} autofocus required spellcheck="false" autocomplete="off" onInput=${(event) => setName(event.currentTarget.value)} /></label>
      <${Problem} error=${problem} />
      <div class="actions"><button type="submit" class="primary" disabled=${busy || !name.trim() || name.trim() === capability.name}>Rename</button><button type="button" onClick=${onClose}>Cancel</button></div>
    </form>
  </${Dialog}>`;
}
