// The three ways to do a task. Each is a conversation of its own with clients of its own.
//
// What a model would write is in the task; what it is told is what the servers answer. An arm's outcome is
// `{how, problem?, once, read, turns, ms, …}`: what was done, what was wrong if anything was, and the figures.

import { measure } from './conversation.mjs';
import { direct, throughPml } from './place.mjs';
import { STEPS } from './tasks.mjs';

/** Every tool listed, and called one by one. */
export async function plain(pml, place, task) {
  return converse(await direct(pml, place), place, task, task.first, async (client) => {
    const tool = async (name, args, { mayFail = false } = {}) => {
      const result = await client.call(name, args);
      if (result.failed && !mayFail) throw new Error(`\`${name}\` failed: ${result.text}`);
      return result.data;
    };
    return { answer: await task.plain(tool, task.first), how: 'calls' };
  });
}

/** PML when it knows nothing of the task: finds the tools, then runs a program. */
export async function first(pml, place, task) {
  return converse(await throughPml(pml, place), place, task, task.first, async (client) => {
    const told = await write(client, task, task.first);
    task.capability = told.capabilityId;
    return { answer: told.result, how: 'program' };
  });
}

/**
 * PML when it has done it before: says what is wanted. Where PML suggests instead what it did before, the model gives the
 * values by name if there is a place for each that is another now, and writes the program again if not.
 */
export async function second(pml, place, task) {
  return converse(await throughPml(pml, place), place, task, task.second, async (client) => {
    const { intent } = task.second;
    const told = await execute(client, { intent });
    if (told.status === 'success') return { answer: told.result, how: 'intent' };
    const offered = told.suggestions?.candidates.find(({ id }) => id === task.capability);
    const context = offered && given(offered.parameters, task);
    if (!context) return { answer: (await write(client, task, task.second, told)).result, how: 'program' };
    const again = await execute(client, { intent, implementation: { type: 'capability', id: offered.name }, context });
    if (again.status === 'success') return { answer: again.result, how: 'suggestion' };
    return { answer: (await write(client, task, task.second, told)).result, how: 'suggestion refused, program' };
  });
}

/** Finds the tools, unless they were suggested, and runs a program, which a model corrects where it failed. */
async function write(client, task, values, told) {
  const { intent } = values;
  const context = task.context?.(values);
  const program = task.code(values);
  await find(client, intent, program, told?.suggestions?.tools ?? []);
  let done;
  for (const code of [task.wrong?.(values), program].filter(Boolean)) {
    done = await execute(client, { intent, implementation: { type: 'code', code }, ...(context && { context }) });
  }
  if (done.status !== 'success') throw new Error(`the program did not succeed: ${JSON.stringify(done)}`);
  return done;
}

/** Asks for tools until each that the program calls was shown: with the intent, then for each that was not there. */
async function find(client, intent, program, suggested) {
  const shown = new Set(suggested.map(({ id }) => id));
  const called = [...program.matchAll(/mcp\.(\w+)(?:\.(\w+)|\["([^"]+)"\])/g)];
  const wanted = called.map(([, server, plain, quoted]) => `${server}:${plain ?? quoted}`);
  const ask = async (request) => {
    const { data } = await client.call('pml_discover', request);
    for (const { id } of data.results) shown.add(id);
  };
  if (!wanted.every((tool) => shown.has(tool))) await ask({ intent });
  for (const tool of wanted) {
    if (shown.has(tool)) continue;
    await ask({ intent: STEPS[tool], limit: 5 });
    if (!shown.has(tool)) throw new Error(`\`pml_discover\` does not show \`${tool}\` for "${STEPS[tool]}"`);
  }
}

async function execute(client, request) {
  const { data } = await client.call('pml_execute', request);
  return typeof data === 'string' ? { status: 'failed', error: data } : data;
}

/** The second time's values for the parameters that had the first time's; nothing if another value has no place. */
function given(parameters, task) {
  const named = task.context?.(task.second) ?? {};
  const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
  const context = {};
  for (const [name, { default: was }] of Object.entries(parameters.properties ?? {})) {
    const [key] = Object.entries(task.first).find(([, value]) => same(value, was)) ?? [];
    if (name in named) context[name] = named[name];
    else if (key) context[name] = task.second[key];
  }
  const others = Object.keys(task.second).filter((key) => key !== 'intent' && !same(task.first[key], task.second[key]));
  const placed = (key) => Object.values(context).some((value) => same(value, task.second[key]));
  return others.every(placed) ? context : undefined;
}

async function converse(client, place, task, values, work) {
  const outcome = { how: 'nothing' };
  let answer;
  try {
    ({ answer, how: outcome.how } = await work(client));
    task.check(answer, values, place);
  } catch (error) {
    outcome.problem = error.message;
  }
  await client.close();
  const { messages } = client.record;
  return { ...outcome, ...measure(messages, values.intent, answer), answer, messages };
}
