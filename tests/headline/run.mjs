// Measures what PML saves: the tasks of tasks.mjs with every tool listed and called one by one, with PML the first time, and
// with PML the second time with other arguments.
//
//   node run.mjs --pml FILE [--tasks N | --only ID,…] [--repeat N] [--json | --markdown] [--messages FILE] [--write-docs]
//     [--latency MS] [--no-speculation | --compare-speculation]
//
// All tasks are done the first time, then all the second time, with one memory. Tokens are those of cl100k. Time is that of
// the MCP requests, with the servers up; a model's own is not in it. `--repeat` does everything so often and takes medians
// (3 unless told). `--messages` keeps all messages as JSON lines; `--write-docs` puts the totals into docs/benchmarks.md
// and three of them into README.md. The time of PML's first times is told as a multiple of the tools one by one.
//
// With `--latency`, calls of the npm servers take so many milliseconds more; `--no-speculation` keeps PML from reading
// ahead; `--compare-speculation` does everything with and without, in turn, and tells how much faster each task is the
// first time, and the median and the worst of them.
//
// Exit status: 0 every arm of every task gave the right result, 1 one did not, 2 wrong use.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import * as arms from './arms.mjs';
import { introduce, makePlace } from './place.mjs';
import { asComparison, asMarkdown, asText, intoBenchmarks, intoReadme, summary } from './report.mjs';
import { TASKS } from './tasks.mjs';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');
const ARMS = ['plain', 'first', 'second'];

const { values: options } = parseArgs({
  options: {
    pml: { type: 'string' },
    tasks: { type: 'string' },
    only: { type: 'string' },
    repeat: { type: 'string', default: '3' },
    json: { type: 'boolean', default: false },
    markdown: { type: 'boolean', default: false },
    messages: { type: 'string' },
    'write-docs': { type: 'boolean', default: false },
    latency: { type: 'string', default: '0' },
    'no-speculation': { type: 'boolean', default: false },
    'compare-speculation': { type: 'boolean', default: false },
  },
});

function wrongUse(message) {
  console.error(message);
  process.exit(2);
}

function chosen() {
  const only = options.only?.split(',');
  const unknown = only?.find((id) => !TASKS.some((task) => task.id === id));
  if (unknown) wrongUse(`no task is called \`${unknown}\`; there are ${TASKS.map(({ id }) => id).join(', ')}`);
  return TASKS.filter(({ id }) => !only || only.includes(id)).slice(
    0,
    options.tasks ? Number(options.tasks) : undefined,
  );
}

/** Does all tasks once: of each task the outcomes of its arms. */
async function once(pml, tasks, speculation = !options['no-speculation']) {
  const dir = mkdtempSync(join(tmpdir(), 'pml-headline-'));
  const setting = { latency: Number(options.latency), speculation };
  const plain = makePlace(join(dir, 'plain'), tasks, { ...setting, npm: false });
  const remembering = makePlace(join(dir, 'pml'), tasks, { ...setting, npm: true });
  await introduce(pml, remembering);
  const outcomes = Object.fromEntries(tasks.map(({ id }) => [id, {}]));
  for (const arm of ARMS) {
    for (const task of tasks) {
      outcomes[task.id][arm] = await arms[arm](pml, arm === 'plain' ? plain : remembering, task);
    }
  }
  rmSync(dir, { recursive: true, force: true });
  return outcomes;
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle) - 1] + sorted[Math.floor(middle)]) / 2;
}

/** The median of each figure; a problem in one repetition is one of the task. */
function settle(repetitions) {
  const middle = (figure) => median(repetitions.map((outcome) => outcome[figure]));
  const problem = repetitions.find((outcome) => outcome.problem)?.problem;
  const figures = Object.fromEntries(['once', 'read', 'turns', 'ms'].map((figure) => [figure, middle(figure)]));
  return { how: repetitions[0].how, ...figures, ...(problem && { problem }) };
}

function keepMessages(file, repetitions) {
  const lines = repetitions.flatMap((outcomes, repetition) =>
    Object.entries(outcomes).flatMap(([task, byArm]) =>
      Object.entries(byArm).flatMap(([arm, { messages }]) =>
        messages.map((message) => JSON.stringify({ repetition, task, arm, ...message })),
      ),
    ),
  );
  writeFileSync(file, `${lines.join('\n')}\n`);
}

/** Does all tasks with and without reading ahead, in turn, and prints how their first times compare. */
async function compareSpeculation(pml, tasks) {
  const [on, off] = [[], []];
  for (let i = 0; i < Number(options.repeat); i++) {
    on.push(await once(pml, tasks, true));
    off.push(await once(pml, tasks, false));
  }
  const first = (repetitions, id) => settle(repetitions.map((outcomes) => outcomes[id].first));
  const rows = tasks.map(({ id }) => {
    const [ahead, plain] = [first(on, id), first(off, id)];
    return { id, on: ahead.ms, off: plain.ms, speedUp: plain.ms / ahead.ms, problem: ahead.problem ?? plain.problem };
  });
  const speedUps = rows.map(({ speedUp }) => speedUp);
  const report = { count: rows.length, median: median(speedUps), worst: Math.min(...speedUps) };
  console.log(options.json ? JSON.stringify({ tasks: rows, ...report }) : asComparison(rows, report));
  const failed = rows.filter(({ problem }) => problem);
  for (const { id, problem } of failed) console.error(`failed: ${id}: ${problem}`);
  return failed.length ? 1 : 0;
}

if (!options.pml) wrongUse('say which program to measure: --pml target/release/pml');
const tasks = chosen();
if (options['compare-speculation']) process.exit(await compareSpeculation(resolve(options.pml), tasks));
const repetitions = [];
for (let i = 0; i < Number(options.repeat); i++) repetitions.push(await once(resolve(options.pml), tasks));
if (options.messages) keepMessages(options.messages, repetitions);

const rows = tasks.map(({ id, first, second }) => ({
  id,
  intent: first.intent,
  intent2: second.intent,
  ...Object.fromEntries(ARMS.map((arm) => [arm, settle(repetitions.map((outcomes) => outcomes[id][arm]))])),
}));
const report = { ...summary(rows, ARMS), latency: Number(options.latency) };
if (options.json) console.log(JSON.stringify({ tasks: rows, ...report }));
else console.log(options.markdown ? asMarkdown(rows, report) : asText(rows, report));
if (options['write-docs']) {
  for (const [page, into] of [['README.md', intoReadme], ['docs/benchmarks.md', intoBenchmarks]]) {
    const file = join(ROOT, page);
    writeFileSync(file, into(readFileSync(file, 'utf8'), report));
  }
}
for (const { task, arm, problem } of report.problems) console.error(`failed: ${task}, ${arm}: ${problem}`);
process.exit(report.problems.length ? 1 : 0);
