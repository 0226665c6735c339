// A run as rows of a tree on an axis of time. Pure, so that Node tests it.

/** A pause is shortened on the axis if it takes more than this share of the time in which something happened. */
const LONG_SHARE = 0.15;
const LONG_MS = 1500;
/** The share of the axis that a shortened pause takes. */
const PAUSE_SHARE = 0.035;

/**
 * The rows: calls of a capability below a row for that capability, with questions and pauses between, in order of time.
 * A row is `{ key, kind: 'call'|'capability'|'question'|'gap', depth, from, to, call?, frame?, question?, children, open }`.
 * `closed` has the keys of rows whose children are folded away.
 */
export function buildRows({ calls, questions = [], spans = [], closed = new Set(), now = Date.now() }) {
  const top = [];
  const frames = new Map();
  /** The latest frame that a node called, by the path of that node. */
  const frameOfNode = new Map();
  for (const call of calls) {
    const item = { key: `c${call.call}`, kind: 'call', call, from: call.startedAt, to: endOf(call, now) };
    const { parent } = call;
    if (parent === undefined || parent === null) {
      top.push(item);
      continue;
    }
    let frame = frames.get(parent.frame);
    if (!frame) {
      frame = { key: `f${parent.frame}`, kind: 'capability', frame: parent, from: item.from, to: item.to, items: [], failed: 0, above: undefined };
      frames.set(parent.frame, frame);
      // `n3/n1` is node `n1` of the capability that `n3` calls.
      const path = parent.nodeId ?? '';
      frame.above = frameOfNode.get(path.slice(0, Math.max(0, path.lastIndexOf('/'))));
      frameOfNode.set(path, frame);
      (frame.above?.items ?? top).push(frame);
    }
    frame.items.push(item);
    if (call.status === 'error' || call.status === 'in_doubt') frame.failed += 1;
    for (let around = frame; around; around = around.above) {
      around.from = Math.min(around.from, item.from);
      around.to = Math.max(around.to, item.to);
    }
  }
  for (const question of questions) {
    top.push({ key: `q${question.id}`, kind: 'question', question, from: question.askedAt, to: question.answeredAt ?? now });
  }
  for (const gap of gapsOf(spans)) top.push({ key: `g${gap.from}`, kind: 'gap', from: gap.from, to: gap.to });
  // Calls come in order of issue; a stable sort keeps that for those of the same millisecond.
  top.sort((one, other) => one.from - other.from);
  const rows = [];
  const add = (items, depth) => {
    for (const item of items) {
      const children = item.items?.length ?? 0;
      const open = children > 0 && !closed.has(item.key);
      rows.push({ ...item, depth, children, open });
      if (open) add(item.items, depth + 1);
    }
  };
  add(top, 0);
  return rows;
}

function endOf(call, now) {
  if (Number.isFinite(call.durationMs) && call.status !== 'running') return call.startedAt + call.durationMs;
  return call.status === 'running' || call.status === 'waiting' ? Math.max(now, call.startedAt) : call.startedAt;
}

/** The periods between two periods of work: no process had the run then. */
export function gapsOf(spans) {
  const sorted = [...spans].filter((span) => Number.isFinite(span.from)).sort((one, other) => one.from - other.from);
  const gaps = [];
  for (let index = 1; index < sorted.length; index += 1) {
    const [from, to] = [sorted[index - 1].to ?? sorted[index].from, sorted[index].from];
    if (to > from) gaps.push({ from, to });
  }
  return gaps;
}

/**
 * The axis of time from `start` to `end`: `at(time)` is a place from 0 to 1, `pauses` are `{ from, to, kind }` that are drawn
 * shorter than they were, because a night between two calls would leave nothing of either; `ticks` are `{ at, ms }` with the
 * time that passed.
 */
export function timeAxis({ start, end, rows = [], width = 800, whole = true }) {
  const total = Math.max(1, end - start);
  const busy = union(rows.filter((row) => row.kind === 'call').map((row) => [row.from, row.to]), start, end);
  const active = busy.reduce((sum, [from, to]) => sum + to - from, 0);
  const least = Math.max(LONG_MS, active * LONG_SHARE);
  const special = rows.filter((row) => row.kind !== 'call');
  const pauses = [];
  let before = start;
  // Where calls are still being read, what follows the last one is no pause.
  for (const [from, to] of whole ? [...busy, [end, end]] : busy) {
    // A pause that is all there is stays as it is: nothing is pressed together by it.
    if (from - before > least && active > 0) {
      const cause = special.find((row) => row.from < from && row.to > before);
      pauses.push({ from: before, to: from, kind: cause?.kind ?? 'idle' });
    }
    before = Math.max(before, to);
  }
  const shown = Math.min(PAUSE_SHARE, 0.4 / Math.max(1, pauses.length));
  const paused = pauses.reduce((sum, pause) => sum + pause.to - pause.from, 0);
  const perMs = (1 - shown * pauses.length) / Math.max(1, total - paused);
  const pieces = [];
  let place = 0;
  before = start;
  for (const pause of pauses) {
    place += (pause.from - before) * perMs;
    pieces.push({ ...pause, start: place, end: place + shown });
    place += shown;
    before = pause.to;
  }
  const at = (time) => {
    const wanted = Math.max(start, Math.min(end, time));
    let from = start;
    let placed = 0;
    for (const piece of pieces) {
      if (wanted <= piece.from) break;
      if (wanted < piece.to) return piece.start + ((wanted - piece.from) / (piece.to - piece.from)) * (piece.end - piece.start);
      from = piece.to;
      placed = piece.end;
    }
    return Math.min(1, placed + (wanted - from) * perMs);
  };
  return { at, pauses: pieces, ticks: ticksOf({ start, end, at, pieces, perMs, width }) };
}

/** Intervals put together where they touch, cut to `[start, end]`. */
function union(intervals, start, end) {
  const sorted = intervals.filter(([from, to]) => to >= from).sort((one, other) => one[0] - other[0]);
  const joined = [];
  for (const [from, to] of sorted) {
    const [low, high] = [Math.max(start, from), Math.min(end, Math.max(to, from + 1))];
    const last = joined[joined.length - 1];
    if (last && low <= last[1]) last[1] = Math.max(last[1], high);
    else if (high >= low) joined.push([low, high]);
  }
  return joined;
}

/** Round times, as many as there is room for. */
function ticksOf({ start, end, at, pieces, perMs, width }) {
  const wanted = Math.max(2, Math.floor(width / 110));
  const step = roundStep(1 / perMs / wanted);
  const ticks = [{ at: 0, ms: 0 }];
  let last = 0;
  for (let ms = step; ms <= end - start && ticks.length < 40; ms += step) {
    const inside = pieces.find((piece) => start + ms > piece.from && start + ms < piece.to);
    if (inside) {
      ms = Math.floor((inside.to - start) / step) * step;
      continue;
    }
    const place = at(start + ms);
    if (place - last >= 0.8 / wanted && place < 0.97) {
      ticks.push({ at: place, ms });
      last = place;
    }
  }
  return ticks;
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000];

function roundStep(least) {
  return STEPS.find((step) => step >= least) ?? Math.ceil(least / 3_600_000) * 3_600_000;
}

/** Lanes for an overview: each call gets the first lane that is free, at most `most`. */
export function lanesOf(rows, most = 16) {
  const free = [];
  return rows.filter((row) => row.kind === 'call').map((row) => {
    let lane = free.findIndex((until) => until <= row.from);
    if (lane < 0) lane = free.length < most ? free.length : row.call.call % most;
    free[lane] = Math.max(free[lane] ?? 0, row.to);
    return { row, lane };
  });
}
