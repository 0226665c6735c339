// Where the tasks are done: a world of its own, a fresh memory, and one client of `pml stdio` with all servers up.

import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { makeWorld, restore } from './world.mjs';

const TESTS = join(dirname(fileURLToPath(import.meta.url)), '..');

/** For each server outside PML a call that changes nothing, after which it is known to be up. */
const PROBES = {
  clock: ['get_current_time', { timezone: 'UTC' }],
  everything: ['echo', { message: 'up' }],
  files: ['list_allowed_directories', {}],
  git: ['git_branch', { repo_path: 'repos/tide', branch_type: 'local' }],
  memory: ['search_nodes', { query: 'nothing is called like this' }],
};

/** Longest time for one call: a debug build on a busy machine needs seconds, never this long. */
const TIMEOUT_MS = 120_000;

function servers(world) {
  const script = (name) => join(TESTS, 'node_modules/@modelcontextprotocol', name, 'dist/index.js');
  const node = (name, args = [], env = {}) => ({ command: process.execPath, args: [script(name), ...args], env });
  const python = (name, args = []) => ({ command: join(TESTS, '.venv/bin', name), args, env: {} });
  return {
    clock: python('mcp-server-time', ['--local-timezone=UTC']),
    everything: node('server-everything'),
    files: node('server-filesystem', [world]),
    git: python('mcp-server-git'),
    memory: node('server-memory', [], { MEMORY_FILE_PATH: join(world, 'memory.jsonl') }),
  };
}

/** Nobody is asked, and servers that do not say which of their tools only read are told about. */
const PERMISSIONS = `
[permissions]
"*" = { approval_mode = "auto" }
"clock:*" = { approval_mode = "auto", read_only = true }
"git:git_log" = { approval_mode = "auto", read_only = true }
"git:git_status" = { approval_mode = "auto", read_only = true }
"git:git_branch" = { approval_mode = "auto", read_only = true }
"git:git_diff*" = { approval_mode = "auto", read_only = true }
"git:git_show" = { approval_mode = "auto", read_only = true }
`;

function configuration(world) {
  const tables = Object.entries(servers(world)).map(([name, { command, args, env }]) =>
    [
      `[servers.${name}]`,
      `command = ${JSON.stringify(command)}`,
      `args = ${JSON.stringify(args)}`,
      `cwd = ${JSON.stringify(world)}`,
      `env = { ${Object.entries(env).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)} }`,
      'start = "eager"',
    ].join('\n'),
  );
  return `[builtin.fs]\nroot = ${JSON.stringify(world)}\n${tables.join('\n')}\n${PERMISSIONS}`;
}

/** A fresh place: `execute(request)`, `discover(request)`, `reset()`, `settle()`, `world` and `close()`. */
export async function makePlace(pml) {
  const dir = mkdtempSync(join(tmpdir(), 'pml-reuse-'));
  const [home, root] = [join(dir, 'home'), join(dir, 'world')];
  mkdirSync(home);
  const world = makeWorld(root);
  writeFileSync(join(home, 'pml.toml'), configuration(root));
  const env = { PATH: process.env.PATH, HOME: home, PML_HOME: home };
  await promisify(execFile)(pml, ['doctor'], { cwd: root, env });
  const client = new Client({ name: 'reuse', version: '1.0.0' });
  await client.connect(new StdioClientTransport({ command: pml, args: ['stdio'], cwd: root, env, stderr: 'ignore' }));
  for (const [server, [tool, args]] of Object.entries(PROBES)) await probe(client, `${server}__${tool}`, args);
  await settle(client);
  return {
    world,
    reset: () => restore(world),
    execute: (request) => execute(client, request),
    discover: (request) => execute(client, request, 'pml_discover'),
    settle: () => settle(client),
    close: async () => {
      await client.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function probe(client, name, args) {
  const result = await client.callTool({ name, arguments: args }, { timeout: TIMEOUT_MS });
  if (result.isError) throw new Error(`\`${name}\` does not answer: ${textOf(result)}`);
}

/**
 * Waits until PML has read all texts. Before that, tools and capabilities are found by their words alone, and what is
 * measured would depend on how busy the machine is.
 */
async function settle(client) {
  const until = performance.now() + TIMEOUT_MS;
  for (;;) {
    const { structuredContent } = await client.callTool({ name: 'pml_discover', arguments: { intent: 'anything', limit: 1 } });
    if (!/not read yet/.test(JSON.stringify(structuredContent?.suggestions ?? []))) return;
    if (performance.now() > until) throw new Error(`PML has not read all texts after ${TIMEOUT_MS / 1000} s`);
    await setTimeout(100);
  }
}

function textOf(result) {
  return (result.content ?? []).map((part) => part.text ?? JSON.stringify(part)).join('\n');
}

/** One call of `pml_execute` or another tool: `{reply, text, ms}`, the structure and the text that a model is shown. */
async function execute(client, request, tool = 'pml_execute') {
  const since = performance.now();
  try {
    const result = await client.callTool({ name: tool, arguments: request }, { timeout: TIMEOUT_MS });
    const text = textOf(result);
    const reply = result.structuredContent ?? { status: result.isError ? 'failed' : 'text', error: text };
    return { reply, text, ms: performance.now() - since };
  } catch (error) {
    return { reply: { status: 'refused', error: error.message }, text: error.message, ms: performance.now() - since };
  }
}
