// Where the person is: the address, and going elsewhere without loading the page anew.

import { signal } from './html.js';
import { match } from './router.js';

/** The present place: `{ path, search, page, params, moved }`; `moved` is false for the page that was loaded first. */
export const route = signal(typeof location === 'undefined' ? null : read(false));

function read(moved) {
  const found = match(location.pathname);
  return { path: location.pathname, search: location.search, page: found?.page ?? null, params: found?.params ?? {}, moved };
}

/** The names of the pages that there are; app.js fills it in. Where a page is not offered, nothing links to it. */
export const offered = new Set();

/** Goes to a path of the dashboard. */
export function navigate(path) {
  go(path);
}

export function go(path, { replace = false } = {}) {
  if (path === location.pathname + location.search + location.hash) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', path);
  route.value = read(!replace);
}

/** Changes values of the query in place, without an entry in the history; an empty value removes its name. */
export function setQuery(values) {
  const query = currentQuery();
  for (const [name, value] of Object.entries(values)) {
    if (value === '' || value === null || value === undefined || value === false) query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  go(location.pathname + (text ? `?${text}` : '') + location.hash, { replace: true });
}

export function currentQuery() {
  return new URLSearchParams(location.search);
}

if (typeof window !== 'undefined') {
  window.addEventListener('popstate', () => { route.value = read(true); });
  document.addEventListener('click', (event) => {
    const link = event.target.closest?.('a[href]');
    if (!link || event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    if (link.target || link.hasAttribute('download') || link.origin !== location.origin || !match(link.pathname)) return;
    event.preventDefault();
    navigate(link.pathname + link.search + link.hash);
  });
}
