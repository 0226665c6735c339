// Writes tasks.jsonl and tasks-args.jsonl from the tasks in tasks/: what every first and second task must give is found by
// running its program, with its own values, in a fresh world. tasks-args.jsonl has the same tasks with their values in
// `context`; their programs must give the same.
//
//   node make.mjs --pml FILE [--check] [--only ID,…] [--show]
//
// `--check` writes nothing and compares instead; `--only` with `--show` prints results while a task is being written.
// Exit status: 0 done or equal, 1 a program failed or something differs, 2 wrong use.

import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { withArguments } from './arguments.mjs';
import { makePlace } from './place.mjs';
import { TASKS } from './tasks.mjs';
import { changes } from './world.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));

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

/** The records of tasks, and what is wrong with them. */
async function records(place, tasks) {
  const made = [];
  const problems = [];
  for (const task of tasks) {
    try {
      made.push(JSON.parse(JSON.stringify(await record(place, task))));
    } catch (error) {
      problems.push(error.message);
    }
  }
  return { made, problems };
}

/** What must be the same in both styles. */
function results({ expect, after, seconds }) {
  return [{ expect, after }, ...seconds.map((second) => ({ expect: second.expect, after: second.after }))];
}

function differences(file, made) {
  const kept = new Map(readFileSync(file, 'utf8').trim().split('\n').map((line) => [JSON.parse(line).id, JSON.parse(line)]));
  const others = made.filter((task) => !isDeepStrictEqual(kept.get(task.id), task)).map(({ id }) => `${id}: ${file} has something else`);
  for (const { id } of made) kept.delete(id);
  return options.only ? others : [...others, ...[...kept.keys()].map((id) => `${id}: is only in ${file}`)];
}

const chosen = TASKS.filter(({ id }) => !options.only || options.only.split(',').includes(id));
const place = await makePlace(resolve(options.pml));
const literal = await records(place, chosen);
const given = await records(place, chosen.map(withArguments).filter(Boolean));
await place.close();

const problems = [...literal.problems, ...given.problems];
for (const task of given.made) {
  const other = literal.made.find(({ id }) => id === task.id);
  if (other && !isDeepStrictEqual(results(task), results(other))) problems.push(`${task.id}: gives something else with its values in \`args\``);
}
if (options.show) {
  for (const { id, intent, expect, after, seconds } of literal.made) {
    for (const each of [{ intent, expect, after }, ...seconds]) {
      console.log(id, '|', each.intent, '|', JSON.stringify(each.expect), Object.keys(each.after).length ? JSON.stringify(each.after) : '');
    }
  }
}
for (const [name, { made }] of [['tasks.jsonl', literal], ['tasks-args.jsonl', given]]) {
  const file = join(HERE, name);
  if (options.check) problems.push(...differences(file, made));
  else if (!options.only && !problems.length) writeFileSync(file, made.map((task) => `${JSON.stringify(task)}\n`).join(''));
  const count = (key) => made.flatMap((task) => task[key]).length;
  console.error(`${name}: ${made.length} tasks, ${count('seconds')} second intents, ${count('distractors')} distractors`);
}
for (const problem of problems) console.error(`failed: ${problem}`);
process.exit(problems.length ? 1 : 0);
