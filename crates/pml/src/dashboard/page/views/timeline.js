// Calls on a time axis: where bars are, what fits into them, which lines lead from one to another, and which times stand below. Pure,
// so that Node tests it.

import { duration } from '../ui/format.js';

const STEPS = [1, 2, 5];
const CHARACTER_PX = 6.7;
/** The signs of marks, such as `✕`, are wider than letters. */
const SIGN_PX = 11;
/** A bar that lasts no time is still something to point at. */
const NARROWEST_PX = 5;

/** Times for the axis: round numbers, about `width / 110` of them, from 0 to the last one within `durationMs`. */
export function ticks(durationMs, width) {
  const total = Math.max(1, durationMs);
  const wanted = Math.max(2, Math.floor(width / 110));
  let power = 1;
  for (;;) {
    for (const step of STEPS) {
      const size = step * power;
      if (total / size <= wanted) {
        const times = [];
        for (let at = 0; at <= total + 1e-9; at += size) times.push(at);
        return times;
      }
    }
    power *= 10;
  }
}

/**
 * Bars of an invocation: `{ node, x, width, label, time, inside }` in pixels for `pixelsPerMs`. A label stands in its bar, or after it
 * where its lane is free, with the duration if there is room for both; where there is none it is cut, or left out.
 */
export function bars(nodes, pixelsPerMs, limit) {
  const placed = nodes.map((node) => ({
    node,
    x: node.fromMs * pixelsPerMs,
    width: Math.max(NARROWEST_PX, (node.toMs - node.fromMs) * pixelsPerMs),
    label: '',
    time: '',
    inside: true,
  }));
  const byLane = new Map();
  for (const bar of placed) {
    if (!byLane.has(bar.node.lane)) byLane.set(bar.node.lane, []);
    byLane.get(bar.node.lane).push(bar);
  }
  for (const lane of byLane.values()) {
    lane.sort((one, other) => one.x - other.x);
    uncover(lane, limit);
    lane.forEach((bar, index) => {
      const text = bar.node.id;
      const marks = badges(bar.node).length;
      const signs = marks > 0 ? marks * SIGN_PX + CHARACTER_PX : 0;
      const room = text.length * CHARACTER_PX + 14 + signs;
      const time = duration(bar.node.toMs - bar.node.fromMs);
      const roomy = room + (time.length + 1) * CHARACTER_PX;
      const after = (lane[index + 1]?.x ?? limit) - (bar.x + bar.width);
      if (bar.width >= room) Object.assign(bar, { label: text, time: bar.width >= roomy ? time : '', inside: true });
      else if (after >= room) Object.assign(bar, { label: text, time: after >= roomy ? time : '', inside: false });
      else if (bar.width >= 44 + signs) Object.assign(bar, { label: `${text.slice(0, Math.floor((bar.width - 20 - signs) / CHARACTER_PX))}…`, inside: true });
    });
  }
  return placed;
}

/**
 * Moves bars that begin where the one before is drawn: times are whole milliseconds, so that short calls have the same. What that
 * moves beyond the end goes back, and those before it with it.
 */
function uncover(lane, limit) {
  if (lane.length * (NARROWEST_PX + 1) > limit) return;
  for (let index = 1; index < lane.length; index += 1) {
    const [before, bar] = [lane[index - 1], lane[index]];
    const free = before.x + before.width;
    if (bar.x < free) {
      bar.width = Math.max(NARROWEST_PX, bar.x + bar.width - free - 1);
      bar.x = free + 1;
    }
  }
  let end = limit;
  for (let index = lane.length - 1; index >= 0 && lane[index].x + lane[index].width > end; index -= 1) {
    const bar = lane[index];
    bar.x = Math.min(bar.x, end - NARROWEST_PX);
    bar.width = end - bar.x;
    end = bar.x - 1;
  }
}

/** Shorter lines than this say nothing: the bars touch. */
const SHORTEST_LINE_PX = 4;

/**
 * Lines between bars, `{ from, to, kind, points }` with two `[x, y]` each: `dependency` where a result was passed on, `sequence` where
 * one call only came after another. `middle(lane)` is the height of a lane. A pair has one line; what lies within something has a
 * frame instead.
 */
export function relations(edges, drawn, middle) {
  const byId = new Map(drawn.map((bar) => [bar.node.id, bar]));
  const pairs = new Map();
  for (const { from, to, kind } of edges) {
    const [one, other] = [byId.get(from), byId.get(to)];
    if (kind === 'contains' || !one || !other) continue;
    const key = `${one.node.id}\n${other.node.id}`;
    if (pairs.get(key)?.kind === 'dependency') continue;
    const points = [[one.x + one.width, middle(one.node.lane)], [other.x, middle(other.node.lane)]];
    const touches = one.node.lane === other.node.lane && points[1][0] - points[0][0] < SHORTEST_LINE_PX;
    if (!touches) pairs.set(key, { from, to, kind, points });
  }
  return [...pairs.values()];
}

/** The `d` of a curve that leaves and arrives level, also where a bar begins before the end of the other. */
export function curve([[x1, y1], [x2, y2]]) {
  // Where there is hardly any room between them, a bend would be a knot.
  const bend = x2 - x1 > 16 ? Math.min(40, (x2 - x1) / 2) : 3;
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

/** What is to be said of a call beside its name: `error`, `retry 2`, `speculated`, `cached`, `mocked`, `unfinished`. */
export function badges(node) {
  const found = [];
  if (node.status !== 'ok') found.push(node.status);
  if (node.retries > 0) found.push(`retry ${node.retries}`);
  for (const name of ['speculated', 'cached', 'mocked']) if (node[name]) found.push(name);
  return found;
}

/** The tools of several runs and how often each run called them, for comparing: `{ tool, counts, differs }`. */
export function compareCalls(invocations) {
  const tools = new Map();
  invocations.forEach((invocation, index) => {
    for (const node of invocation.nodes) {
      if (!tools.has(node.label)) tools.set(node.label, invocations.map(() => 0));
      tools.get(node.label)[index] += 1;
    }
  });
  return [...tools].sort().map(([tool, counts]) => ({ tool, counts, differs: new Set(counts).size > 1 }));
}
