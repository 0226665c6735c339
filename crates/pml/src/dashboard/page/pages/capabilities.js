// What was learned: every capability with how often it ran and how well.

import { subscribe } from '../events.js';
import { html, useEffect, useMemo } from '../html.js';
import { navigate, setQuery } from '../navigation.js';
import { href } from '../router.js';
import { Empty, PageHead } from '../ui/empty.js';
import { Choice, FilterField } from '../ui/filter.js';
import { count, duration, percent, plural } from '../ui/format.js';
import { Status } from '../ui/status.js';
import { Table } from '../ui/table.js';
import { Code, Text, plain } from '../ui/text.js';
import { Ago } from '../ui/time.js';
import { firstCapabilities, useAllCapabilities } from '../views/all-capabilities.js';
import { matching } from '../views/capability-filter.js';

export const title = 'Capabilities';

/** How long after the end of a run the list is read again, and how often at most: learning follows the end by less than a second. */
const LEARNED_MS = 3000;
const STATES = [['', 'all states'], ['active', 'active'], ['planned', 'planned'], ['degraded', 'degraded']];
export const STATE_KINDS = { active: 'ok', planned: 'idle', degraded: 'failed' };

export async function load({ signal }) {
  return { first: await firstCapabilities(signal) };
}

export function view({ query, data, reload }) {
  const all = useAllCapabilities(data.first);
  useEffect(() => {
    let timer = null;
    const soon = () => {
      timer ??= setTimeout(() => {
        timer = null;
        reload();
      }, LEARNED_MS);
    };
    const stop = subscribe({ run_end: soon, reset: soon });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, []);
  const [text, state] = [query.get('q') ?? '', query.get('state') ?? ''];
  const rows = useMemo(() => matching(all, text, state), [all, text, state]);
  if (all.length === 0) return html`<${PageHead} title="Capabilities" /><${Nothing} />`;
  const shown = rows.length === all.length ? plural(all.length, 'capability', 'capabilities') : `${count(rows.length)} of ${plural(all.length, 'capability', 'capabilities')}`;
  const none = html`<${Empty} title="No capability matches"><p><button type="button" class="link" onClick=${() => setQuery({ q: '', state: '' })}>Show all of them</button></p></${Empty}>`;
  return html`
    <${PageHead} title="Capabilities" note="Programs that worked, kept to be run again." />
    <div class="toolbar">
      <${FilterField} value=${text} label="Filter by name, purpose, intent or tool" placeholder="Filter by name, intent or tool" onChange=${(q) => setQuery({ q })} />
      <${Choice} value=${state} label="State" options=${STATES} onChange=${(next) => setQuery({ state: next })} />
      <span class="soft push" role="status">${shown}</span>
    </div>
    <${Table} label="Capabilities" live columns=${COLUMNS} rows=${rows} rowKey=${(row) => row.id} rowHeight=${46} empty=${none}
      hrefOf=${link} onOpen=${(row) => navigate(link(row))} />`;
}

const link = (row) => href('capability', { name: row.name });

const COLUMNS = [
  {
    key: 'name',
    title: 'Name',
    width: 'minmax(16rem, 3fr)',
    narrowWidth: 'minmax(0, 1fr)',
    cell: (row) => html`<span class="two-lines"><a href=${link(row)} tabindex="-1"><${Text} text=${row.name} /></a><span class="fine"><${Text} text=${row.description} /></span></span>`,
  },
  { key: 'state', title: 'State', width: '6rem', cell: (row) => html`<${Status} status=${STATE_KINDS[row.state]} label=${row.state} title=${row.degradedBecause} />` },
  { key: 'runs', title: 'Runs', width: '3.5rem', align: 'right', cell: (row) => count(row.usageCount) },
  {
    key: 'success',
    title: 'Succeeded',
    width: '5.5rem',
    align: 'right',
    narrow: false,
    cell: (row) => (row.usageCount ? percent(row.successCount / row.usageCount) : '–'),
  },
  { key: 'mean', title: 'Mean time', hint: 'The mean of the successful runs at work, without starting and waiting', width: '5.5rem', align: 'right', narrow: false, cell: (row) => (row.usageCount ? duration(row.avgDurationMs) : '–') },
  { key: 'tools', title: 'Tools', width: 'minmax(8rem, 1.5fr)', narrow: false, cell: (row) => html`<${Tools} tools=${row.toolsUsed} />` },
  { key: 'used', title: 'Last run', width: '6rem', align: 'right', narrow: false, cell: (row) => html`<${Ago} at=${row.lastUsed} />` },
];

function Tools({ tools }) {
  const names = [...new Set(tools.map((tool) => tool.id))];
  const more = names.length > 2 ? ` +${names.length - 2}` : '';
  return html`<span title=${names.map(plain).join('\n')}>${names.slice(0, 2).map((name, index) => html`${index > 0 && ', '}<${Code} text=${name} />`)}${more}</span>`;
}

function Nothing() {
  return html`<${Empty} title="Nothing has been learned yet">
    <p>A program that an agent runs successfully with <code>pml_execute</code> becomes a capability, and is found again by what it was for.</p>
    <p>The <a href="/runs">runs</a> show what agents do now. <code>pml capabilities create</code> makes one by hand.</p></${Empty}>`;
}
