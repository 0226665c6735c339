// Compares what the conformance suites say of a fixture server with what they say of the gateway in front of it.
//
//   node compare.mjs --pml FILE --write [--jobs N]                measures everything and writes table.md
//   node compare.mjs --pml FILE --check SETUP,… [--jobs N]        measures these setups and holds them against table.md
//
// A setup is a fixture and the way the gateway reaches it; `SETUPS` names them. `--write` measures each fixture directly
// too. `--check` measures through the gateway alone: its rows must be those of table.md, none more and none missing, with
// the same verdict and the same number of checks.
//
// Exit status: 0 all is as it should be, 1 a verdict differs or a row does not agree, 2 wrong use.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const HERE = dirname(fileURLToPath(import.meta.url));
const TABLE = join(HERE, 'table.md');
const READY_LIMIT_MS = 30_000;

const LEGACY = ['0.1.16/*', '*/2025-11-25/*'];
const SETUPS = {
  'modern-http': { fixture: 'modern', reach: 'http', only: ['*'] },
  'legacy-http': { fixture: 'legacy', reach: 'http', only: LEGACY },
  // One scenario at a time: on one pair of pipes a question of an older server names no call, so with calls of several
  // clients under way the gateway gives it to none of them, and a scenario would disturb another.
  'legacy-stdio': { fixture: 'legacy', reach: 'stdio', only: LEGACY, alone: true },
  // A part of the one above, for when there is little time.
  'legacy-stdio-newest': { fixture: 'legacy', reach: 'stdio', only: ['0.2.*/2025-11-25/*'], alone: true },
};
const WRITTEN = ['modern-http', 'legacy-http', 'legacy-stdio'];

/** Why the suites make more or fewer checks of the gateway than of the fixture, where they do. */
const JSON_FIRST = 'the gateway answers a quick request with JSON, which the suite accepts';
const REASONS = {
  'server-sse-polling': `${JSON_FIRST}, and then has nothing to check`,
  'server-sse-multiple-streams': `${JSON_FIRST}, and then leaves out the check of the streams`,
};

const running = new Set();
const scratch = mkdtempSync(join(tmpdir(), 'pml-compare-'));
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  rmSync(scratch, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(2));

/** Starts a program; resolves with the first line in which `find` finds something, and with what stops the program. */
async function start(command, args, find, env = {}) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'], env: { ...process.env, ...env } });
  running.add(child);
  const ended = once(child, 'exit').then(() => running.delete(child));
  const lines = createInterface({ input: child.stdout });
  const found = await new Promise((resolve, reject) => {
    lines.on('line', (line) => find(line) && resolve(find(line)));
    lines.on('close', () => reject(new Error(`\`${command} ${args.join(' ')}\` ended before it was ready`)));
  });
  const stop = async () => {
    child.kill();
    await ended;
  };
  return { found, stop };
}

const address = (line) => /https?:\/\/[^\s\u001b]+/.exec(line)?.[0];
const fixtureFile = (fixture) => join(HERE, '..', 'fixture', `${fixture}.mjs`);

/** Runs the scenarios against a URL; resolves with the lines of run.mjs. */
async function measure(url, only, jobs) {
  const args = [join(HERE, 'run.mjs'), '--url', url, '--only', only.join(','), '--jobs', String(jobs)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  running.add(child);
  const results = [];
  for await (const line of createInterface({ input: child.stdout })) results.push(JSON.parse(line));
  running.delete(child);
  return results;
}

async function direct(fixture, only, jobs) {
  const server = await start(process.execPath, [fixtureFile(fixture), '--port', '0'], address);
  const results = await measure(server.found, only, jobs);
  await server.stop();
  return results;
}

const BUILT_IN = ['fs', 'json', 'text', 'csv', 'http', 'time', 'math'];

/** A configuration with the fixture as the only server, its names as they are. */
function configuration(how) {
  const off = BUILT_IN.map((name) => `[builtin.${name}]\nenabled = false\n`).join('');
  return `expose = "full"\nnames = "plain"\n${off}[servers.fixture]\nstart = "eager"\ndefinitions = "follow"\n${how}\n[permissions]\nfixture = { approval_mode = "auto" }\n`;
}

async function throughGateway(pml, { fixture, reach, only, alone }, jobs) {
  const stops = [];
  const args = JSON.stringify([fixtureFile(fixture), '--stdio']);
  let how = `command = ${JSON.stringify(process.execPath)}\nargs = ${args}`;
  if (reach === 'http') {
    const server = await start(process.execPath, [fixtureFile(fixture), '--port', '0'], address);
    stops.push(server.stop);
    how = `url = ${JSON.stringify(server.found)}`;
  }
  const home = mkdtempSync(join(scratch, 'home-'));
  writeFileSync(join(home, 'pml.toml'), configuration(how), { mode: 0o600 });
  const greeting = (line) => / at /.test(line) && address(line);
  const gateway = await start(pml, ['serve', '--listen', '127.0.0.1:0'], greeting, { PML_HOME: home });
  const token = readFileSync(join(home, 'token'), 'utf8').trim();
  const proxyArgs = [join(HERE, 'proxy.mjs'), '--target', new URL(gateway.found).origin];
  const proxy = await start(process.execPath, proxyArgs, address, { TOKEN: token });
  const url = `${proxy.found}/mcp`;
  await untilListed(url);
  const results = await measure(url, only, alone ? 1 : jobs);
  for (const stop of [proxy.stop, gateway.stop, ...stops]) await stop();
  return results;
}

/** Waits until the gateway lists the tools of the fixture. */
async function untilListed(url) {
  const until = Date.now() + READY_LIMIT_MS;
  const version = '2026-07-28';
  const name = (key) => `io.modelcontextprotocol/${key}`;
  const params = { _meta: { [name('protocolVersion')]: version, [name('clientCapabilities')]: {} } };
  while (Date.now() < until) {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': version,
        'mcp-method': 'tools/list',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params }),
    });
    const { result } = await response.json();
    if (result?.tools.some((tool) => tool.name === 'test_simple_text')) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`the gateway did not list the tools of the fixture within ${READY_LIMIT_MS} ms`);
}

const checksOf = ({ passed, failed, warnings }) => passed + failed + warnings;
const keyOf = (setup, { suite, spec, scenario }) => [setup.fixture, setup.reach, suite, spec, scenario].join(' | ');

function shown(result) {
  if (checksOf(result) === 0) return `${result.verdict}, no check applied`;
  return `${result.verdict} ${checksOf(result)}${result.warnings ? ` (${result.warnings} warned)` : ''}`;
}

const details = ({ failing, warning, reason }) => [...failing, ...warning, reason ?? ''].join(', ');

/** Faults of one scenario's pair of results. */
function faults(key, ours, theirs) {
  const found = [];
  if (!theirs) return [`${key}: not measured directly`];
  if (ours.verdict !== theirs.verdict) {
    found.push(`${key}: ${theirs.verdict} directly, ${ours.verdict} through the gateway: ${details(ours)}`);
  }
  if (shown(ours) !== shown(theirs) && !REASONS[ours.scenario]) {
    found.push(`${key}: ${shown(theirs)} directly, ${shown(ours)} through the gateway; say why in REASONS`);
  }
  return found;
}

async function write(pml, jobs) {
  const rows = [];
  const wrong = [];
  for (const name of WRITTEN) {
    const setup = SETUPS[name];
    const results = await direct(setup.fixture, setup.only, jobs);
    const theirs = new Map(results.map((result) => [keyOf(setup, result), result]));
    for (const ours of await throughGateway(pml, setup, jobs)) {
      const key = keyOf(setup, ours);
      const theirOwn = theirs.get(key);
      wrong.push(...faults(key, ours, theirOwn));
      if (!theirOwn) continue;
      const note = shown(ours) === shown(theirOwn) ? '' : (REASONS[ours.scenario] ?? '');
      rows.push({ key, line: `| ${key} | ${shown(theirOwn)} | ${shown(ours)} | ${note} |` });
      theirs.delete(key);
    }
    wrong.push(...[...theirs.keys()].map((key) => `${key}: not measured through the gateway`));
  }
  rows.sort((a, b) => (a.key < b.key ? -1 : 1));
  writeFileSync(TABLE, `${head(extensions())}\n${rows.map(({ line }) => line).join('\n')}\n`);
  return wrong;
}

/** The scenarios of the newer suite which run.mjs leaves out. */
function extensions() {
  const suite = join(HERE, '..', 'node_modules', '@modelcontextprotocol', 'conformance', 'dist', 'index.js');
  const listing = spawnSync(process.execPath, [suite, 'list', '--server'], { encoding: 'utf8' }).stdout;
  return [...listing.matchAll(/^ {2}- (\S+) \[extension\]$/gm)].map(([, name]) => name).sort();
}

const head = (leftOut) => `# Conformance, direct and through the gateway

Written by \`node compare.mjs --pml FILE --write\`; a test measures the rows of two setups again. Each row is one scenario of a suite
for one version of the specification, played against a fixture and against the gateway in front of that fixture
(\`expose = "full"\`, \`names = "plain"\`, built-in servers off), which reaches the fixture over HTTP or stdio. A result is
the verdict and the number of checks that applied. Over stdio the scenarios are played one at a time: there a question
of an older server names no call, and with calls of several clients under way the gateway gives it to none of them.

Left out are the scenarios which the newer suite marks as extensions, because they test optional parts of the protocol
that the gateway does not claim: ${leftOut.map((name) => `\`${name}\``).join(', ')}.

| fixture | reached over | suite | spec | scenario | direct | through the gateway | note |
| --- | --- | --- | --- | --- | --- | --- | --- |`;

/** The rows of the table for a setup: what the gateway showed, by key. */
function known(setup) {
  const rows = new Map();
  for (const line of readFileSync(TABLE, 'utf8').split('\n')) {
    const cells = line.split('|').map((cell) => cell.trim());
    const [, fixture, reach, suite, spec, scenario, , through] = cells;
    if (cells.length !== 10 || fixture !== setup.fixture || reach !== setup.reach) continue;
    if (setup.only.some((pattern) => matches(pattern, `${suite}/${spec}/${scenario}`))) {
      rows.set([fixture, reach, suite, spec, scenario].join(' | '), through);
    }
  }
  return rows;
}

function matches(pattern, text) {
  const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`).test(text);
}

async function check(pml, names, jobs) {
  const wrong = [];
  for (const name of names) {
    const setup = SETUPS[name];
    const expected = known(setup);
    const measured = await throughGateway(pml, setup, jobs);
    for (const ours of measured) {
      const key = keyOf(setup, ours);
      const was = expected.get(key);
      if (was === undefined) wrong.push(`${key}: not in table.md`);
      else if (was !== shown(ours)) {
        wrong.push(`${key}: table.md has ${was}, now ${shown(ours)}: ${details(ours)}`);
      }
      expected.delete(key);
    }
    wrong.push(...[...expected.keys()].map((key) => `${key}: in table.md, but was not measured`));
    console.log(`${name}: ${measured.length} scenarios`);
  }
  return wrong;
}

function options() {
  try {
    const { values } = parseArgs({
      options: {
        pml: { type: 'string' },
        write: { type: 'boolean' },
        check: { type: 'string' },
        jobs: { type: 'string', default: '2' },
      },
    });
    const setups = values.check?.split(',') ?? [];
    const unknown = setups.find((name) => !Object.hasOwn(SETUPS, name));
    if (!values.pml) throw new Error('give the program with `--pml`');
    if (unknown !== undefined) {
      throw new Error(`no setup is called \`${unknown}\`; there are ${Object.keys(SETUPS).join(', ')}`);
    }
    if (Boolean(values.write) === setups.length > 0) throw new Error('give either `--write` or `--check`');
    return { pml: values.pml, setups, jobs: Number(values.jobs) };
  } catch (error) {
    console.error(error.message);
    process.exit(2);
  }
}

const { pml, setups, jobs } = options();
const wrong = setups.length > 0 ? await check(pml, setups, jobs) : await write(pml, jobs);
for (const line of wrong) console.error(line.trimEnd());
process.exit(wrong.length > 0 ? 1 : 0);
