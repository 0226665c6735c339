// What events say of a run that is shown. Pure, so that Node tests it.

/**
 * The calls after an event of the same run: a new one at its end, or the same with what is new. Gives `calls` itself where
 * the event says nothing about a call.
 */
export function callsAfter(calls, name, event) {
  if (name !== 'task_start' && name !== 'task_complete') return calls;
  const at = indexOf(calls, event.call);
  const known = calls[at];
  if (name === 'task_start') {
    if (known) return calls;
    const started = {
      call: event.call, tool: event.tool, nodeId: event.nodeId, startedAt: event.at, durationMs: 0, status: 'running', retries: 0,
      speculated: false, cached: false, mocked: false,
    };
    return inserted(calls, started);
  }
  const startedAt = known?.startedAt ?? event.at - event.durationMs;
  const ended = {
    retries: 0, cached: false, mocked: false, nodeId: event.nodeId, ...known, call: event.call, tool: event.tool, startedAt, durationMs: event.durationMs, status: event.status,
    speculated: event.speculated === true, resultBytes: event.resultSize ?? known?.resultBytes,
    ...(event.savedMs === undefined ? {} : { savedMs: event.savedMs }), ...(event.status === 'error' && event.resultPreview ? { error: { message: event.resultPreview } } : {}),
  };
  return known ? calls.with(at, ended) : inserted(calls, ended);
}

/** Calls come in order of issue, so that the place of one is found quickly among thousands. */
function indexOf(calls, number) {
  let [low, high] = [0, calls.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (calls[middle].call < number) low = middle + 1;
    else high = middle;
  }
  return calls[low]?.call === number ? low : -1;
}

function inserted(calls, call) {
  const place = calls.findLastIndex((known) => known.call < call.call) + 1;
  return calls.toSpliced(place, 0, call);
}

/** The end of the axis of a run that goes on: it grows in steps, so that bars do not move all the time. */
export function growingEnd(start, now) {
  const past = Math.max(1000, now - start);
  const step = 1.3;
  return start + Math.ceil(1000 * step ** Math.ceil(Math.log(past / 1000) / Math.log(step)));
}
