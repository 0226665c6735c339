// The inbox: approvals, calls in doubt, layers that wait, and tools in quarantine.

import { effect, html, useEffect, useRef, useState } from '../html.js';
import { decoded } from '../router.js';
import { Empty, PageHead } from '../ui/empty.js';
import { Text } from '../ui/text.js';
import { look, waiting, watched } from '../waiting.js';
import { follow, heldBack, list, onChange, show, times, unfollow } from './inbox-cards.js';

const TIMES_MS = 2000;

export const title = 'Inbox';

export async function load() {
  await look();
}

export function view() {
  const holder = useRef(null);
  const [count, setCount] = useState({ waiting: 0, all: 0 });
  const [unknown, setUnknown] = useState('');
  useEffect(() => {
    holder.current.append(list);
    onChange(setCount);
    unfollow();
    const lead = () => {
      if (waiting.value.loaded && !follow(location.hash)) setUnknown(decoded(location.hash.slice(1)));
    };
    const stop = effect(() => {
      const { approvals, tools, loaded } = waiting.value;
      if (!loaded) return;
      show([...approvals, ...tools.map(heldBack)]);
      times();
      lead();
    });
    watched.value = true;
    look();
    const timer = setInterval(times, TIMES_MS);
    addEventListener('hashchange', lead);
    return () => {
      stop();
      watched.value = false;
      clearInterval(timer);
      removeEventListener('hashchange', lead);
      onChange(() => {});
      list.remove();
    };
  }, []);
  useEffect(() => {
    document.title = count.waiting ? `(${count.waiting}) Inbox · PML` : 'Inbox · PML';
  }, [count.waiting]);
  return html`<${PageHead} title="Inbox" note=${count.waiting ? html`<kbd>Tab</kbd> to a card, then <kbd>a</kbd> to approve or <kbd>d</kbd> to deny.` : null} />
    ${unknown && html`<p class="notice" role="status"><${Text} text=${unknown} /> asks nothing, or no longer.</p>`}
    <div class="cards" ref=${holder}></div>
    ${count.all === 0 && html`<${Empty} title="Nothing waits for you">
      <p>When a run wants to do something that needs your word, or a tool is not what you accepted, it is shown here. This page looks by itself.</p>
      <p>What needs your word is set by the policy: see <a href="/servers">Servers</a>.</p>
    </${Empty}>`}`;
}
