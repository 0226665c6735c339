// Runs the server scenarios of the MCP conformance suites against a URL, one process per scenario, and prints one JSON
// line for each (suite version, spec version, scenario).
//
//   node run.mjs --url http://127.0.0.1:3000/mcp [--only PATTERN,…] [--jobs N] [--out FILE]
//
//   --only   patterns with `*`, compared with `scenario` and with `suite/spec/scenario`, e.g. `*/2026-07-28/caching`
//   --jobs   scenarios run at once (2)
//   --out    file to write the lines to as well
//
// A line has the counts of checks by status, the sorted ids of those which failed and of those with a warning, and
// `required`: whether the spec version demands the scenario (`null` where the suite does not know). `verdict` is `pass`
// or `fail` by the failed checks alone; `error` when the suite left no results or had to be ended.
//
// The scenario lists come from the suites. Scenarios marked `[extension]` are left out: they test optional protocol
// extensions which the gateway does not claim. Suite 0.1.16 speaks the same on the wire for both its spec versions, only
// its lists differ; and both suites offer 2025-11-25 in `initialize` whatever the spec version, but for a few raw requests.
//
// Exit status: 0 all passed, 1 some did not, 2 wrong use.

import { spawn } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const SCENARIO_LIMIT_MS = 45_000;
const MODULES = join(dirname(fileURLToPath(import.meta.url)), '..', 'node_modules');
const FIRST = suite('conf1', false);
const SECOND = suite('@modelcontextprotocol/conformance', true);
const RUNS = [
  { suite: FIRST, spec: '2025-06-18' },
  { suite: FIRST, spec: '2025-11-25' },
  { suite: SECOND, spec: '2025-11-25' },
  { suite: SECOND, spec: '2026-07-28' },
];
// These change the lists of the server, which others running at the same time would notice.
const ALONE = new Set(['server-stateless']);

const children = new Set();
const scratch = mkdtempSync(join(tmpdir(), 'pml-conformance-'));
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(scratch, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(2));

function suite(name, knowsRequirements) {
  const folder = join(MODULES, name);
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return { version, program: join(folder, 'dist', 'index.js'), knowsRequirements };
}

/** Runs a suite's program to its end or the limit; resolves with what it printed. */
function run({ program }, args) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    children.add(child);
    let output = '';
    let late = false;
    const limit = setTimeout(() => ((late = true), child.kill('SIGKILL')), SCENARIO_LIMIT_MS);
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    child.on('close', () => {
      clearTimeout(limit);
      children.delete(child);
      resolve({ output, late });
    });
  });
}

/** Names in the part of a listing which begins with a line starting with `heading`. */
function namesUnder(heading, listing) {
  const names = [];
  let inside = false;
  for (const line of listing.split('\n')) {
    const name = /^ {2}- (\S+)(.*)$/.exec(line);
    if (name && inside && !name[2].includes('[extension]')) names.push(name[1]);
    if (/^\S/.test(line)) inside = line.startsWith(heading);
  }
  return names;
}

async function scenariosOf({ suite: from, spec }) {
  const listing = await run(from, ['list', '--server', '--spec-version', spec]);
  const required = from.knowsRequirements
    ? new Set(namesUnder('Server scenarios', (await run(from, ['list', '--requirements', spec])).output))
    : null;
  return namesUnder('Server scenarios', listing.output).map((scenario) => ({
    suite: from,
    spec,
    scenario,
    required: required && required.has(scenario),
  }));
}

function readChecks(folder) {
  const results = readdirSync(folder, { recursive: true }).filter((path) => path.endsWith('checks.json'));
  return results.flatMap((path) => JSON.parse(readFileSync(join(folder, path), 'utf8')));
}

/** Sorted ids of the checks with a status, with `×n` after an id that occurs more than once. */
function idsWith(checks, status) {
  const counts = new Map();
  for (const { id } of checks.filter((check) => check.status === status)) counts.set(id, (counts.get(id) ?? 0) + 1);
  return [...counts].map(([id, count]) => (count > 1 ? `${id}×${count}` : id)).sort();
}

async function judge(url, { suite: by, spec, scenario, required }) {
  const folder = mkdtempSync(join(scratch, 'run-'));
  const { output, late } = await run(by, [
    ...['server', '--url', url, '--scenario', scenario, '--spec-version', spec, '-o', folder],
  ]);
  const checks = readChecks(folder);
  rmSync(folder, { recursive: true });
  const count = (status) => checks.filter((check) => check.status === status).length;
  const verdict = late || checks.length === 0 ? 'error' : count('FAILURE') > 0 ? 'fail' : 'pass';
  return {
    suite: by.version,
    spec,
    scenario,
    required,
    verdict,
    passed: count('SUCCESS'),
    failed: count('FAILURE'),
    warnings: count('WARNING'),
    skipped: count('SKIPPED'),
    failing: idsWith(checks, 'FAILURE'),
    warning: idsWith(checks, 'WARNING'),
    ...(verdict === 'error' && { reason: late ? 'timeout' : output.trim().slice(-300) }),
  };
}

function matcher(only) {
  if (only === undefined) return () => true;
  const patterns = only.split(',').map((pattern) => {
    const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    return new RegExp(`^${parts.join('.*')}$`);
  });
  return ({ suite: by, spec, scenario }) =>
    patterns.some((pattern) => pattern.test(scenario) || pattern.test(`${by.version}/${spec}/${scenario}`));
}

async function inParallel(jobs, items, work) {
  const waiting = [...items];
  const worker = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: jobs }, worker));
}

function options() {
  try {
    const { values } = parseArgs({
      options: {
        url: { type: 'string' },
        only: { type: 'string' },
        jobs: { type: 'string' },
        out: { type: 'string' },
      },
    });
    const jobs = Number(values.jobs ?? 2);
    if (!URL.canParse(values.url)) throw new Error('give the address of the server with `--url`');
    if (!Number.isInteger(jobs) || jobs < 1) throw new Error('`--jobs` takes a whole number above zero');
    return { ...values, jobs };
  } catch (error) {
    console.error(error.message);
    process.exit(2);
  }
}

const { url, only, jobs, out } = options();
const wanted = (await Promise.all(RUNS.map(scenariosOf))).flat().filter(matcher(only));
if (wanted.length === 0) {
  console.error('no scenario matches `--only`');
  process.exit(2);
}
if (out) writeFileSync(out, '');
let good = true;
const report = async (item) => {
  const verdict = await judge(url, item);
  good &&= verdict.verdict === 'pass';
  const line = JSON.stringify(verdict);
  console.log(line);
  if (out) appendFileSync(out, `${line}\n`);
};
const alone = wanted.filter(({ scenario }) => ALONE.has(scenario));
await inParallel(
  jobs,
  wanted.filter((item) => !alone.includes(item)),
  report,
);
await inParallel(1, alone, report);
process.exitCode = good ? 0 : 1;
