// Talks to PML. One place knows of ETags, of errors, of signing in, and of a gateway that is not there for a moment.
//
//   await get('/api/runs')                      the reply; throws ApiError
//   await send('POST', '/api/…', { … })         the same for everything that changes something
//
// - A reply that has not changed (304) is the very same object as before.
// - 401 opens the sign-in dialog and then repeats the request. Nothing that was typed is lost: the page stays.
// - If PML does not answer, `get` waits and tries again until it does; `connection` says so meanwhile. `send` does not
//   repeat anything by itself: nobody knows whether the request arrived. It throws an ApiError with code UNREACHABLE.

import { signal } from './html.js';

const RETRY_MS = [400, 800, 1600, 3200, 5000];
/** How many replies are kept to be compared by ETag. */
const KEPT_REPLIES = 60;
const CSRF_KEY = 'pml-csrf';
const NOTICE_KEY = 'pml-notice';

/** Who looks at the page: the reply of `GET /api/session`, or `null` before it is known. */
export const session = signal(null);
/** `{ lost: false }`, or `{ lost: true, retryAt }` while PML does not answer. */
export const connection = signal({ lost: false });
/** The sign-in that is under way: `{ reason, done(signedIn) }`, or `null`. The shell shows it as a dialog. */
export const signInRequest = signal(null);

/** What PML answered instead of what was asked for. */
export class ApiError extends Error {
  constructor(status, { code = 'ERROR', message = `PML answers with an error (${status})`, hint, ...details } = {}) {
    super(message);
    this.name = 'ApiError';
    Object.assign(this, { status, code, hint, details });
  }

  /** The message with the hint, in one line. */
  get text() {
    return this.hint ? `${this.message}: ${this.hint}` : this.message;
  }
}

const replies = new Map();
let signingIn = null;
let waiting = null;

/** Reads. `options`: `signal` to cancel, `quiet` to fail at once instead of asking to sign in or waiting for PML. */
export async function get(path, { signal: abort, quiet = false } = {}) {
  for (let attempt = 0; ; attempt += 1) {
    const known = replies.get(path);
    let response;
    try {
      const headers = known ? { 'if-none-match': known.tag } : {};
      response = await fetch(path, { headers, cache: 'no-store', signal: abort });
    } catch (error) {
      if (abort?.aborted) throw error;
      const unreachable = lost();
      if (quiet) throw unreachable;
      await reconnected(abort);
      continue;
    }
    found();
    if (response.status === 304 && known) return known.body;
    const body = await read(response);
    if (response.ok) {
      remember(path, response.headers.get('etag'), body);
      return body;
    }
    const error = new ApiError(response.status, body?.error);
    if (!asksToSignIn(error) || quiet || attempt > 1) throw error;
    await signIn(error.message);
  }
}

/** Changes something. Asks for the passphrase where that is needed, then sends the same again. */
export async function send(method, path, body, { signal: abort } = {}) {
  for (let attempt = 0; ; attempt += 1) {
    let response;
    try {
      const headers = { 'x-pml-csrf': localStorage.getItem(CSRF_KEY) ?? '' };
      if (body !== undefined) headers['content-type'] = 'application/json';
      response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal: abort });
    } catch (error) {
      if (abort?.aborted) throw error;
      throw lost();
    }
    found();
    const reply = response.status === 204 ? null : await read(response);
    if (response.ok) {
      replies.clear();
      return reply;
    }
    const error = new ApiError(response.status, reply?.error);
    if (!asksToSignIn(error) || attempt > 1) throw error;
    await signIn(error.message);
  }
}

/** Asks who looks, for instance after signing in. */
export async function refreshSession(options) {
  session.value = await get('/api/session', options);
  return session.value;
}

/**
 * Opens the sign-in dialog, once for all who need it, and returns after the person has signed in.
 * Throws an ApiError with code SIGN_IN_CANCELLED if the person closes it.
 */
export function signIn(reason = '') {
  signingIn ??= new Promise((resolve, reject) => {
    signInRequest.value = {
      reason,
      done(signedIn) {
        signInRequest.value = null;
        signingIn = null;
        if (signedIn) resolve();
        else reject(new ApiError(401, { code: 'SIGN_IN_CANCELLED', message: 'nothing was sent: this needs your passphrase' }));
      },
    };
  });
  return signingIn;
}

/**
 * Sends the passphrase, with a name unless it is the operator's; throws an ApiError if it is not the right one. Returns
 * whether the page goes on: what it shows and what it was about to send belong to the person that it was loaded for.
 */
export async function login(passphrase, name = '') {
  let response;
  try {
    response = await fetch('/login', { method: 'POST', body: new URLSearchParams({ name, passphrase }) });
  } catch {
    throw lost();
  }
  found();
  const reply = await read(response);
  if (!response.ok) throw new ApiError(response.status, reply?.error);
  localStorage.setItem(CSRF_KEY, reply.csrf);
  replies.clear();
  const before = session.value?.principal;
  const now = await refreshSession({ quiet: true }).catch(() => null);
  if (before === undefined || before === now?.principal) return true;
  if (signInRequest.value?.reason && now) {
    sessionStorage.setItem(NOTICE_KEY, `You are signed in as \`${now.principal}\`. The page showed what belongs to \`${before}\`, so nothing was sent and it was loaded anew.`);
  }
  location.reload();
  return false;
}

/** Ends the session of the person; a viewer stays one, and sees what the operator has. */
export async function logout() {
  await fetch('/logout', { method: 'POST', headers: { 'x-pml-csrf': localStorage.getItem(CSRF_KEY) ?? '' } });
  localStorage.removeItem(CSRF_KEY);
  replies.clear();
  const before = session.value?.principal;
  const now = await refreshSession({ quiet: true }).catch(() => null);
  if (!now) location.assign('/login');
  else if (now.principal !== before) location.reload();
}

/** What the page before this one had to say; it is said once. */
export function takeNotice() {
  const text = sessionStorage.getItem(NOTICE_KEY);
  sessionStorage.removeItem(NOTICE_KEY);
  return text;
}

/** Waits until PML answers again; at once if nothing is wrong. */
export function reconnected(abort) {
  if (!connection.value.lost) return Promise.resolve();
  waiting ??= probe().finally(() => { waiting = null; });
  if (!abort) return waiting;
  return new Promise((resolve, reject) => {
    abort.addEventListener('abort', () => reject(abort.reason), { once: true });
    waiting.then(resolve, reject);
  });
}

/** Tries at once instead of waiting for the next attempt. */
export function retryNow() {
  wake?.();
}

let wake = null;

async function probe() {
  for (let attempt = 0; connection.value.lost; attempt += 1) {
    const pause = RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)];
    connection.value = { lost: true, retryAt: Date.now() + pause };
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, pause);
      wake = () => { clearTimeout(timer); resolve(); };
    });
    try {
      // Whatever answers here is PML, or a proxy that says it is not there.
      const response = await fetch('/health', { cache: 'no-store' });
      if (response.ok) found();
    } catch {
      // Not yet.
    }
  }
}

/** Notes that PML does not answer. */
export function lost() {
  if (!connection.value.lost) connection.value = { lost: true, retryAt: Date.now() };
  reconnected().catch(() => {});
  return new ApiError(0, {
    code: 'UNREACHABLE',
    message: 'PML does not answer, so it is not known whether this arrived',
    hint: 'try again when it is back',
  });
}

function found() {
  if (connection.value.lost) connection.value = { lost: false };
}

function asksToSignIn(error) {
  return error.status === 401 || error.code === 'SIGN_IN_REQUIRED' || error.code === 'MISSING_CSRF';
}

function remember(path, tag, body) {
  replies.delete(path);
  if (!tag) return;
  replies.set(path, { tag, body });
  if (replies.size > KEPT_REPLIES) replies.delete(replies.keys().next().value);
}

async function read(response) {
  try {
    return await response.json();
  } catch {
    return null;
  }
}
