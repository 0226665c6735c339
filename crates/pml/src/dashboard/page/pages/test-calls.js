// The calls of a dry run as calls of a run, for the timeline. Pure, so that Node tests it.

/** `{ run, calls }` as the timeline takes them. The clock is that of the program: timers fire at once. */
export function reportCalls(report) {
  const calls = report.capturedCalls.map((call) => ({
    call: call.call, tool: `${call.server}:${call.tool}`, nodeId: call.nodeId, startedAt: call.timestamp, durationMs: call.durationMs, status: call.error ? 'error' : 'ok', error: call.error,
    retries: 0, speculated: false, cached: false, mocked: call.origin !== 'real',
  }));
  const startedAt = calls.length ? Math.min(...calls.map((call) => call.startedAt)) : 0;
  const endedAt = calls.length ? Math.max(...calls.map((call) => call.startedAt + call.durationMs)) : 0;
  return { run: { status: 'done', startedAt, endedAt, durationMs: endedAt - startedAt, calls: calls.length, questions: [], spans: [] }, calls };
}
