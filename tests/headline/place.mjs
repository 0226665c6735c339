// Where the arms work: folders of their own with the files of all tasks, PML's home, and the servers behind real clients.

import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const HERE = dirname(fileURLToPath(import.meta.url));
const PACKAGES = join(HERE, '../node_modules/@modelcontextprotocol');

/** A call for each npm server that changes nothing, after which it is known to be up. */
const CHEAP = {
  everything: ['echo', { message: 'up' }],
  files: ['list_allowed_directories', {}],
  memory: ['search_nodes', { query: 'nothing is called like this' }],
};

/** The npm servers as they are started, working in `place`. */
function npmServers(place) {
  const delay = place.latency ? [join(HERE, 'delay.mjs'), String(place.latency)] : [];
  const script = (name) => [...delay, join(PACKAGES, name, 'dist/index.js')];
  return {
    everything: { args: script('server-everything'), env: {} },
    files: { args: [...script('server-filesystem'), place.work], env: {} },
    memory: { args: script('server-memory'), env: { MEMORY_FILE_PATH: place.graph } },
  };
}

/** What a user would write: whoever only reads is said to, and nobody is asked for the rest. */
const PERMISSIONS = `
[permissions]
"*" = { approval_mode = "auto" }
"everything:echo" = { approval_mode = "auto", read_only = true }
"everything:get-*" = { approval_mode = "auto", read_only = true }
"files:read_*" = { approval_mode = "auto", read_only = true }
"files:list_*" = { approval_mode = "auto", read_only = true }
"files:search_files" = { approval_mode = "auto", read_only = true }
"files:directory_tree" = { approval_mode = "auto", read_only = true }
"files:get_file_info" = { approval_mode = "auto", read_only = true }
"memory:read_graph" = { approval_mode = "auto", read_only = true }
"memory:search_nodes" = { approval_mode = "auto", read_only = true }
"memory:open_nodes" = { approval_mode = "auto", read_only = true }
`;

function configuration(place, { npm }) {
  const servers = Object.entries(npm ? npmServers(place) : {}).map(
    ([name, { args, env }]) => `[servers.${name}]
command = ${JSON.stringify(process.execPath)}
args = ${JSON.stringify(args)}
cwd = ${JSON.stringify(place.work)}
env = { ${Object.entries(env).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)} }
start = "eager"
`,
  );
  const speculation = `[speculation]\nenabled = ${place.speculation}\n`;
  return `[builtin.fs]\nroot = ${JSON.stringify(place.work)}\n${speculation}${servers.join('')}${PERMISSIONS}`;
}

/**
 * Makes a place below `dir` with the files of `tasks`. Calls of the npm servers take `latency` milliseconds more, and PML
 * reads ahead of programs unless `speculation` is false.
 */
export function makePlace(dir, tasks, { npm, latency = 0, speculation = true }) {
  const folders = { home: join(dir, 'home'), work: join(dir, 'work'), graph: join(dir, 'graph.jsonl') };
  const place = { ...folders, latency, speculation };
  for (const folder of [place.home, place.work]) mkdirSync(folder, { recursive: true });
  for (const { files = {}, graph = [] } of tasks) {
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(place.work, path)), { recursive: true });
      writeFileSync(join(place.work, path), content);
    }
    writeFileSync(place.graph, graph.map((item) => `${JSON.stringify(item)}\n`).join(''), { flag: 'a' });
  }
  writeFileSync(join(place.home, 'pml.toml'), configuration(place, { npm }));
  place.read = (path) => readFileSync(join(place.work, path), 'utf8');
  place.items = () =>
    readFileSync(place.graph, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  return place;
}

/** Lets PML meet the servers once, as `pml add` does. */
export async function introduce(pml, place) {
  await promisify(execFile)(pml, ['doctor'], { cwd: place.work, env: pmlEnvironment(place) });
}

function pmlEnvironment(place) {
  return { PATH: process.env.PATH, HOME: place.home, PML_HOME: place.home };
}

/**
 * A client of one server whose messages are written to `record`, as `{server, at, sent | received}` with `at` in
 * milliseconds.
 */
async function connect(server, parameters, record) {
  const transport = new StdioClientTransport({ ...parameters, stderr: 'ignore' });
  const client = new Client({ name: 'headline', version: '1.0.0' });
  const write = (message) => record.on && record.messages.push({ server, at: performance.now(), ...message });
  const send = transport.send.bind(transport);
  transport.send = (sent, options) => (write({ sent }), send(sent, options));
  let handler;
  Object.defineProperty(transport, 'onmessage', {
    get: () => handler && ((received, extra) => (write({ received }), handler(received, extra))),
    set: (wanted) => (handler = wanted),
  });
  await client.connect(transport);
  return client;
}

async function list(client) {
  let cursor;
  do cursor = (await client.listTools({ cursor }, { cacheMode: 'refresh' })).nextCursor;
  while (cursor !== undefined);
}

/** Calls a tool; a refusal by the protocol is an answer like any other. */
async function call(client, name, args) {
  const result = await client.callTool({ name, arguments: args }).catch((error) => ({
    isError: true,
    content: [{ type: 'text', text: error.message }],
  }));
  const text = textOf(result);
  return { failed: result.isError === true, text, data: result.structuredContent ?? text };
}

/** What a model is shown of a tool's result. */
export function textOf(result) {
  return (result.content ?? []).map((part) => part.text ?? JSON.stringify(part)).join('\n');
}

/** One client of `pml stdio`, with its servers up: `call(name, args)`, `close()` and the record of its messages. */
export async function throughPml(pml, place) {
  const record = { on: true, messages: [] };
  const parameters = { command: pml, args: ['stdio'], cwd: place.work, env: pmlEnvironment(place) };
  const client = await connect('pml', parameters, record);
  record.on = false;
  await Promise.all(
    Object.entries(CHEAP).map(async ([server, [tool, args]]) => {
      const { failed, text } = await call(client, `${server}__${tool}`, args);
      if (failed) throw new Error(`\`${server}\` is not up: ${text}`);
    }),
  );
  record.on = true;
  await list(client);
  return { record, call: (name, args) => call(client, name, args), close: () => client.close() };
}

/** A client of each server: npm servers directly, the built-in ones, which are nowhere else, from a PML without others. */
export async function direct(pml, place) {
  const record = { on: true, messages: [] };
  const builtin = { command: pml, args: ['stdio', '--expose', 'full'], cwd: place.work, env: pmlEnvironment(place) };
  const npm = Object.entries(npmServers(place)).map(([name, { args, env }]) => {
    const parameters = { command: process.execPath, args, cwd: place.work, env: { ...process.env, ...env } };
    return connect(name, parameters, record).then((client) => [name, client]);
  });
  const ours = connect('builtin', builtin, record).then((client) => ['builtin', client]);
  const clients = Object.fromEntries(await Promise.all([ours, ...npm]));
  for (const client of Object.values(clients)) await list(client);
  return {
    record,
    call: (name, args) => {
      const [server, tool] = name.split('__');
      return clients[server] ? call(clients[server], tool, args) : call(clients.builtin, name, args);
    },
    close: () => Promise.all(Object.values(clients).map((client) => client.close())),
  };
}
