// Times that stay true while the page is open.

import { html, signal, useEffect, useState } from '../html.js';
import { ago, exact } from './format.js';

/** The time now, moving on every five seconds while the tab is seen. */
export const now = signal(Date.now());
if (typeof document !== 'undefined') {
  setInterval(() => {
    if (!document.hidden) now.value = Date.now();
  }, 5000);
  document.addEventListener('visibilitychange', () => { now.value = Date.now(); });
}

/** "5 min ago", with the exact time as title. */
export function Ago({ at }) {
  if (!at) return '–';
  return html`<time datetime=${new Date(at).toISOString()} title=${exact(at)}>${ago(at, Math.max(now.value, at))}</time>`;
}

/** The time now, every half second while `running`. */
export function useTick(running) {
  const [time, setTime] = useState(Date.now());
  useEffect(() => {
    if (!running) return undefined;
    const timer = setInterval(() => { if (!document.hidden) setTime(Date.now()); }, 500);
    return () => clearInterval(timer);
  }, [running]);
  return time;
}
