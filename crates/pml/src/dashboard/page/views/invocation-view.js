// Invocations of a capability: every call a bar on a time axis, one run below the other or side by side.

import { html, useEffect, useMemo, useRef, useState } from '../html.js';
import { href } from '../router.js';
import { clock, count, duration, exact, plural } from '../ui/format.js';
import { Mark, Status } from '../ui/status.js';
import { Code, Sentence, Text } from '../ui/text.js';
import { callTokens, neighbourInDirection } from './marks.js';
import { shown } from './shown-text.js';
import { badges, bars, compareCalls, curve, relations, ticks } from './timeline.js';

const LANE = 26;
const BAR = 20;
const AXIS = 22;
const MARGIN = 10;
/** Room for the text of a tick. */
const TICK_PX = 56;
const ZOOMS = [1, 2, 4, 8, 16, 32, 64];
/** More bars than this are not drawn: they would be less than a pixel each. */
const MOST_BARS = 4000;
/** More lines than this would hide the bars. */
const MOST_LINES = 400;

export function InvocationView({ invocations, side, onSide, selected, onSelect }) {
  const [zoom, setZoom] = useState(1);
  const box = useRef(null);
  const width = useWidth(box, [side, invocations.length]);
  const longest = Math.max(1, ...invocations.map((invocation) => invocation.durationMs));
  const inner = Math.max(120, width - MARGIN * 2 - 2);
  const pixelsPerMs = (inner * ZOOMS[zoom - 1]) / longest;
  const step = (direction) => setZoom(Math.max(1, Math.min(ZOOMS.length, zoom + direction)));
  const keyed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '+' || event.key === '=') step(1);
    else if (event.key === '-') step(-1);
    else if (event.key === '0') setZoom(1);
    else return;
    event.preventDefault();
  };
  return html`<div class="picture" onKeyDown=${keyed}>
    <div class="picture-tools">
      <${Legend} invocations=${invocations} />
      <span class="push"></span>
      ${invocations.length > 1 && html`<button type="button" class="quiet" aria-pressed=${side ? 'true' : 'false'} onClick=${() => onSide(!side)}>Side by side</button>`}
      <button type="button" class="quiet" aria-label="Shorter time axis" onClick=${() => step(-1)} disabled=${zoom === 1}>−</button>
      <button type="button" class="quiet" onClick=${() => setZoom(1)} aria-pressed=${zoom === 1 ? 'true' : 'false'}>Fit</button>
      <button type="button" class="quiet" aria-label="Longer time axis" onClick=${() => step(1)} disabled=${zoom === ZOOMS.length}>+</button>
    </div>
    <div class=${side ? 'runs abreast' : 'runs'}>
      ${invocations.map((invocation, index) => html`<${Run} key=${invocation.traceId} invocation=${invocation} box=${index === 0 ? box : undefined}
        pixelsPerMs=${pixelsPerMs} width=${longest * pixelsPerMs} selected=${selected} onSelect=${onSelect} />`)}
    </div>
    ${invocations.length > 1 && html`<${Comparison} invocations=${invocations} />`}
  </div>`;
}

/** The width of an element, kept up to date. */
function useWidth(box, changes) {
  const [width, setWidth] = useState(640);
  useEffect(() => {
    if (!box.current) return undefined;
    const measure = () => setWidth(box.current?.clientWidth || 640);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, changes);
  return width;
}

function Run({ invocation, box, pixelsPerMs, width, selected, onSelect }) {
  const svg = useRef(null);
  const tokens = useMemo(() => callTokens(invocation), [invocation]);
  const drawn = useMemo(() => bars(invocation.nodes.slice(0, MOST_BARS), pixelsPerMs, width), [invocation, pixelsPerMs, width]);
  const places = useMemo(() => drawn.map((bar) => ({ id: bar.node.id, x: bar.x + bar.width / 2, y: bar.node.lane * LANE })), [drawn]);
  const [focused, setFocused] = useState(invocation.nodes[0]?.id);
  const height = AXIS + Math.max(1, invocation.lanes) * LANE + 4;
  const keyed = (event) => {
    const current = places.find((place) => place.id === event.target.closest('[data-call]')?.dataset.call);
    if (!current || event.ctrlKey || event.metaKey || event.altKey) return;
    let next = null;
    if (event.key === 'Enter' || event.key === ' ') onSelect({ trace: invocation.traceId, call: current.id });
    else if (event.key === 'Home') [next] = places;
    else if (event.key === 'End') next = places.at(-1);
    else if (event.key.startsWith('Arrow')) next = neighbourInDirection(places, current, event.key);
    else return;
    event.preventDefault();
    if (!next) return;
    setFocused(next.id);
    svg.current.querySelector(`[data-call="${CSS.escape(next.id)}"]`)?.focus();
  };
  const isSelected = (node) => selected?.trace === invocation.traceId && selected.call === node.id;
  return html`<section class="run" aria-label=${`Run of ${new Date(invocation.startedAt).toLocaleString()}`}>
    <${RunHead} invocation=${invocation} />
    <div class="run-scroll" ref=${box}>
      ${invocation.nodes.length === 0
        ? html`<p class="fine run-empty">${invocation.cached ? 'The result came from the cache: nothing was called.' : 'Nothing was called.'}</p>`
        : html`<svg ref=${svg} class="invocation" width=${width + MARGIN * 2} height=${height} viewBox=${`${-MARGIN} 0 ${width + MARGIN * 2} ${height}`} role="group"
            aria-label="Calls on a time axis: arrow keys move between calls" onKeyDown=${keyed}>
          ${ticks(width / pixelsPerMs, width).map((at) => html`<g class="tick" transform=${`translate(${at * pixelsPerMs} 0)`}><line y1=${AXIS - 4} y2=${height} /><text y="13" text-anchor=${at === 0 ? 'start' : at * pixelsPerMs > width - TICK_PX / 2 + MARGIN ? 'end' : 'middle'}>${duration(at)}</text></g>`)}
          <line class="end" x1=${invocation.durationMs * pixelsPerMs} x2=${invocation.durationMs * pixelsPerMs} y1=${AXIS - 4} y2=${height} />
          <${Contains} invocation=${invocation} bars=${drawn} />
          <${Relations} invocation=${invocation} bars=${drawn} selected=${selected?.trace === invocation.traceId ? selected.call : null} />
          ${drawn.map((bar) => html`<${Call} key=${bar.node.id} bar=${bar} token=${tokens.get(bar.node.id)} tabbable=${focused === bar.node.id} selected=${isSelected(bar.node)}
            onSelect=${() => onSelect({ trace: invocation.traceId, call: bar.node.id })} onFocus=${() => setFocused(bar.node.id)} />`)}
        </svg>`}
    </div>
    <${Decisions} invocation=${invocation} />
  </section>`;
}

function RunHead({ invocation }) {
  const { nodes } = invocation;
  return html`<header class="invocation-head">
    <${Status} status=${invocation.status} />
    <span title=${exact(invocation.startedAt)}>${clock(invocation.startedAt)}</span>
    <span title=${`From the first call or the start to the end; ${duration(invocation.activeMs)} of it at work, without waiting for people`}>${duration(invocation.durationMs)}</span>
    <span>${plural(nodes.length, 'call')}${invocation.omitted > 0 && `, ${count(invocation.omitted)} more not kept`}${nodes.length > MOST_BARS && `, the first ${count(MOST_BARS)} drawn`}</span>
    <span class="run-intent soft"><${Text} text=${invocation.intent} /></span>
    ${!invocation.structureKnown && html`<${Mark} kind="warn" title="The program has changed since. Calls are matched by their tool only.">earlier structure</${Mark}>`}
    <a class="push" href=${href('run', { id: invocation.workflowId })}>Open the run</a>
  </header>
  ${invocation.error && html`<p class="problem"><span><code>${shown(invocation.error.code)}</code> <${Sentence} text=${invocation.error.message} /></span></p>`}`;
}

function Call({ bar, token, tabbable, selected, onSelect, onFocus }) {
  const { node } = bar;
  const y = AXIS + node.lane * LANE + (LANE - BAR) / 2;
  const marks = badges(node);
  const label = `${shown(node.id)}, ${duration(node.toMs - node.fromMs)} from ${duration(node.fromMs)}${marks.length ? `, ${marks.join(', ')}` : ''}${node.error ? `: ${shown(node.error.message)}` : ''}`;
  const classes = ['call', node.kind, node.status, ...['speculated', 'cached', 'mocked'].filter((name) => node[name]), selected ? 'selected' : ''].filter(Boolean).join(' ');
  const after = marks.length > 0 ? ` ${marks.map((mark) => SIGNS[mark.split(' ')[0]]).join('')}` : '';
  return html`<g class=${classes} data-call=${node.id} data-ids=${token} data-point=${token} role="button" tabindex=${tabbable ? 0 : -1} aria-pressed=${selected ? 'true' : 'false'}
    onClick=${onSelect} onFocus=${onFocus}>
    <title>${label}</title>
    <rect class="hit" x=${bar.x - 2} y=${y - 2} width=${bar.width + 4} height=${BAR + 4} rx="4" />
    <rect class="call-bar" x=${bar.x} y=${y} width=${bar.width} height=${BAR} rx="3" />
    ${bar.label
      ? html`<text aria-hidden="true" class=${bar.inside ? 'inside' : 'after'} x=${bar.inside ? bar.x + 6 : bar.x + bar.width + 5} y=${y + 14}>${shown(bar.label)}${bar.time && html`<tspan class="time"> ${bar.time}</tspan>`}${after && html`<tspan class="signs">${after}</tspan>`}</text>`
      : after && bar.width >= 6 + marks.length * 11 && html`<text aria-hidden="true" class="inside signs" x=${bar.x + 3} y=${y + 14}>${after.trim()}</text>`}
  </g>`;
}

const SIGNS = { error: '✕', unfinished: '…', retry: '↻', speculated: '»', cached: '◆', mocked: '○' };

/** A frame around what was called within a capability. */
function Contains({ invocation, bars: drawn }) {
  const parents = new Set(invocation.nodes.map((node) => node.parent).filter(Boolean));
  return drawn.filter((bar) => parents.has(bar.node.id)).map((bar) => {
    const inner = drawn.filter((other) => other.node.parent === bar.node.id);
    const last = Math.max(bar.node.lane, ...inner.map((other) => other.node.lane));
    const end = Math.max(bar.x + bar.width, ...inner.map((other) => other.x + other.width));
    return html`<rect class="contains" x=${bar.x - 3} y=${AXIS + bar.node.lane * LANE} width=${end - bar.x + 6} height=${(last - bar.node.lane + 1) * LANE} rx="5" />`;
  });
}

/** Which call was given a result of which, and which only came after which. The panel of a call says the same in words. */
function Relations({ invocation, bars: drawn, selected }) {
  const lines = useMemo(() => relations(invocation.edges, drawn, (lane) => AXIS + lane * LANE + LANE / 2), [invocation, drawn]);
  const near = (line) => line.from === selected || line.to === selected;
  const visible = lines.length <= MOST_LINES ? lines : lines.filter((line) => line.kind === 'dependency' || near(line)).slice(0, MOST_LINES);
  return html`<g aria-hidden="true">${visible.map((line) => html`<path key=${`${line.from} ${line.to}`} class=${`relation ${line.kind}${near(line) ? ' near' : ''}`} d=${curve(line.points)} />`)}</g>`;
}

function Decisions({ invocation }) {
  if (invocation.decisions.length === 0) return null;
  return html`<ul class="decisions" aria-label="Decisions">${invocation.decisions.map((decision) => html`
    <li data-ids=${invocation.structureKnown ? decision.nodeId : ''} data-point=${invocation.structureKnown ? decision.nodeId : undefined}>
      <${Code} text=${decision.condition || decision.nodeId} /> → <strong><${Text} text=${decision.taken} /></strong>${decision.times > 1 && html` <span class="soft">× ${count(decision.times)}</span>`}</li>`)}</ul>`;
}

/** How the runs differ: calls of each tool. */
function Comparison({ invocations }) {
  const rows = compareCalls(invocations);
  if (!rows.some((row) => row.differs)) return html`<p class="fine">All ${invocations.length} runs called the same tools equally often.</p>`;
  return html`<details class="comparison" open><summary>Calls by tool</summary><div class="table-scroll" tabindex="0" role="region" aria-label="Calls by tool"><table>
    <thead><tr><th scope="col">Tool</th>${invocations.map((invocation) => html`<th scope="col" class="num">${clock(invocation.startedAt)}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr class=${row.differs ? 'unequal' : ''}><th scope="row"><${Code} text=${row.tool} /></th>${row.counts.map((value) => html`<td class="num">${value}</td>`)}</tr>`)}</tbody>
  </table></div></details>`;
}

function Legend({ invocations }) {
  const has = (test) => invocations.some((invocation) => invocation.nodes.some(test));
  const entries = [
    ['ok', 'call', true],
    ['capability', 'capability', has((node) => node.kind === 'capability')],
    ['error', '✕ error', has((node) => node.status === 'error')],
    ['unfinished', '… unfinished', has((node) => node.status === 'unfinished')],
    ['retry', '↻ retry', has((node) => node.retries > 0)],
    ['speculated', '» speculated', has((node) => node.speculated)],
    ['cached', '◆ cached', has((node) => node.cached)],
    ['mocked', '○ mocked', has((node) => node.mocked)],
  ];
  const related = (kind) => invocations.some((invocation) => invocation.edges.some((edge) => edge.kind === kind));
  const lines = [['dependency', 'result passed on'], ['sequence', 'came after']].filter(([kind]) => related(kind));
  return html`<ul class="picture-legend" aria-label="Bars and lines">${entries.filter(([, , is]) => is).map(([kind, text]) => html`<li><i class=${`swatch call-${kind}`}></i>${text}</li>`)}
    ${lines.map(([kind, text]) => html`<li><i class=${`swatch ${kind}`}></i>${text}</li>`)}</ul>`;
}
