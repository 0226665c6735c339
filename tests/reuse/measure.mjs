// What is asked, in its order, and how each answer is judged.

import { holds } from './world.mjs';

/** Numbers are equal up to the last digits, which depend on the order of a sum. */
const PRECISION = 1e-9;

/** Asks everything: `{tasks, rows, verbatim, firstFailed, duplicates}`, with a row for each second intent and distractor. */
export async function measure(place, tasks, seed) {
  const learned = await learn(place, tasks);
  await place.settle();
  const verbatim = [];
  for (const task of tasks) verbatim.push(await askVerbatim(place, task));
  const questions = tasks.flatMap((task) => [
    ...task.seconds.map((second) => ({ what: 'second', task, asked: second })),
    ...task.distractors.map((distractor) => ({ what: 'distractor', task, asked: distractor })),
  ]);
  const rows = [];
  for (const question of shuffled(questions, seed)) rows.push(await ask(place, question, learned.owners));
  const offered = rows.filter(({ candidate }) => candidate);
  for (const row of offered) row.oneMoreCall = await confirm(place, row);
  for (const row of offered) row.asOffered = await acceptOffer(place, row);
  for (const row of offered) row.askedAgain = await askAgain(place, row);
  return { tasks, verbatim, ...learned, rows: rows.map(({ task, asked, candidate, reply, ...row }) => row) };
}

/** Runs the program of every first task. Which capability belongs to which task is in `owners`. */
async function learn(place, tasks) {
  const owners = new Map();
  const firstFailed = [];
  const duplicates = [];
  const sizes = [];
  for (const task of tasks) {
    const ids = new Set();
    for (const first of [task, ...(task.again ?? [])]) {
      place.reset();
      const { intent, code } = first;
      const request = { intent, implementation: { type: 'code', code }, ...(first.context && { context: first.context }) };
      const { reply, text } = await place.execute(request);
      if (!isRight(place, reply, first)) firstFailed.push({ task: task.id, intent, reply: reply.error ?? reply.result ?? reply.status });
      if (first !== task) duplicates.push(ids.has(reply.capabilityId));
      ids.add(reply.capabilityId);
      owners.set(reply.capabilityId, task.id);
      sizes.push(text);
    }
  }
  return { owners, firstFailed, duplicates, firstTexts: sizes };
}

/** The first intent word for word. Values that it does not say are given as they were. */
async function askVerbatim(place, task) {
  place.reset();
  const context = task.context && !task.argnames ? { context: task.context } : {};
  const { reply } = await place.execute({ intent: task.intent, options: { learn: false, cache: false }, ...context });
  const right = isRight(place, reply, task);
  const verdict = right ? 'right' : reply.status === 'success' ? 'wrong' : 'refused';
  return { task: task.id, verdict, ...(!right && { because: reply.suggestions?.because ?? reply.error ?? reply.result }) };
}

async function ask(place, { what, task, asked }, owners) {
  place.reset();
  const { intent, context } = asked;
  const { reply, text, ms } = await place.execute({ intent, ...(context && { context }) });
  const candidates = reply.suggestions?.candidates ?? [];
  const rank = candidates.findIndex(({ id }) => owners.get(id) === task.id) + 1;
  const judged = what === 'second' ? judgeSecond(place, reply, asked, rank) : judgeDistractor(reply, asked);
  const ran = reply.status === 'success';
  return {
    what,
    id: task.id,
    kind: task.kind,
    servers: task.servers,
    intent,
    context,
    ...(what === 'second'
      ? { closeness: asked.closeness, language: asked.language, placement: asked.placement, note: asked.note }
      : { distractor: asked.kind }),
    verdict: judged,
    status: reply.status,
    rank: rank || null,
    ran: ran ? (owners.get(reply.capabilityId) ?? reply.capabilityId ?? null) : null,
    ...(ran && { result: reply.result, expect: asked.expect }),
    because: reply.suggestions?.because ?? reply.error ?? null,
    suggested: candidates.map(({ id, name, arguments: given, missing }) => ({ task: owners.get(id) ?? id, name, arguments: given, missing })),
    text,
    ms: Math.round(ms),
    // Only for what is asked next; not kept.
    ...(judged === 'suggested' && { candidate: candidates[rank - 1] }),
    task,
    asked,
    reply,
  };
}

function judgeSecond(place, reply, asked, rank) {
  if (reply.status === 'suggestions') return rank ? 'suggested' : 'notFound';
  if (reply.status !== 'success') return 'failed';
  if (isRight(place, reply, asked)) return 'right';
  return 'wrong';
}

function judgeDistractor(reply, { ok }) {
  if (reply.status === 'suggestions' || reply.status === 'refused') return 'heldBack';
  return ok !== null && same(reply.result, ok) ? 'fine' : 'executed';
}

/** One more call: the suggested capability by its id, with every value in the parameter that had the first one. */
async function confirm(place, { task, asked, candidate, text }) {
  const context = { ...readyCall(text, candidate)?.context, ...valuesFor(candidate, task, asked), ...asked.context };
  return judgeCall(place, asked, await call(place, asked, candidate.id, context, { learn: false, cache: false }));
}

/** The call as the reply offers it, to be learned from: what is open is left open. */
async function acceptOffer(place, { asked, candidate, text }) {
  const context = { ...(readyCall(text, candidate)?.context ?? candidate.arguments), ...asked.context };
  return judgeCall(place, asked, await call(place, asked, candidate.id, context));
}

/** The same intent once more, after its offer was accepted. */
async function askAgain(place, { asked }) {
  place.reset();
  const { reply } = await place.execute({ intent: asked.intent, ...(asked.context && { context: asked.context }) });
  return judgeCall(place, asked, reply);
}

async function call(place, { intent }, id, context, options) {
  place.reset();
  const request = { intent, implementation: { type: 'capability', id }, context, ...(options && { options }) };
  return (await place.execute(request)).reply;
}

function judgeCall(place, asked, reply) {
  const verdict = isRight(place, reply, asked) ? 'right' : reply.status === 'success' ? 'wrong' : 'refused';
  return { verdict, ...(verdict !== 'right' && { told: reply.result ?? reply.error ?? reply.suggestions?.because }) };
}

/** The line of a reply that can be sent back as it is, if it is for this capability. */
function readyCall(text, { id, name }) {
  for (const [, line] of text.matchAll(/^.*?pml_execute (\{.*\})/gm)) {
    try {
      const request = JSON.parse(line);
      if ([id, name].includes(request.implementation?.id)) return request;
    } catch {
      // Not a call but a sentence about one.
    }
  }
}

function valuesFor({ parameters }, task, asked) {
  const context = {};
  const firsts = [task, ...(task.again ?? [])];
  for (const [parameter, { default: was, type }] of Object.entries(parameters?.properties ?? {})) {
    const [key] = Object.entries(task.argnames ?? {}).find(([, name]) => name === parameter) ?? [];
    const said = key ?? Object.keys(task.values).find((name) => firsts.some(({ values }) => same(values[name], was) || String(values[name]) === String(was)));
    if (said) context[parameter] = type === 'string' && typeof asked.values[said] === 'number' ? String(asked.values[said]) : asked.values[said];
  }
  return context;
}

function isRight(place, reply, { expect, after }) {
  return reply.status === 'success' && same(reply.result, expect) && holds(place.world, after);
}

function same(one, other) {
  if (typeof one === 'number' && typeof other === 'number') {
    return Math.abs(one - other) <= PRECISION * Math.max(1, Math.abs(one), Math.abs(other));
  }
  if (Array.isArray(one) && Array.isArray(other)) return one.length === other.length && one.every((item, i) => same(item, other[i]));
  if (one && other && typeof one === 'object' && typeof other === 'object') {
    const keys = Object.keys(one);
    return keys.length === Object.keys(other).length && keys.every((key) => key in other && same(one[key], other[key]));
  }
  return one === other;
}

/** In an order that depends on the seed alone. */
function shuffled(items, seed) {
  let state = seed;
  const next = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const all = [...items];
  for (let i = all.length - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1));
    [all[i], all[j]] = [all[j], all[i]];
  }
  return all;
}
