// All runs, newest first, as they happen.

import { get } from '../api.js';
import { subscribe } from '../events.js';
import { html, useCallback, useEffect, useRef, useState } from '../html.js';
import { navigate, offered, setQuery } from '../navigation.js';
import { href } from '../router.js';
import { Empty, PageHead } from '../ui/empty.js';
import { Choice, FilterField } from '../ui/filter.js';
import { count, duration } from '../ui/format.js';
import { Mark, Status } from '../ui/status.js';
import { Table } from '../ui/table.js';
import { Code, Problem, Sentence, Text } from '../ui/text.js';
import { Ago, useTick } from '../ui/time.js';
import { readChanges, withMore, withStretch } from './run-list.js';

const PAGE_SIZE = 100;
/** Events come by the hundred while runs are busy; the list is read at most this often. */
const REFRESH_MS = 700;
const STATUSES = ['running', 'waiting', 'interrupted', 'done', 'failed', 'cancelled', 'aborted', 'expired'];

/** Works on a fresh install, without a server and without an approval. */
const TRY_IT = `pml execute "return await mcp.math.evaluate({ expression: '6 * 7' })"`;

export const title = 'Runs';

function address(query, cursor) {
  const wanted = new URLSearchParams({ limit: PAGE_SIZE });
  for (const name of ['status', 'q', 'tool', 'capability']) if (query.get(name)) wanted.set(name, query.get(name));
  if (cursor) wanted.set('cursor', cursor);
  return `/api/runs?${wanted}`;
}

export async function load({ query, signal }) {
  return get(address(query), { signal });
}

export function view({ query, data }) {
  const filters = query.toString();
  const [rows, setRows] = useState(data.items);
  const [problem, setProblem] = useState(null);
  const more = useRef({ cursor: data.nextCursor, busy: false });
  useEffect(() => {
    setRows(data.items);
    more.current = { cursor: data.nextCursor, busy: false };
  }, [data]);

  const shown = useRef(rows);
  shown.current = rows;
  useEffect(() => {
    let [timer, over, reading] = [null, false, false];
    let heard = new Set();
    let missed = false;
    const refresh = async () => {
      timer = null;
      reading = true;
      // First, so that an event that comes while the list is read has it read again.
      const [before, all] = [heard, missed];
      [heard, missed] = [new Set(), false];
      try {
        const changes = await readChanges(shown.current, (id) => all || before.has(id), (cursor) => get(address(query, cursor)));
        if (over) return;
        if (changes.items) {
          more.current = { cursor: changes.cursor, busy: false };
          setRows(changes.items);
        } else {
          setRows((known) => changes.stretches.reduce(withStretch, known));
          changes.rest.forEach((id) => heard.add(id));
        }
        setProblem(null);
        reading = false;
        if (heard.size > 0 || missed) soon();
      } catch (error) {
        before.forEach((id) => heard.add(id));
        missed ||= all;
        reading = false;
        if (!over) setProblem(error);
      }
    };
    const soon = () => {
      if (!reading) timer ??= setTimeout(refresh, REFRESH_MS);
    };
    const stop = subscribe({
      '*': (event, name) => {
        if (name === 'log') return;
        heard.add(event.run);
        soon();
      },
      reset: () => {
        missed = true;
        soon();
      },
    });
    // What happened between the first reading and now was told to nobody.
    soon();
    return () => {
      over = true;
      clearTimeout(timer);
      stop();
    };
  }, [filters]);

  const onEnd = useCallback(async () => {
    const state = more.current;
    if (!state.cursor || state.busy) return;
    state.busy = true;
    try {
      const page = await get(address(query, state.cursor));
      if (more.current !== state) return;
      more.current = { cursor: page.nextCursor, busy: false };
      setRows((known) => withMore(known, page.items));
    } catch (error) {
      setProblem(error);
      state.busy = false;
    }
  }, [filters]);

  const filtered = ['status', 'q', 'tool', 'capability'].some((name) => query.get(name));
  const empty = filtered
    ? html`<${Empty} title="No run fits the filter"><p><button type="button" onClick=${() => navigate('/runs')}>Show all runs</button></p></${Empty}>`
    : html`<${Empty} title="No runs yet">
        <p>A run appears here as soon as an agent calls <code>pml_execute</code>. To see one now, try in a terminal:</p>
        <pre class="value">${TRY_IT}</pre>
      </${Empty}>`;
  return html`<${PageHead} title="Runs" />
    <div class="toolbar" role="search">
      <${FilterField} label="Filter by text" placeholder="Filter by intent or id   /" value=${query.get('q') ?? ''} onChange=${(q) => setQuery({ q })} />
      <${FilterField} label="Filter by tool" placeholder="Tool, such as fs:write" value=${query.get('tool') ?? ''} onChange=${(tool) => setQuery({ tool })} />
      <${Choice} label="Status" value=${query.get('status') ?? ''} onChange=${(status) => setQuery({ status })}
        options=${[['', 'Any status'], ...STATUSES.map((status) => [status, status])]} />
      ${query.get('capability') && html`<span class="chip">capability <${Code} text=${query.get('capability')} />
        <button type="button" class="quiet" aria-label="Show runs of any capability" onClick=${() => setQuery({ capability: '' })}>×</button></span>`}
    </div>
    <${Problem} error=${problem} />
    <${Table} label="Runs" live rows=${rows} columns=${COLUMNS} rowKey=${(run) => run.id} onEnd=${onEnd} empty=${empty}
      onOpen=${(run) => navigate(href('run', { id: run.id }))} hrefOf=${(run) => href('run', { id: run.id })} />`;
}

const COLUMNS = [
  { key: 'status', title: 'Status', width: '7.5rem', narrowWidth: '6.4rem', cell: (run) => html`<${Status} status=${run.status} title=${run.error?.code} />` },
  { key: 'intent', title: 'Intent', width: 'minmax(14rem, 1fr)', narrowWidth: 'minmax(0, 1fr)', cell: (run) => html`<${Intent} run=${run} />` },
  { key: 'capability', title: 'Capability', width: 'minmax(0, 11rem)', narrow: false, cell: (run) => (run.capability && offered.has('capability')
    ? html`<a href=${href('capability', { name: run.capability.name })} tabindex="-1"><${Text} text=${run.capability.name} /></a>`
    : html`<span class="soft"><${Text} text=${run.capability?.name ?? run.kind} /></span>`) },
  { key: 'calls', title: 'Calls', width: '3.6rem', narrow: false, align: 'right', cell: (run) => html`${count(run.calls)}` },
  { key: 'marks', title: '', width: '5rem', narrow: false, cell: (run) => html`<${Marks} run=${run} />` },
  { key: 'duration', title: 'Time', hint: 'From the request to the end, with starting and waiting', width: '5.2rem', narrowWidth: '4.5rem', align: 'right', cell: (run) => html`<${RunTime} run=${run} />` },
  { key: 'client', title: 'Client', width: 'minmax(0, 5.5rem)', narrow: false, cell: (run) => html`<span class="soft"><${Text} text=${run.client ?? run.session} /></span>` },
  { key: 'started', title: 'Started', width: '5.8rem', narrow: false, align: 'right', cell: (run) => html`<span class="soft"><${Ago} at=${run.startedAt} /></span>` },
];

function Intent({ run }) {
  const words = run.intent || 'no intent given';
  const after = run.question ? html` <span class="asks"><${Sentence} text=${run.question.summary} /></span>`
    : run.error ? html` <span class="fails"><${Sentence} text=${run.error.message || run.error.code} /></span>` : null;
  return html`<span class=${run.intent ? '' : 'soft'}><${Text} text=${words} /></span>${after}`;
}

function Marks({ run }) {
  return html`${run.failedCalls > 0 && html`<${Mark} kind="bad" title="Calls that failed">${count(run.failedCalls)} failed</${Mark}> `}
    ${run.speculated > 0 && html`<${Mark} title="Calls made before the program asked for them">${count(run.speculated)} ahead</${Mark}>`}`;
}

/** How long a run took, or takes so far. */
export function RunTime({ run }) {
  const running = run.status === 'running' && !run.endedAt;
  const now = useTick(running);
  return duration(running ? Math.max(0, now - run.startedAt) : run.durationMs);
}
