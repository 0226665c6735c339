// Servers: their state, their tools, and what the policy says of each.

import { get, send } from '../api.js';
import { html, useEffect, useState } from '../html.js';
import { setQuery } from '../navigation.js';
import { confirm } from '../ui/dialog.js';
import { Empty, PageHead } from '../ui/empty.js';
import { FilterField } from '../ui/filter.js';
import { count, percent, plural } from '../ui/format.js';
import { Mark, Status } from '../ui/status.js';
import { Table } from '../ui/table.js';
import { Code, Problem, Sentence, Text, plain } from '../ui/text.js';
import { Policy } from './server-policy.js';
import { VERDICTS } from './server-verdicts.js';

/** Servers start, stop and fail by themselves, and no event says so. */
const REFRESH_MS = 5000;

export const title = 'Servers';

/** The servers, and the one that is shown with its tools: all tools of all servers would be megabytes. */
export async function load({ query, signal }) {
  const { items } = await get('/api/servers', { signal });
  const wanted = query.get('server');
  const chosen = items.find((item) => item.name === wanted) ?? (wanted ? null : items.find((item) => item.error || item.pendingCommand) ?? items[0]);
  return { items, server: chosen ? await get(`/api/servers/${encodeURIComponent(chosen.name)}`, { signal }) : null };
}

export function view({ query, data, reload }) {
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) reload(); }, REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  const servers = data.items;
  if (servers.length === 0) {
    return html`<${PageHead} title="Servers" /><${Empty} title="No servers yet"><p>Take over the servers of your MCP clients:</p><pre class="value">pml setup</pre>
      <p>or add one with <code>pml add</code> or in <code>pml.toml</code>. PML notices it by itself.</p></${Empty}>`;
  }
  const { server } = data;
  return html`<${PageHead} title="Servers" note=${summaryOf(servers)} />
    <div class="master">
      <nav class="master-list" aria-label="Servers"><ul>${servers.map((item) => html`<li key=${item.name}><a href=${`/servers?server=${encodeURIComponent(item.name)}`} aria-current=${item.name === server?.name ? 'true' : undefined}>
        <span class="master-name"><${Text} text=${item.name} /></span><${Status} status=${item.state} /><span class="fine">${item.toolsKnown ? plural(item.toolCount, 'tool') : 'tools not known'}</span></a></li>`)}</ul></nav>
      ${server ? html`<${Server} key=${server.name} server=${server} query=${query} reload=${reload} />` : html`<${Empty} title="No such server"><p>It may have been removed from the configuration.</p></${Empty}>`}
    </div>`;
}

function summaryOf(servers) {
  const tools = servers.reduce((sum, server) => sum + server.toolCount, 0);
  const failed = servers.filter((server) => server.error).length;
  return `${plural(servers.length, 'server')}, ${plural(tools, 'tool')}${failed ? `, ${count(failed)} not working` : ''}`;
}

function Server({ server, query, reload }) {
  const [busy, setBusy] = useState('');
  const [problem, setProblem] = useState(null);
  const act = async (verb, body) => {
    setBusy(verb);
    setProblem(null);
    try {
      await send('POST', `/api/servers/${encodeURIComponent(server.name)}/${verb}`, body);
      await reload();
    } catch (error) {
      if (error.code !== 'SIGN_IN_CANCELLED') setProblem(error);
    } finally {
      setBusy('');
    }
  };
  const accept = async () => {
    const sure = await confirm({ title: 'Start this server as it is now?', text: `${server.name}\n${commandText(server.pendingCommand)}`, yes: 'Accept and start' });
    // The digest says which command was shown: another one is refused.
    if (sure) act('accept', { launch: server.pendingCommand.launch });
  };
  const text = (query.get('q') ?? '').toLowerCase();
  const tools = server.tools.filter((tool) => !text || tool.id.toLowerCase().includes(text) || (tool.description ?? '').toLowerCase().includes(text));
  const selected = server.tools.find((tool) => tool.id === query.get('tool'));
  const restarts = server.transport !== 'builtin' && !['awaiting_acceptance', 'disabled'].includes(server.state);
  return html`<section class="stack server" aria-label=${plain(server.name)}>
    <div class="panel stack">
      <div class="actions"><h2><${Text} text=${server.name} /></h2><${Status} status=${server.state} />
        ${restarts && html`<button type="button" class="push" disabled=${busy !== ''} onClick=${() => act('restart')}>${busy === 'restart' ? 'Restarting…' : 'Restart'}</button>`}</div>
      <p class="fine">${TRANSPORTS[server.transport] ?? html`<${Text} text=${server.transport} />`}${server.how && html` · <${server.transport === 'builtin' ? Text : Code} text=${server.how} />`}</p>
      ${server.error && html`<div class="problem"><p><${Sentence} text=${server.error} /></p></div>`}
      <${Problem} error=${problem} />
      ${server.pendingCommand && html`<div class="notice stack"><p>Its command is new or has changed. It starts after you accept it.</p>
        <pre class="value"><${Text} text=${commandText(server.pendingCommand)} breaks="plain" /></pre>
        <div class="actions"><button type="button" class="primary" disabled=${busy !== ''} onClick=${accept}>Accept…</button></div></div>`}
    </div>
    ${server.tools.length > 6 && html`<div class="toolbar"><${FilterField} label="Filter tools" placeholder="Filter tools   /" value=${query.get('q') ?? ''} onChange=${(q) => setQuery({ q })} /></div>`}
    ${server.tools.length > 0 && html`<${Table} label=${`Tools of ${plain(server.name)}`} fill=${false} rows=${tools} columns=${COLUMNS} rowKey=${(tool) => tool.id} selected=${selected?.id} onOpen=${(tool) => setQuery({ tool: tool.id })}
      empty=${html`<${Empty} title="No tool fits the filter"><p><button type="button" onClick=${() => setQuery({ q: '' })}>Show all tools</button></p></${Empty}>`} />`}
    ${server.tools.length === 0 && !server.pendingCommand && html`<${Empty} title="No tools"><p>${server.toolsKnown ? 'It offers none.' : server.state === 'disabled' ? 'The configuration turns it off.' : 'It has not listed them yet: it is started when it is needed.'}</p></${Empty}>`}
    ${selected && html`<${Policy} key=${selected.id} tool=${selected} onClose=${() => setQuery({ tool: '' })} />`}
  </section>`;
}

/** What would be started, with the names of what it gets. */
function commandText({ command, variables = [] }) {
  return variables.length ? `${command}\n\nwith ${variables.join(', ')}` : command;
}

const TRANSPORTS = { builtin: 'a part of PML', stdio: 'a process', http: 'over HTTP' };

const COLUMNS = [
  { key: 'tool', title: 'Tool', width: 'minmax(9rem, 16rem)', narrowWidth: 'minmax(0, 1fr)', cell: (tool) => html`<${Code} text=${tool.id} />` },
  { key: 'policy', title: 'Policy', width: '8.5rem', narrowWidth: '6.5rem', cell: (tool) => html`<${Verdict} tool=${tool} />` },
  { key: 'description', title: 'Description', width: 'minmax(8rem, 1fr)', narrow: false, cell: (tool) => html`<span class="soft"><${Text} text=${tool.description} /></span>` },
  { key: 'calls', title: 'Calls', width: '4rem', narrowWidth: '3.2rem', align: 'right', cell: (tool) => count(tool.calls) },
  { key: 'failures', title: 'Failed', width: '4rem', narrow: false, align: 'right', cell: (tool) => (tool.failures > 0 ? html`<span class="fails-text" title=${count(tool.failures)}>${percent(tool.failures / Math.max(1, tool.calls))}</span>` : html`<span class="soft">–</span>`) },
];

function Verdict({ tool }) {
  if (tool.quarantined) return html`<${Mark} kind="bad" title="Its definition is not the one you accepted">quarantined</${Mark}>`;
  const [kind, text] = VERDICTS[tool.policy?.verdict] ?? ['', tool.policy?.verdict ?? 'unknown'];
  return html`<${Mark} kind=${kind} title=${plain(tool.policy?.reason)}><${Text} text=${text} /></${Mark}>`;
}
