// Measures whether the second time works: every first task is run with its program; then its other intents are asked without
// one, and so are distractors, which look similar and must not be run. All capabilities are learned first, so they compete.
//
//   node run.mjs --pml FILE [--tasks FILE] [--sample N | --only ID,…] [--seed N] [--out FILE] [--json]
//
// `--sample` takes so many tasks, always the same; `--seed` is that of the order of the questions; `--out` keeps a JSON line
// for each question. The last line printed is one JSON object; `--json` prints nothing else.
//
// Exit status: 0 nothing ran wrong, 1 something ran with a wrong result, a distractor was run or a first task failed,
// 2 wrong use.

import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { measure } from './measure.mjs';
import { makePlace } from './place.mjs';
import { asText, summary } from './report.mjs';

const { values: options } = parseArgs({
  options: {
    pml: { type: 'string' },
    tasks: { type: 'string', default: join(dirname(fileURLToPath(import.meta.url)), 'tasks.jsonl') },
    sample: { type: 'string' },
    only: { type: 'string' },
    seed: { type: 'string', default: '1' },
    out: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});

function wrongUse(message) {
  console.error(message);
  process.exit(2);
}

/** `count` of the tasks, as far apart as possible, so that each group of them is there. */
function sampled(tasks, count) {
  if (count >= tasks.length) return tasks;
  return Array.from({ length: count }, (_, i) => tasks[Math.floor((i * tasks.length) / count)]);
}

function chosen() {
  const all = readFileSync(options.tasks, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  const only = options.only?.split(',');
  const unknown = only?.find((id) => !all.some((task) => task.id === id));
  if (unknown) wrongUse(`no task is called \`${unknown}\``);
  const tasks = only ? all.filter(({ id }) => only.includes(id)) : all;
  return options.sample ? sampled(tasks, Number(options.sample)) : tasks;
}

if (!options.pml) wrongUse('say which program to measure: --pml target/release/pml');
const place = await makePlace(resolve(options.pml));
const measured = await measure(place, chosen(), Number(options.seed));
await place.close();

if (options.out) writeFileSync(options.out, measured.rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
const report = summary(measured);
if (!options.json) console.log(asText(report));
console.log(JSON.stringify(report));
process.exit(report.failures.length ? 1 : 0);
