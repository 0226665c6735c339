// Writes tasks.jsonl from the tasks in tasks/: what every first and second task must give is found by running its program,
// with its own values, in a fresh world.
//
//   node make.mjs --pml FILE [--check] [--only ID,…] [--show]
//
// `--check` writes nothing and compares instead; `--only` with `--show` prints results while a task is being written.
// Exit status: 0 done or equal, 1 a program failed or something differs, 2 wrong use.

import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { makePlace } from './place.mjs';
import { TASKS } from './tasks.mjs';
import { changes } from './world.mjs';

const FILE = join(dirname(fileURLToPath(import.meta.url)), 'tasks.jsonl');

const { values: options } = parseArgs({
  options: {
    pml: { type: 'string' },
    check: { type: 'boolean', default: false },
    only: { type: 'string' },
    show: { type: 'boolean', default: false },
  },
});
if (!options.pml || (options.only && !options.check && !options.show)) {
  console.error('usage: node make.mjs --pml FILE [--check] [--only ID,…] [--show]');
  process.exit(2);
}

/** The values by the names that the program reads them by. */
function named(names, values) {
  return Object.fromEntries(Object.entries(names).map(([key, name]) => [name, values[key]]));
}

/** A capability is learned from its first run, so that nothing that is run here may be known before. */
const FORGETFUL = { learn: false, cache: false };

async function outcome(place, task, intent, values) {
  place.reset();
  const names = task.args ?? task.given;
  const request = { intent, implementation: { type: 'code', code: task.code(values) }, options: FORGETFUL };
  const { reply } = await place.execute({ ...request, ...(names && { context: named(names, values) }) });
  if (reply.status !== 'success') throw new Error(`${task.id}: "${intent}": ${JSON.stringify(reply)}`);
  return { expect: reply.result, after: changes(place.world) };
}

function placement(task, context, values) {
  if (!context) return 'sentence';
  return Object.keys(context).length < Object.keys(values).length ? 'mixed' : 'context';
}

async function second(place, task, [how, intent, changed, { context, note } = {}]) {
  const [closeness, language = 'en'] = how.split(' ');
  const values = { ...task.first[1], ...changed };
  const given = context ?? (task.given ? named(task.given, values) : null);
  const about = { closeness, language, placement: placement(task, given, values), note: note ?? null };
  return { ...about, intent, values, context: given, ...(await outcome(place, task, intent, values)) };
}

async function record(place, task) {
  const [intent, values] = task.first;
  const names = task.args ?? task.given;
  const first = await outcome(place, task, intent, values);
  const seconds = [];
  for (const described of task.seconds) seconds.push(await second(place, task, described));
  const again = [];
  for (const [other, changed] of task.again ?? []) {
    const all = { ...values, ...changed };
    again.push({ intent: other, values: all, code: task.code(all), context: names ? named(names, all) : null, ...(await outcome(place, task, other, all)) });
  }
  const writes = [first, ...seconds].some(({ after }) => Object.keys(after).length > 0);
  return {
    id: task.id,
    kind: writes ? 'write' : 'read',
    intent,
    code: task.code(values),
    values,
    context: names ? named(names, values) : null,
    ...first,
    seconds,
    distractors: task.distractors.map(([kind, other, { context = null, ok = null } = {}]) => ({ kind, intent: other, context, ok })),
    servers: [...new Set([...task.code(values).matchAll(/mcp\.(\w+)/g)].map(([, server]) => server))].sort(),
    ...(task.args && { argnames: task.args }),
    ...(again.length && { again }),
  };
}

const chosen = TASKS.filter(({ id }) => !options.only || options.only.split(',').includes(id));
const place = await makePlace(resolve(options.pml));
const records = [];
const problems = [];
for (const task of chosen) {
  try {
    records.push(await record(place, task));
  } catch (error) {
    problems.push(error.message);
  }
}
await place.close();

if (options.show) {
  for (const { id, intent, expect, after, seconds } of records) {
    for (const each of [{ intent, expect, after }, ...seconds]) {
      console.log(id, '|', each.intent, '|', JSON.stringify(each.expect), Object.keys(each.after).length ? JSON.stringify(each.after) : '');
    }
  }
}
if (options.check) {
  const kept = new Map(readFileSync(FILE, 'utf8').trim().split('\n').map((line) => [JSON.parse(line).id, JSON.parse(line)]));
  for (const made of records) {
    if (!isDeepStrictEqual(kept.get(made.id), JSON.parse(JSON.stringify(made)))) problems.push(`${made.id}: tasks.jsonl has something else`);
    kept.delete(made.id);
  }
  if (!options.only) problems.push(...[...kept.keys()].map((id) => `${id}: is only in tasks.jsonl`));
} else if (!options.only && !problems.length) {
  writeFileSync(FILE, records.map((made) => `${JSON.stringify(made)}\n`).join(''));
}
for (const problem of problems) console.error(`failed: ${problem}`);
console.error(`${records.length} tasks, ${records.flatMap(({ seconds }) => seconds).length} second intents, ${records.flatMap(({ distractors }) => distractors).length} distractors`);
process.exit(problems.length ? 1 : 0);
