// The status of a run, a call or a server: always a word beside the colour.

import { html } from '../html.js';
import { Text, plain } from './text.js';

const KINDS = {
  ok: ['ok', 'success', 'succeeded', 'completed', 'done', 'finished', 'running_ok', 'connected', 'ready', 'viable', 'accepted', 'built_in'],
  live: ['running', 'going', 'queued', 'starting', 'started', 'connecting', 'pending'],
  wait: ['waiting', 'waiting_for_approval', 'paused', 'in_doubt', 'suspended', 'interrupted', 'approval_required', 'quarantined', 'needs_approval', 'awaiting_acceptance', 'sign_in_required'],
  bad: ['error', 'failed', 'failure', 'denied', 'expired', 'crashed', 'unavailable', 'broken', 'lost', 'down'],
};
const KIND_OF = new Map(Object.entries(KINDS).flatMap(([kind, names]) => names.map((name) => [name, kind])));

/** `ok`, `live`, `wait`, `bad` or `idle`. */
export function kindOf(status) {
  return KIND_OF.get(String(status ?? '').toLowerCase().replaceAll(' ', '_').replaceAll('-', '_')) ?? 'idle';
}

export function Status({ status, label = status, title }) {
  const words = String(label ?? '–').replaceAll('_', ' ');
  return html`<span class="status" data-kind=${kindOf(status)} title=${title && plain(title)}><i aria-hidden="true"></i><span><${Text} text=${words} /></span></span>`;
}

/** A small mark: `speculated`, `cached`, `mocked`, a scope. */
export function Mark({ kind = '', title, children }) {
  return html`<span class="mark" data-mark=${kind} title=${title && plain(title)}>${children}</span>`;
}
