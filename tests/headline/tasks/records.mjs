// More tables: people, scores, rooms, calls, auctions.

import { deepEqual } from 'node:assert/strict';
import { csv, each, random, rows, total } from '../data.mjs';

const table = async (tool, path) => rows((await tool('fs__read', { path })).content);
const reads = (path) => `const { rows } = await mcp.csv.parse({ csv: (await mcp.fs.read({ path: "${path}" })).content });`;
const numbers = (count, make) => Array.from({ length: count }, (_, i) => make(i));

const people = (letter, step, count) => csv(numbers(count, (i) => ({ name: `${letter}${i * step}`, floor: i % 5 })));
const staff = {
  'hr/staff-a.csv': people('A', 1, 30),
  'hr/badges-a.csv': people('A', 2, 15),
  'hr/staff-b.csv': people('B', 1, 27),
  'hr/badges-b.csv': people('B', 3, 9),
};
const without = (all, some) => all.map(({ name }) => name).filter((name) => !some.some((row) => row.name === name));

const badges = {
  id: 'without-badge',
  files: staff,
  first: { intent: 'which people of hr/staff-a.csv are not in hr/badges-a.csv?', staff: 'hr/staff-a.csv', badges: 'hr/badges-a.csv' },
  second: { intent: 'which people of hr/staff-b.csv are not in hr/badges-b.csv?', staff: 'hr/staff-b.csv', badges: 'hr/badges-b.csv' },
  plain: async (tool, values) => without(await table(tool, values.staff), await table(tool, values.badges)),
  code: (values) => `const load = async (path: string) => (await mcp.csv.parse({ csv: (await mcp.fs.read({ path })).content })).rows;
const staff = await load("${values.staff}");
const badges = new Set((await load("${values.badges}")).map((row) => row.name));
return staff.map((row) => row.name).filter((name) => !badges.has(name));`,
  check: (answer, values) => deepEqual(answer, without(rows(staff[values.staff]), rows(staff[values.badges]))),
};

const marks = (seed) => {
  const next = random(seed);
  return csv(numbers(36, (i) => ({ pupil: `p${i}`, class: ['red', 'blue', 'green'][i % 3], score: Math.floor(next() * 100) })));
};
const school = each(['school/spring.csv', 'school/autumn.csv'], (i) => marks(i + 81));
const means = (all) => {
  const groups = {};
  for (const { class: name, score } of all) (groups[name] ??= []).push(Number(score));
  return Object.fromEntries(Object.entries(groups).map(([name, scores]) => [name, Math.round((10 * total(scores)) / scores.length) / 10]));
};

const classes = {
  id: 'mean-by-class',
  files: school,
  first: { intent: 'what is the mean score of each class in school/spring.csv?', path: 'school/spring.csv' },
  second: { intent: 'what is the mean score of each class in school/autumn.csv?', path: 'school/autumn.csv' },
  plain: async (tool, { path }) => {
    const all = await table(tool, path);
    const found = {};
    for (const name of new Set(all.map((row) => row.class))) {
      const values = all.filter((row) => row.class === name).map(({ score }) => Number(score));
      found[name] = Math.round(10 * (await tool('math__statistics', { values })).mean) / 10;
    }
    return found;
  },
  code: ({ path }) => `${reads(path)}
const groups: Record<string, number[]> = {};
for (const row of rows) (groups[row.class] ??= []).push(Number(row.score));
const found: Record<string, number> = {};
for (const [name, values] of Object.entries(groups)) {
  found[name] = Math.round(10 * (await mcp.math.statistics({ values })).mean) / 10;
}
return found;`,
  check: (answer, { path }) => deepEqual(answer, means(rows(school[path]))),
};

const climate = (seed) => {
  const next = random(seed);
  return csv(numbers(40, (i) => ({ room: `r${i % 8}`, day: 1 + Math.floor(i / 8), degrees: (18 + next() * 12).toFixed(1) })));
};
const rooms = each(['rooms/july.csv', 'rooms/august.csv'], (i) => climate(i + 91));
const hot = (all, degrees) => [...new Set(all.filter((row) => Number(row.degrees) > degrees).map(({ room }) => room))].sort();

const heat = {
  id: 'rooms-too-hot',
  files: rooms,
  first: { intent: 'which rooms in rooms/july.csv were hotter than 28.5 degrees?', path: 'rooms/july.csv', degrees: 28.5 },
  second: { intent: 'which rooms in rooms/august.csv were hotter than 29 degrees?', path: 'rooms/august.csv', degrees: 29 },
  plain: async (tool, { path, degrees }) => hot(await table(tool, path), degrees),
  code: ({ path, degrees }) => `${reads(path)}
return [...new Set(rows.filter((row) => Number(row.degrees) > ${degrees}).map((row) => row.room))].sort();`,
  check: (answer, { path, degrees }) => deepEqual(answer, hot(rows(rooms[path]), degrees)),
};

const exported = (seed) => csv(numbers(30, (i) => ({ id: i, email: `u${(i * seed) % 23}@example.org` })));
const contacts = each(['crm/export-1.csv', 'crm/export-2.csv'], (i) => exported(3 + 2 * i));
const twice = (all) => {
  const emails = all.map(({ email }) => email);
  return [...new Set(emails.filter((email, i) => emails.indexOf(email) !== i))].sort();
};

const duplicates = {
  id: 'duplicate-emails',
  files: contacts,
  first: { intent: 'which emails are more than once in crm/export-1.csv?', path: 'crm/export-1.csv' },
  second: { intent: 'find the duplicate emails in crm/export-2.csv', path: 'crm/export-2.csv' },
  plain: async (tool, { path }) => twice(await table(tool, path)),
  code: ({ path }) => `${reads(path)}
const seen = new Map<string, number>();
for (const { email } of rows) seen.set(email, (seen.get(email) ?? 0) + 1);
return [...seen].filter(([, count]) => count > 1).map(([email]) => email).sort();`,
  check: (answer, { path }) => deepEqual(answer, twice(rows(contacts[path]))),
};

const sheet = (month) => csv(numbers(28, (i) => ({ date: `2026-0${month}-${String(i + 1).padStart(2, '0')}`, hours: 1 + ((i * 5) % 8) })));
const sheets = { 'time/june.csv': sheet(6), 'time/july.csv': sheet(7) };
const hoursIn = (all, from, to) => total(all.filter(({ date }) => date >= from && date <= to).map(({ hours }) => hours));

const period = {
  id: 'hours-in-period',
  files: sheets,
  first: { intent: 'how many hours are in time/june.csv from 2026-06-08 to 2026-06-14?', path: 'time/june.csv', from: '2026-06-08', to: '2026-06-14' },
  second: { intent: 'how many hours are in time/july.csv from 2026-07-20 to 2026-07-26?', path: 'time/july.csv', from: '2026-07-20', to: '2026-07-26' },
  plain: async (tool, { path, from, to }) => hoursIn(await table(tool, path), from, to),
  code: ({ path, from, to }) => `${reads(path)}
return rows
  .filter((row) => row.date >= "${from}" && row.date <= "${to}")
  .reduce((sum, row) => sum + Number(row.hours), 0);`,
  check: (answer, { path, from, to }) => deepEqual(answer, hoursIn(rows(sheets[path]), from, to)),
};

const waiting = (seed) => {
  const next = random(seed);
  return JSON.stringify(numbers(40, (i) => ({ id: i, status: ['new', 'paid', 'shipped', 'lost'][Math.floor(next() * 4)] })), null, 1);
};
const queues = each(['queue/eu.json', 'queue/us.json'], (i) => waiting(i + 101));
const perStatus = (all) => {
  const counts = {};
  for (const { status } of all) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};

const statuses = {
  id: 'orders-by-status',
  files: queues,
  first: { intent: 'how many orders of each status are in queue/eu.json?', path: 'queue/eu.json' },
  second: { intent: 'how many orders of each status are in queue/us.json?', path: 'queue/us.json' },
  plain: async (tool, { path }) => perStatus(JSON.parse((await tool('fs__read', { path })).content)),
  code: ({ path }) => `const { data } = await mcp.json.parse({ json: (await mcp.fs.read({ path: "${path}" })).content });
const counts: Record<string, number> = {};
for (const order of data) counts[order.status] = (counts[order.status] ?? 0) + 1;
return counts;`,
  check: (answer, { path }) => deepEqual(answer, perStatus(JSON.parse(queues[path]))),
};

const phone = (seed) => {
  const next = random(seed);
  return csv(numbers(50, (i) => ({ call: i, waited: Math.floor(next() * 120), agent: `a${i % 4}` })));
};
const calls = each(['calls/may.csv', 'calls/june.csv'], (i) => phone(i + 111));
const within = (all, seconds) => Math.round((100 * all.filter(({ waited }) => Number(waited) <= seconds).length) / all.length);

const answered = {
  id: 'answered-in-time',
  files: calls,
  first: { intent: 'what percentage of the calls in calls/may.csv waited at most 30 seconds?', path: 'calls/may.csv', seconds: 30 },
  second: { intent: 'what percentage of the calls in calls/june.csv waited at most 45 seconds?', path: 'calls/june.csv', seconds: 45 },
  plain: async (tool, { path, seconds }) => within(await table(tool, path), seconds),
  code: ({ path, seconds }) => `${reads(path)}
const quick = rows.filter((row) => Number(row.waited) <= ${seconds}).length;
return Math.round((100 * quick) / rows.length);`,
  check: (answer, { path, seconds }) => deepEqual(answer, within(rows(calls[path]), seconds)),
};

const lots = (seed) => {
  const next = random(seed);
  return JSON.stringify(numbers(25, (i) => ({ lot: `L${seed}${i}`, price: Math.floor(next() * 90000) })), null, 1);
};
const auctions = each(['auctions/spring.json', 'auctions/winter.json'], (i) => lots(i + 121));
const dearest = (all, count) => [...all].sort((a, b) => b.price - a.price).slice(0, count).map(({ lot }) => lot);

const expensive = {
  id: 'most-expensive-lots',
  files: auctions,
  first: { intent: 'name the 4 most expensive lots in auctions/spring.json', count: 4, path: 'auctions/spring.json' },
  second: { intent: 'what were the 6 most expensive lots in auctions/winter.json?', count: 6, path: 'auctions/winter.json' },
  plain: async (tool, { count, path }) => dearest(JSON.parse((await tool('fs__read', { path })).content), count),
  code: ({ count, path }) => `const { data } = await mcp.json.parse({ json: (await mcp.fs.read({ path: "${path}" })).content });
return data.sort((a, b) => b.price - a.price).slice(0, ${count}).map((item) => item.lot);`,
  check: (answer, { count, path }) => deepEqual(answer, dearest(JSON.parse(auctions[path]), count)),
};

export const RECORDS = [badges, classes, heat, duplicates, period, statuses, answered, expensive];
