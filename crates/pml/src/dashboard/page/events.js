// What happens in PML, while it happens: the stream of `GET /events`.
//
//   const stop = subscribe({ run_start(event) {…}, reset() {…} });     `'*'` hears all but `reset`
//
// `reset` means that events may have been missed, so that what is shown has to be loaded anew. A hidden tab holds no
// stream: browsers allow six connections to a server, and six forgotten tabs would leave none for the seventh.

import { connection, get, reconnected } from './api.js';
import { effect } from './html.js';

export const EVENTS = [
  'run_start', 'task_start', 'task_complete', 'layer_complete', 'decision_required', 'approval_required', 'progress',
  'log', 'capability_start', 'capability_end', 'capability_hint', 'run_end',
];
/** The stream is closed this long after the tab was hidden, so that changing tabs costs nothing. */
const HIDDEN_MS = 20_000;
const RETRY_MS = [500, 1000, 2000, 4000, 8000];

const listeners = new Set();
let source = null;
let started = false;
let failures = 0;
let timer = null;
let lastId = '';
let seen = 0;

/** Hears events by name until the returned function is called. */
export function subscribe(handlers) {
  listeners.add(handlers);
  return () => listeners.delete(handlers);
}

/** Opens the stream, and keeps it open. */
export function start() {
  if (started) return;
  started = true;
  open();
  let hidden = null;
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hidden);
    if (document.hidden) {
      hidden = setTimeout(close, HIDDEN_MS);
    } else if (!source) {
      failures = 0;
      open();
    }
  });
  // A gateway that is back has lost its stream, however the loss was noticed.
  effect(() => {
    if (!connection.value.lost && source === null && !document.hidden && started) retry();
  });
}

function open() {
  clearTimeout(timer);
  if (source || document.hidden) return;
  const missed = seen > 0;
  const stream = new EventSource(lastId ? `/events?lastEventId=${encodeURIComponent(lastId)}` : '/events');
  source = stream;
  stream.addEventListener('open', () => {
    // A stream of our own making cannot send `Last-Event-ID` as a header.
    if (failures > 0 || missed) tell('reset', {});
    failures = 0;
    seen += 1;
  });
  stream.addEventListener('reset', (event) => {
    lastId = event.lastEventId;
    tell('reset', {});
  });
  for (const name of EVENTS) stream.addEventListener(name, (event) => hear(name, event));
  stream.addEventListener('error', () => {
    // While the state is CONNECTING the browser tries again by itself, with `Last-Event-ID`.
    if (stream.readyState !== EventSource.CLOSED) {
      failures += 1;
      get('/health', { quiet: true }).catch(() => {});
      return;
    }
    close();
    failures += 1;
    retry();
  });
}

function close() {
  source?.close();
  source = null;
}

/** The server refused the stream or is away. Reading the session finds out which, and asks to sign in if it is that. */
function retry() {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    try {
      await reconnected();
      if (failures > 1) await get('/api/session');
      open();
    } catch {
      failures += 1;
      retry();
    }
  }, RETRY_MS[Math.min(failures, RETRY_MS.length) - 1] ?? 0);
}

function hear(name, event) {
  if (event.lastEventId) lastId = event.lastEventId;
  let data;
  try {
    data = JSON.parse(event.data);
  } catch {
    return;
  }
  tell(name, data);
}

function tell(name, data) {
  for (const handlers of [...listeners]) {
    if (name !== 'reset') handlers['*']?.(data, name);
    handlers[name]?.(data, name);
  }
}

