// The calls of a run: a tree at the left, the axis of time at the right, one row for each.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from '../html.js';
import { Empty } from '../ui/empty.js';
import { count, duration, plural } from '../ui/format.js';
import { Status } from '../ui/status.js';
import { Table } from '../ui/table.js';
import { Text } from '../ui/text.js';
import { useTick } from '../ui/time.js';
import { CallMarks } from './run-call.js';
import { growingEnd } from './run-live.js';
import { buildRows, lanesOf, timeAxis } from './run-rows.js';

/** So few calls are seen at a glance without an overview. */
const FEW = 12;

export function Timeline({ run, calls, complete, selected, onSelect, fill = true }) {
  const [closed, setClosed] = useState(new Set());
  const [failedOnly, setFailedOnly] = useState(false);
  const running = run.status === 'running' || run.status === 'waiting';
  const tick = useTick(running);
  const now = running ? tick : run.endedAt ?? run.startedAt + run.durationMs;
  const [box, width] = useWidth();
  const all = useMemo(() => buildRows({ calls, questions: run.questions, spans: run.spans, closed, now }), [calls, run.questions, run.spans, closed, running && now]);
  const rows = useMemo(() => (failedOnly ? all.filter((row) => row.kind === 'call' && (row.call.status === 'error' || row.call.status === 'in_doubt')).map((row) => ({ ...row, depth: 0 })) : all), [all, failedOnly]);
  const end = running ? growingEnd(run.startedAt, now) : lastOf(all, now);
  const axis = useMemo(() => timeAxis({ start: run.startedAt, end, rows: all, width: width * 0.45, whole: complete }), [all, end, width, run.startedAt, complete]);
  const failures = useMemo(() => calls.reduce((sum, call) => sum + (call.status === 'error' || call.status === 'in_doubt' ? 1 : 0), 0), [calls]);
  const fold = (row) => setClosed((known) => {
    const next = new Set(known);
    if (!next.delete(row.key)) next.add(row.key);
    return next;
  });
  const keyed = (event) => {
    const index = Number(event.target.dataset?.index);
    const row = rows[index];
    if (!row?.children || !['ArrowLeft', 'ArrowRight'].includes(event.key)) return;
    if (row.open !== (event.key === 'ArrowRight')) {
      event.preventDefault();
      fold(row);
    }
  };
  const columns = useMemo(() => [
    { key: 'call', title: 'Call', width: 'minmax(14rem, 1.3fr)', narrowWidth: 'minmax(0, 1.2fr)', cell: (row) => html`<${Label} row=${row} onFold=${fold} />` },
    { key: 'marks', title: '', width: '7rem', narrow: false, cell: (row) => row.kind === 'call' && html`<${CallMarks} call=${row.call} />` },
    { key: 'time', title: 'Time', width: '5rem', narrowWidth: '4.2rem', align: 'right', cell: (row) => html`<span class=${row.kind === 'call' ? '' : 'soft'}>${duration(row.to - row.from)}</span>` },
    { key: 'bar', title: html`<${Ticks} axis=${axis} />`, width: 'minmax(10rem, 1.6fr)', narrowWidth: 'minmax(0, 1fr)', cell: (row) => html`<${Bar} row=${row} axis=${axis} />` },
  ], [axis]);
  const empty = running ? html`<${Empty} title="No calls yet"><p>Calls appear here as the run makes them.</p></${Empty}>`
    : html`<${Empty} title="No calls"><p>The program called no tool.</p></${Empty}>`;
  return html`<div class="timeline" ref=${box} onKeyDown=${keyed}>
    ${calls.length > FEW && html`<${Overview} rows=${all} axis=${axis} width=${width} />`}
    ${(failures > 0 || !complete) && html`<div class="toolbar tight">
      ${failures > 0 && html`<label class="check"><input type="checkbox" checked=${failedOnly} onChange=${(event) => setFailedOnly(event.currentTarget.checked)} /> Only what failed (${count(failures)})</label>`}
      ${!complete && html`<span class="fine push" role="status">${count(calls.length)} of ${count(run.calls)} calls read</span>`}
    </div>`}
    <${Table} label="Calls" rows=${rows} columns=${columns} rowKey=${(row) => row.key} rowHeight=${28} fill=${fill} selected=${selected === null ? undefined : `c${selected}`} empty=${empty}
      rowClass=${(row) => `row-${row.kind}`} onOpen=${(row) => { if (row.kind === 'call') onSelect(row.call.call); else if (row.children) fold(row); }} />
  </div>`;
}

function lastOf(rows, end) {
  let last = end;
  for (const row of rows) if (row.to > last) last = row.to;
  return last;
}

function Label({ row, onFold }) {
  if (row.kind === 'question') return html`<span class="tree-label special">Question${row.question.answeredAt ? '' : ', open'}</span>`;
  if (row.kind === 'gap') return html`<span class="tree-label special">No process had it: interrupted, then resumed</span>`;
  const indent = { paddingLeft: `${row.depth * 1.1}rem` };
  if (row.kind === 'capability') {
    return html`<span class="tree-label" style=${indent}>
      <button type="button" class="fold" tabindex="-1" aria-expanded=${row.open ? 'true' : 'false'} aria-label=${`${row.open ? 'Fold' : 'Unfold'} ${row.children} calls`} onClick=${() => onFold(row)}>${row.open ? '▾' : '▸'}</button>
      <strong><${Text} text=${row.frame.capability ?? row.frame.nodeId} /></strong> <span class="fine">${plural(row.children, 'call')}</span>
      ${row.failed > 0 && html`<span class="fails">${count(row.failed)} failed</span>`}</span>`;
  }
  const { call } = row;
  return html`<span class="tree-label" style=${indent}><span class="fold"></span>
    <span class="call-number">${call.call}</span><${Dot} status=${call.status} /><code><${Text} text=${call.tool} /></code>
    ${call.error && html`<span class="fails"><${Text} text=${call.error.message ?? call.error} /></span>`}</span>`;
}

/** A call that went well needs no word; all others have one. */
function Dot({ status }) {
  return status === 'ok' ? html`<span class="dot-ok" title="ok"><span class="sr">ok</span></span>` : html`<${Status} status=${status} />`;
}

function Bar({ row, axis }) {
  const left = axis.at(row.from);
  const right = axis.at(row.to);
  const kind = row.kind !== 'call' ? row.kind : row.call.status !== 'ok' ? row.call.status : row.call.mocked ? 'mocked' : row.call.cached ? 'cached' : row.call.speculated ? 'ahead' : 'ok';
  return html`<span class="bar-track">${axis.pauses.map((pause) => html`<i class="pause" key=${pause.from} style=${{ left: `${pause.start * 100}%`, width: `${(pause.end - pause.start) * 100}%` }}></i>`)}
    <i class="bar" data-kind=${kind} style=${{ left: `${left * 100}%`, width: `max(2px, ${(right - left) * 100}%)` }}></i></span>`;
}

function Ticks({ axis }) {
  return html`<span class="ticks"><span class="sr">Timeline</span>${axis.ticks.map((tick) => html`<i key=${tick.ms} style=${{ left: `${tick.at * 100}%` }}>${duration(tick.ms)}</i>`)}</span>`;
}

const LANE_PX = 3;
const LANES = 12;

/** All calls in a strip, so that overlap and failures are seen at a glance; the table says the same to everybody else. */
function Overview({ rows, axis, width }) {
  const canvas = useRef(null);
  const lanes = useMemo(() => lanesOf(rows, LANES), [rows]);
  const used = useMemo(() => lanes.reduce((most, { lane }) => Math.max(most, lane + 1), 1), [lanes]);
  const height = used * LANE_PX + 4;
  useEffect(() => {
    const node = canvas.current;
    const scale = devicePixelRatio || 1;
    node.width = Math.max(1, Math.round(width * scale));
    node.height = Math.round(height * scale);
    const context = node.getContext('2d');
    context.scale(scale, scale);
    const style = getComputedStyle(node);
    const colour = (name) => style.getPropertyValue(name).trim();
    const colours = { ok: colour('--bar'), error: colour('--bar-bad'), in_doubt: colour('--bar-wait'), waiting: colour('--bar-wait'), running: colour('--accent'), cached: colour('--bar-cached') };
    for (const { row, lane } of lanes) {
      const { status, cached } = row.call;
      context.fillStyle = colours[status === 'ok' && cached ? 'cached' : status] ?? colours.ok;
      const left = axis.at(row.from) * width;
      context.fillRect(left, 2 + lane * LANE_PX, Math.max(1, axis.at(row.to) * width - left), LANE_PX - 1);
    }
  }, [lanes, axis, width, height]);
  return html`<canvas class="overview" aria-hidden="true" ref=${canvas} style=${{ height: `${height}px` }}></canvas>`;
}

/** The width of an element, kept up to date. */
function useWidth() {
  const node = useRef(null);
  const [width, setWidth] = useState(900);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.round(entry.contentRect.width)));
    observer.observe(node.current);
    return () => observer.disconnect();
  }, []);
  return [node, width];
}
