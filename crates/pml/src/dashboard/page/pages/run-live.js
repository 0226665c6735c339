// What events say of a run that is shown. Pure, so that Node tests it.

/**
 * The calls after events of the same run, `[name, event]` each: new ones are put in their places, the others get what is new. Gives
 * `calls` itself where no event says anything about a call. What only events said is marked `told`: it lacks what they leave out.
 */
export function callsAfter(calls, events) {
  const ended = events.filter(([name]) => name === 'task_start' || name === 'task_complete');
  if (ended.length === 0) return calls;
  // One copy for all events of a frame: a busy run tells of hundreds of calls a second.
  const next = [...calls];
  let changed = false;
  for (const [name, event] of ended) {
    const at = placeOf(next, event.call);
    const known = next[at]?.call === event.call ? next[at] : undefined;
    if (name === 'task_start' && known) continue;
    next.splice(at, known ? 1 : 0, name === 'task_start' ? started(event) : completed(event, known));
    changed = true;
  }
  return changed ? next : calls;
}

function started(event) {
  return {
    call: event.call, tool: event.tool, nodeId: event.nodeId, startedAt: event.at, durationMs: 0, status: 'running', retries: 0,
    speculated: false, cached: false, mocked: false, told: true,
  };
}

function completed(event, known) {
  return {
    retries: 0, cached: false, mocked: false, nodeId: event.nodeId, ...known, call: event.call, tool: event.tool,
    startedAt: known?.startedAt ?? event.at - event.durationMs, durationMs: event.durationMs, status: event.status,
    speculated: event.speculated === true, resultBytes: event.resultSize ?? known?.resultBytes, told: true,
    ...(event.savedMs === undefined ? {} : { savedMs: event.savedMs }), ...(event.status === 'error' && event.resultPreview ? { error: { message: event.resultPreview } } : {}),
  };
}

/** Calls with those of a page put in their places. An end that was heard while the page was on its way is not taken back. */
export function withPage(calls, page) {
  if (page.length === 0) return calls;
  const read = new Map(page.map((call) => [call.call, call]));
  const kept = calls.map((call) => {
    const fresh = read.get(call.call);
    read.delete(call.call);
    return fresh && (isOver(fresh) || !isOver(call)) ? fresh : call;
  });
  if (read.size === 0) return kept;
  return [...kept, ...read.values()].sort((one, other) => one.call - other.call);
}

/**
 * The number after which to read on: before the first call after `after` that was not read or had not ended when it was. `readTo` is
 * the last number that was read.
 */
export function readFrom(calls, after, readTo) {
  for (let at = placeOf(calls, after + 1); at < calls.length && calls[at].call <= readTo; at += 1) {
    if (calls[at].told || !isOver(calls[at])) return calls[at].call - 1;
  }
  return Math.max(after, readTo);
}

function isOver(call) {
  return call.status === 'ok' || call.status === 'error' || call.status === 'cancelled';
}

/** Calls come in order of issue, so that the place of one is found quickly among thousands. */
function placeOf(calls, number) {
  let [low, high] = [0, calls.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (calls[middle].call < number) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The calls of a DAG with how often each was tried before: a task makes one call, and another one for each time it is tried again. */
export function withAttempts(calls) {
  const tried = new Map();
  return calls.map((call) => {
    if (!call.nodeId || call.parent) return call;
    const before = tried.get(call.nodeId) ?? 0;
    tried.set(call.nodeId, before + 1);
    return before > 0 ? { ...call, retries: call.retries + before } : call;
  });
}

/** The end of the axis of a run that goes on: it grows in steps, so that bars do not move all the time. */
export function growingEnd(start, now) {
  const past = Math.max(1000, now - start);
  const step = 1.3;
  return start + Math.ceil(1000 * step ** Math.ceil(Math.log(past / 1000) / Math.log(step)));
}
