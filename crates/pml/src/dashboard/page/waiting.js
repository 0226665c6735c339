// What waits for a person: open questions and tools in quarantine, for the inbox and for the number beside its name.

import { get } from './api.js';
import { subscribe } from './events.js';
import { signal } from './html.js';

const EVERY_MS = 10_000;
/** While the inbox is open. */
const SOON_MS = 2000;

/** `{ approvals, tools, count, loaded }`. */
export const waiting = signal({ approvals: [], tools: [], count: 0, loaded: false });
/** Set by the inbox: what is not heard of by an event, such as an answer in a terminal, is seen soon. */
export const watched = signal(false);

let timer = null;
let asking = null;

/** Looks now. Calls while it looks are one more look. */
export function look() {
  clearTimeout(timer);
  asking ??= once().finally(() => {
    asking = null;
    timer = setTimeout(look, watched.value ? SOON_MS : EVERY_MS);
  });
  return asking;
}

async function once() {
  try {
    const [questions, quarantine] = await Promise.all([get('/api/approvals'), get('/api/quarantine')]);
    const known = waiting.value;
    const [approvals, tools] = [questions.approvals ?? [], quarantine.tools ?? []];
    if (known.loaded && known.approvals === approvals && known.tools === tools) return;
    waiting.value = { approvals, tools, count: approvals.length + tools.length, loaded: true };
  } catch {
    // `get` waits for a gateway that is away and asks to sign in; what is left is shown by the page that is open.
  }
}

/** Begins to look, again and again. */
export function watchWaiting() {
  look();
  subscribe({ approval_required: look, decision_required: look, run_end: look, reset: look });
}
