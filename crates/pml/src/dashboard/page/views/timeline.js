// Calls on a time axis: where bars are, what fits into them, and which times stand below. Pure, so that Node tests it.

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
 * Bars of an invocation: `{ node, x, width, label, inside }` in pixels for `pixelsPerMs`. A label stands in its bar, or after it
 * where its lane is free; where neither has room it is cut, or left out.
 */
export function bars(nodes, pixelsPerMs, limit) {
  const placed = nodes.map((node) => ({
    node,
    x: node.fromMs * pixelsPerMs,
    width: Math.max(NARROWEST_PX, (node.toMs - node.fromMs) * pixelsPerMs),
    label: '',
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
      const end = lane[index + 1]?.x ?? limit;
      if (bar.width >= room) Object.assign(bar, { label: text, inside: true });
      else if (end - (bar.x + bar.width) >= room) Object.assign(bar, { label: text, inside: false });
      else if (bar.width >= 44 + signs) Object.assign(bar, { label: `${text.slice(0, Math.floor((bar.width - 20 - signs) / CHARACTER_PX))}…`, inside: true });
    });
  }
  return placed;
}

/** Moves bars that begin where the one before is drawn: times are whole milliseconds, so that short calls have the same. */
function uncover(lane, limit) {
  for (let index = 1; index < lane.length; index += 1) {
    const [before, bar] = [lane[index - 1], lane[index]];
    const free = before.x + before.width;
    if (bar.x < free && free + NARROWEST_PX < limit) {
      bar.width = Math.max(NARROWEST_PX, bar.x + bar.width - free - 1);
      bar.x = free + 1;
    }
  }
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
