// The dashboard: one application of small modules. This file knows the pages, the address, and what surrounds a page.
//
// A page is a module in `pages/` that exports
//
//   title                     a text, or `({ params, data }) => text`: what the tab is called
//   async load(context)       what the page shows first. `context` is `{ params, query, signal }`: the values of the path,
//                             the URLSearchParams, and an AbortSignal for `get`. Called again when path or query change
//                             and when `reload()` is called. Throw the ApiError on: the shell shows it. Optional.
//   view(props)               a component; `props` are the context with `data` (what `load` returned) and `reload()`
//
// and that is listed in PAGES below. While `load` runs again for the same page, the page stays as it is. To go somewhere:
// an `<a href>` with a path of the dashboard, or `navigate(path)`; `setQuery({ q: 'x' })` changes the query in place.
// Draw with `html` of html.js, put text of others through `Text` of ui/text.js, talk through api.js, and hear events
// through events.js. The content security policy allows no inline script or style and no eval.

import { connection, logout, refreshSession, retryNow, session, signIn, signInRequest, takeNotice } from './api.js';
import * as events from './events.js';
import { Component, html, render, signal, useEffect, useState } from './html.js';
import { go, navigate, offered, route } from './navigation.js';
import { href } from './router.js';
import { SignIn } from './sign-in.js';
import { Dialog, confirmation } from './ui/dialog.js';
import { Empty, Loading, PageHead } from './ui/empty.js';
import { Problem, Sentence, Text, plain } from './ui/text.js';
import { waiting, watchWaiting } from './waiting.js';

/** The pages by their name in router.js. They are loaded when they are first opened. */
const PAGES = {
  runs: () => import('./pages/runs.js'),
  run: () => import('./pages/run.js'),
  inbox: () => import('./pages/inbox.js'),
  rules: () => import('./pages/rules.js'),
  capabilities: () => import('./pages/capabilities.js'),
  capability: () => import('./pages/capability.js'),
  graph: () => import('./pages/graph.js'),
  discover: () => import('./pages/discover.js'),
  test: () => import('./pages/test.js'),
  servers: () => import('./pages/servers.js'),
  savings: () => import('./pages/savings.js'),
};

for (const page of Object.keys(PAGES)) offered.add(page);

/** What stands in the navigation: page, text, and the key that leads there after `g`. */
const NAVIGATION = [
  ['runs', 'Runs', 'r'],
  ['inbox', 'Inbox', 'i'],
  ['rules', 'Rules', 'u'],
  ['capabilities', 'Capabilities', 'c'],
  ['graph', 'Graph', 'g'],
  ['discover', 'Discover', 'd'],
  ['test', 'Test', 't'],
  ['servers', 'Servers', 's'],
  ['savings', 'Savings', 'v'],
].filter(([page]) => PAGES[page]);

/** Pages that belong to another entry of the navigation. */
const PARENT = { run: 'runs', capability: 'capabilities' };

const showKeys = signal(false);
/** What is drawn: `{ page, params, query, module, data, error, path }`. */
const current = signal(null);
let loading = null;

async function load(place, { again = false } = {}) {
  loading?.abort();
  const abort = new AbortController();
  loading = abort;
  const query = new URLSearchParams(place.search);
  const { page, params } = place;
  const context = { params, query, signal: abort.signal };
  const same = current.value?.page === page && current.value.path === place.path;
  try {
    const module = await PAGES[page]();
    if (abort.signal.aborted) return;
    if (!same) current.value = { page, params, query, module: null, path: place.path };
    const data = module.load ? await module.load(context) : undefined;
    if (abort.signal.aborted) return;
    current.value = { page, params, query, module, data, path: place.path };
    if (!same && !again) arrived(place);
  } catch (error) {
    if (abort.signal.aborted) return;
    current.value = { page, params, query, module: null, error, path: place.path };
  }
  const { module, data } = current.value;
  const title = typeof module?.title === 'function' ? module.title({ params, data }) : module?.title;
  document.title = title ? `${plain(title)} · PML` : 'PML';
}

/** A new page begins at its top, and a screen reader at its heading. */
function arrived(place) {
  requestAnimationFrame(() => {
    if (place.moved) document.querySelector('main')?.focus({ preventScroll: true });
    if (!location.hash) window.scrollTo(0, 0);
  });
}

function reload() {
  const place = route.value;
  if (place.page && PAGES[place.page]) return load(place, { again: true });
  return undefined;
}

function Page() {
  const place = route.value;
  useEffect(() => {
    if (place.page && PAGES[place.page]) load(place);
  }, [place.path, place.search]);
  if (!place.page || !PAGES[place.page]) {
    return html`<${PageHead} title="No such page" /><${Empty} title="Nothing is at this address">
      <p>Perhaps it was in another version. The <a href="/runs">runs</a> are a good place to start.</p></${Empty}>`;
  }
  const shown = current.value;
  if (!shown || shown.page !== place.page || shown.path !== place.path) return html`<${Loading} />`;
  if (shown.error) return html`<${PageProblem} error=${shown.error} />`;
  if (!shown.module) return html`<${Loading} />`;
  const { view: View } = shown.module;
  return html`<${Guard} key=${shown.path}><${View} key=${shown.path} params=${shown.params} query=${shown.query} data=${shown.data} reload=${reload} /></${Guard}>`;
}

function PageProblem({ error }) {
  if (error.status === 404) {
    return html`<${PageHead} title="Not found" /><${Empty} title="There is nothing here for you">
      <p><${Text} text=${error.message} /></p><p>It may have been forgotten, or it belongs to somebody else.</p></${Empty}>`;
  }
  return html`<${PageHead} title="This did not work" /><${Problem} error=${error} retry=${reload} />`;
}

/** A page that breaks leaves the rest standing. */
class Guard extends Component {
  componentDidCatch(error) {
    console.error(error);
    this.setState({ error });
  }

  render({ children }, { error }) {
    if (!error) return children;
    return html`<${PageHead} title="This page broke" /><${Problem} error=${error} retry=${() => { this.setState({ error: null }); reload(); }} />`;
  }
}

function Shell() {
  const place = route.value;
  const active = PARENT[place.page] ?? place.page;
  const count = waiting.value.count;
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.querySelector('main').focus(); }}>Skip to the content</a>
    <header class="side">
      <a class="brand" href="/runs"><img src="/assets/icon.svg" alt="" width="20" height="20" />PML</a>
      <nav aria-label="Pages"><ul>
        ${NAVIGATION.map(([page, text]) => html`<li><a href=${href(page)} aria-current=${page === active ? 'page' : undefined}>${text}
          ${page === 'inbox' && count > 0 && html`<span class="count" aria-label=${`${count} waiting`}>${count}</span>`}</a></li>`)}
      </ul></nav>
      <${Who} />
    </header>
    <div class="content">
      <${Connection} />
      <${Notice} />
      <main id="main" tabindex="-1" data-page=${place.page ?? 'none'}><${Page} /></main>
    </div>
    ${signInRequest.value && html`<${SignIn} request=${signInRequest.value} />`}
    ${confirmation.value && html`<${Confirm} ask=${confirmation.value} />`}
    ${showKeys.value && html`<${Keys} />`}`;
}

function Who() {
  const who = session.value;
  return html`<div class="who">
    <${Theme} />
    <button type="button" class="quiet" aria-keyshortcuts="?" onClick=${() => { showKeys.value = true; }}>Keys <kbd>?</kbd></button>
    ${who?.role === 'person'
      ? html`<button type="button" class="quiet" id="out" onClick=${() => logout().catch(() => {})}>Sign out</button>`
      : html`<button type="button" class="quiet" onClick=${() => signIn('').catch(() => {})}>Sign in</button>`}
    ${who && html`<p class="version" title=${`PML ${who.version}`}>${who.role === 'person' ? 'signed in' : 'read only'}</p>`}
  </div>`;
}

function Notice() {
  const [text, setText] = useState(takeNotice);
  return text && html`<p class="notice actions" role="status"><span><${Sentence} text=${text} /></span>
    <button type="button" class="quiet push" onClick=${() => setText(null)}>Close</button></p>`;
}

const THEMES = [['', 'Auto'], ['light', 'Light'], ['dark', 'Dark']];

function Theme() {
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? '');
  const change = () => {
    const next = THEMES[(THEMES.findIndex(([key]) => key === theme) + 1) % THEMES.length][0];
    if (next) {
      document.documentElement.dataset.theme = next;
      localStorage.setItem('pml-theme', next);
    } else {
      delete document.documentElement.dataset.theme;
      localStorage.removeItem('pml-theme');
    }
    setTheme(next);
  };
  const text = THEMES.find(([key]) => key === theme)?.[1];
  return html`<button type="button" class="quiet theme" onClick=${change} aria-label=${`Theme: ${text}`}>Theme <span>${text}</span></button>`;
}

function Connection() {
  const { lost, retryAt } = connection.value;
  const [clockNow, setClock] = useState(Date.now());
  useEffect(() => {
    if (!lost) return undefined;
    const timer = setInterval(() => setClock(Date.now()), 500);
    return () => clearInterval(timer);
  }, [lost]);
  const rest = Math.max(0, Math.ceil(((retryAt ?? clockNow) - clockNow) / 1000));
  return html`<div role="status" class="connection" hidden=${!lost}>
    ${lost && html`<span>PML does not answer. What you typed is kept. ${rest > 0 ? `Trying again in ${rest} s.` : 'Trying again.'}</span>
      <button type="button" onClick=${retryNow}>Try now</button>`}
  </div>`;
}

function Confirm({ ask }) {
  return html`<${Dialog} title=${ask.title} onClose=${() => ask.decide(false)}>
    ${ask.text && html`<p class="dialog-text"><${Text} text=${ask.text} breaks="plain" /></p>`}
    <form method="dialog" class="actions" onSubmit=${(event) => { event.preventDefault(); ask.decide(true); }}>
      <button type="submit" class=${ask.danger ? 'danger' : 'primary'} autofocus>${ask.yes}</button>
      <button type="button" onClick=${() => ask.decide(false)}>Cancel</button>
    </form>
  </${Dialog}>`;
}

function Keys() {
  const close = () => { showKeys.value = false; };
  return html`<${Dialog} title="Keys" onClose=${close}>
    <dl class="keys-list">
      <div><dt><kbd>?</kbd></dt><dd>these keys</dd></div>
      <div><dt><kbd>/</kbd></dt><dd>to the filter</dd></div>
      ${NAVIGATION.map(([, text, key]) => html`<div><dt><kbd>g</kbd> <kbd>${key}</kbd></dt><dd>${text}</dd></div>`)}
      <div><dt><kbd>↑</kbd> <kbd>↓</kbd> or <kbd>k</kbd> <kbd>j</kbd></dt><dd>in a table: to the row before, after</dd></div>
      <div><dt><kbd>Enter</kbd></dt><dd>opens the row</dd></div>
      <div><dt><kbd>a</kbd>, <kbd>d</kbd></dt><dd>on a card of the inbox: approve, deny</dd></div>
      <div><dt><kbd>Esc</kbd></dt><dd>closes a dialog or a side panel, empties a filter</dd></div>
    </dl>
    <div class="actions"><button type="button" autofocus onClick=${close}>Close</button></div>
  </${Dialog}>`;
}

let leaderUntil = 0;

function keyed(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest?.('input, textarea, select, [contenteditable], dialog')) return;
  if (event.key === '?') {
    showKeys.value = true;
  } else if (event.key === '/') {
    const field = document.querySelector('main [data-filter]');
    if (!field) return;
    event.preventDefault();
    field.focus();
    field.select();
  } else if (event.key === 'g' && event.timeStamp > leaderUntil) {
    leaderUntil = event.timeStamp + 1200;
  } else if (event.timeStamp <= leaderUntil) {
    leaderUntil = 0;
    const target = NAVIGATION.find(([, , key]) => key === event.key);
    if (target) {
      event.preventDefault();
      navigate(href(target[0]));
    }
  }
}

/** The address `/` has no page of its own. Links of older versions to a question were `/#run`. */
function begin() {
  if (location.pathname === '/') go(location.hash ? `/inbox${location.hash}` : '/runs', { replace: true });
  document.addEventListener('keydown', keyed);
  events.start();
  watchWaiting();
  render(html`<${Shell} />`, document.getElementById('app'));
  refreshSession().catch(() => {});
}

begin();
