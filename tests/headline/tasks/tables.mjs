// Tables in CSV and JSON files.

import { deepEqual } from 'node:assert/strict';
import { csv, each, random, rows, sales, total } from '../data.mjs';

const months = each(['sales/january.csv', 'sales/february.csv'], (i) => sales(i + 1, 40));

const columnSum = {
  id: 'column-sum',
  files: months,
  first: { intent: 'sum the amount column of sales/january.csv', path: 'sales/january.csv' },
  second: { intent: 'sum the amount column of sales/february.csv', path: 'sales/february.csv' },
  plain: async (tool, { path }) => {
    const { content } = await tool('fs__read', { path });
    const values = rows(content).map(({ amount }) => Number(amount));
    return total([(await tool('math__statistics', { values })).sum]);
  },
  code: ({ path }) => `const { content } = await mcp.fs.read({ path: "${path}" });
const { rows } = await mcp.csv.parse({ csv: content });
const { sum } = await mcp.math.statistics({ values: rows.map((row) => Number(row.amount)) });
return Math.round(sum * 100) / 100;`,
  check: (answer, { path }, place) => deepEqual(answer, total(rows(place.read(path)).map(({ amount }) => amount))),
};

const NAMES = [
  'Ada Brandt',
  'Bruno Keller',
  'Chiara Conti',
  'David Novak',
  'Elif Demir',
  'Femke Bakker',
  'Goran Ilic',
  'Hana Sato',
];
const orders = (seed) => {
  const next = random(seed);
  return csv(
    Array.from({ length: 60 }, (_, i) => ({
      order: seed * 1000 + i,
      customer: `C${Math.floor(next() * NAMES.length)}`,
      revenue: Math.floor(next() * 900) + 20,
    })),
  );
};
const shop = {
  'shop/orders-2025.csv': orders(11),
  'shop/orders-2026.csv': orders(12),
  'shop/customers.json': JSON.stringify(
    NAMES.map((name, i) => ({ id: `C${i}`, name, city: ['Bern', 'Lille', 'Porto'][i % 3] })),
    null,
    2,
  ),
};

function best(orderRows, customers, count) {
  const sums = {};
  for (const { customer, revenue } of orderRows) sums[customer] = (sums[customer] ?? 0) + Number(revenue);
  return customers
    .map(({ id, name }) => ({ name, revenue: sums[id] ?? 0 }))
    .sort((a, b) => b.revenue - a.revenue)
    .slice(0, count);
}

const bestCustomers = {
  id: 'best-customers',
  files: shop,
  first: {
    intent: 'name the top 3 customers by revenue in shop/orders-2025.csv, with names from shop/customers.json',
    orders: 'shop/orders-2025.csv',
    customers: 'shop/customers.json',
    count: 3,
  },
  second: {
    intent: 'name the top 5 customers by revenue in shop/orders-2026.csv, with names from shop/customers.json',
    orders: 'shop/orders-2026.csv',
    customers: 'shop/customers.json',
    count: 5,
  },
  plain: async (tool, values) => {
    const { content } = await tool('fs__read', { path: values.orders });
    const people = await tool('fs__read', { path: values.customers });
    return best(rows(content), JSON.parse(people.content), values.count);
  },
  code: (values) => `const [orders, customers] = await Promise.all([
  mcp.fs.read({ path: "${values.orders}" }).then((file) => mcp.csv.parse({ csv: file.content })),
  mcp.fs.read({ path: "${values.customers}" }).then((file) => mcp.json.parse({ json: file.content })),
]);
const revenue: Record<string, number> = {};
for (const row of orders.rows) revenue[row.customer] = (revenue[row.customer] ?? 0) + Number(row.revenue);
return customers.data
  .map((customer) => ({ name: customer.name, revenue: revenue[customer.id] ?? 0 }))
  .sort((a, b) => b.revenue - a.revenue)
  .slice(0, ${values.count});`,
  check: (answer, values, place) =>
    deepEqual(answer, best(rows(place.read(values.orders)), JSON.parse(place.read(values.customers)), values.count)),
};

const settings = (seed) => {
  const next = random(seed);
  const keys = [
    'host',
    'port',
    'pool',
    'timeout',
    'retries',
    'cache',
    'locale',
    'theme',
    'log',
    'quota',
    'region',
    'tier',
  ];
  return Object.fromEntries(keys.map((key) => [key, Math.floor(next() * 3)]));
};
const configs = each(['config/staging.json', 'config/production.json', 'config/alpha.json', 'config/beta.json'], (i) =>
  JSON.stringify(settings(i + 21), null, 2),
);
const differing = (one, other) =>
  Object.keys(one)
    .filter((key) => one[key] !== other[key])
    .sort();

const jsonDifference = {
  id: 'json-difference',
  files: configs,
  first: {
    intent: 'which keys differ between config/staging.json and config/production.json?',
    one: 'config/staging.json',
    other: 'config/production.json',
  },
  second: {
    intent: 'which keys differ between config/alpha.json and config/beta.json?',
    one: 'config/alpha.json',
    other: 'config/beta.json',
  },
  plain: async (tool, values) => {
    const one = JSON.parse((await tool('fs__read', { path: values.one })).content);
    const other = JSON.parse((await tool('fs__read', { path: values.other })).content);
    return differing(one, other);
  },
  code: (values) => `const read = async (path: string) => JSON.parse((await mcp.fs.read({ path })).content);
const one = await read("${values.one}");
const other = await read("${values.other}");
return [...new Set([...Object.keys(one), ...Object.keys(other)])].filter((key) => one[key] !== other[key]).sort();`,
  check: (answer, values, place) =>
    deepEqual(answer, differing(JSON.parse(place.read(values.one)), JSON.parse(place.read(values.other)))),
};

const expenses = (seed) => {
  const next = random(seed);
  const categories = ['voyage', 'repas', 'materiel', 'logiciel'];
  return csv(
    Array.from({ length: 35 }, (_, i) => ({
      date: `2026-0${seed - 30}-${String((i % 28) + 1).padStart(2, '0')}`,
      categorie: categories[Math.floor(next() * 4)],
      montant: (5 + next() * 200).toFixed(2),
    })),
  );
};
const depenses = { 'depenses/mars.csv': expenses(33), 'depenses/avril.csv': expenses(34) };
const byCategory = (table) => {
  const sums = {};
  for (const { categorie, montant } of table) sums[categorie] = total([sums[categorie] ?? 0, montant]);
  return sums;
};

const frenchSums = {
  id: 'montants-par-categorie',
  files: depenses,
  first: { intent: 'additionne les montants de depenses/mars.csv par catégorie', path: 'depenses/mars.csv' },
  second: { intent: 'additionne les montants de depenses/avril.csv par catégorie', path: 'depenses/avril.csv' },
  plain: async (tool, { path }) => {
    const table = rows((await tool('fs__read', { path })).content);
    const sums = {};
    for (const category of new Set(table.map(({ categorie }) => categorie))) {
      const values = table.filter(({ categorie }) => categorie === category).map(({ montant }) => Number(montant));
      sums[category] = total([(await tool('math__statistics', { values })).sum]);
    }
    return sums;
  },
  code: ({ path }) => `const { content } = await mcp.fs.read({ path: "${path}" });
const { rows } = await mcp.csv.parse({ csv: content });
const sommes: Record<string, number> = {};
for (const { categorie, montant } of rows) {
  sommes[categorie] = Math.round(((sommes[categorie] ?? 0) + Number(montant)) * 100) / 100;
}
return sommes;`,
  check: (answer, { path }, place) => deepEqual(answer, byCategory(rows(place.read(path)))),
};

const invoices = (seed) => {
  const next = random(seed);
  return csv(
    Array.from({ length: 30 }, (_, i) => ({
      invoice: `R-${seed}${String(i).padStart(2, '0')}`,
      due: `2026-${String(1 + Math.floor(next() * 6)).padStart(2, '0')}-${String(1 + Math.floor(next() * 28)).padStart(2, '0')}`,
      paid: next() < 0.5 ? 'yes' : 'no',
      total: Math.floor(next() * 4000),
    })),
  );
};
const billing = { 'billing/north.csv': invoices(41), 'billing/south.csv': invoices(42) };
const days = (from, to) => Math.round((Date.parse(to) - Date.parse(from)) / 86_400_000);
const late = (table, date) => table.filter(({ due, paid }) => paid === 'no' && due < date);

const overdue = {
  id: 'overdue-invoices',
  files: billing,
  first: {
    intent: 'list the unpaid invoices of billing/north.csv that are overdue on 2026-05-01, with the days they are late',
    path: 'billing/north.csv',
    date: '2026-05-01',
  },
  second: {
    intent: 'list the unpaid invoices of billing/south.csv that are overdue on 2026-06-15, with the days they are late',
    path: 'billing/south.csv',
    date: '2026-06-15',
  },
  plain: async (tool, { path, date }) => {
    const found = [];
    for (const { invoice, due } of late(rows((await tool('fs__read', { path })).content), date)) {
      found.push({ invoice, days: (await tool('time__diff', { from: due, to: date })).days });
    }
    return found;
  },
  code: ({ path, date }) => `const today = "${date}";
const { content } = await mcp.fs.read({ path: "${path}" });
const { rows } = await mcp.csv.parse({ csv: content });
const late = rows.filter((row) => row.paid === "no" && row.due < today);
return Promise.all(
  late.map(async (row) => ({ invoice: row.invoice, days: (await mcp.time.diff({ from: row.due, to: today })).days })),
);`,
  check: (answer, { path, date }, place) =>
    deepEqual(
      answer,
      late(rows(place.read(path)), date).map(({ invoice, due }) => ({ invoice, days: days(due, date) })),
    ),
};

const stock = (seed) => {
  const next = random(seed);
  return csv(
    Array.from({ length: 30 }, (_, i) => ({
      article: `A${seed}${i}`,
      place: ['Ulm', 'Linz', 'Metz'][i % 3],
      units: Math.floor(next() * 120),
    })),
  );
};
const stocks = { 'stock/spring.csv': stock(51), 'stock/autumn.csv': stock(52) };
const scarce = (table, units) => table.filter((row) => Number(row.units) < units).map(({ article }) => article);

/** A model gets the names of arguments wrong at first. */
const lowStock = {
  id: 'low-stock-corrected',
  files: stocks,
  first: {
    intent: 'list the articles in stock/spring.csv with fewer than 20 units',
    path: 'stock/spring.csv',
    units: 20,
  },
  second: {
    intent: 'list the articles in stock/autumn.csv with fewer than 35 units',
    path: 'stock/autumn.csv',
    units: 35,
  },
  plain: async (tool, { path, units }) => {
    await tool('fs__read', { file: path }, { mayFail: true });
    return scarce(rows((await tool('fs__read', { path })).content), units);
  },
  wrong: ({ path, units }) => `const { content } = await mcp.fs.read({ file: "${path}" });
const { rows } = await mcp.csv.parse({ text: content });
return rows.filter((row) => Number(row.units) < ${units}).map((row) => row.article);`,
  code: ({ path, units }) => `const { content } = await mcp.fs.read({ path: "${path}" });
const { rows } = await mcp.csv.parse({ csv: content });
return rows.filter((row) => Number(row.units) < ${units}).map((row) => row.article);`,
  check: (answer, { path, units }, place) => deepEqual(answer, scarce(rows(place.read(path)), units)),
};

export const TABLES = [columnSum, bestCustomers, jsonDifference, frenchSums, overdue, lowStock];
