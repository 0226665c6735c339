// Tasks that leave files behind.

import { deepEqual, throws } from 'node:assert/strict';
import { csv, each, prose, random, rows, sales, total } from '../data.mjs';

const named = (folder, name, ending, count) =>
  Array.from({ length: count }, (_, i) => `${folder}/${name}${i + 101}.${ending}`);

const pictures = each(
  [...named('photos/trip', 'img', 'jpeg', 12), ...named('photos/party', 'img', 'png', 11)],
  (i) => `picture ${i}`,
);

const rename = {
  id: 'rename-by-pattern',
  files: pictures,
  first: { intent: 'rename all .jpeg files in photos/trip to .jpg', folder: 'photos/trip', from: '.jpeg', to: '.jpg' },
  second: {
    intent: 'rename all .png files in photos/party to .apng',
    folder: 'photos/party',
    from: '.png',
    to: '.apng',
  },
  plain: async (tool, { folder, from, to }) => {
    const { content } = await tool('files__list_directory', { path: folder });
    const names = [...content.matchAll(/\[FILE\] (\S+)/g)]
      .map(([, name]) => name)
      .filter((name) => name.endsWith(from));
    for (const name of names) {
      const destination = `${folder}/${name.slice(0, -from.length)}${to}`;
      await tool('files__move_file', { source: `${folder}/${name}`, destination });
    }
    return names.length;
  },
  context: ({ folder, from, to }) => ({ folder, from, to }),
  code: () => `const { content } = await mcp.files.list_directory({ path: args.folder });
const names = [...content.matchAll(/\\[FILE\\] (\\S+)/g)].map((m) => m[1]).filter((name) => name.endsWith(args.from));
for (const name of names) {
  const destination = args.folder + "/" + name.slice(0, -args.from.length) + args.to;
  await mcp.files.move_file({ source: args.folder + "/" + name, destination });
}
return names.length;`,
  check: (answer, { folder, from, to }, place) => {
    const paths = Object.keys(pictures).filter((path) => path.startsWith(folder));
    deepEqual(answer, paths.length);
    for (const path of paths) {
      deepEqual(place.read(path.replace(from, to)), pictures[path]);
      throws(() => place.read(path));
    }
  },
};

const contracts = each(
  [...named('contracts/2025', 'contract', 'md', 8), ...named('contracts/2026', 'contract', 'md', 8)],
  (i, path) => {
    const party = path.startsWith('contracts/2025') ? 'Acme Ltd' : 'Orion SA';
    return `# Contract ${i}\n\nBetween ${party} and the customer.\n\n${prose(i + 200, 110)}\nSigned for ${party}.\n`;
  },
);

const replace = {
  id: 'replace-in-files',
  files: contracts,
  first: {
    intent: 'replace "Acme Ltd" with "Acme GmbH" in all files of contracts/2025',
    folder: 'contracts/2025',
    find: 'Acme Ltd',
    with: 'Acme GmbH',
  },
  second: {
    intent: 'replace "Orion SA" with "Orion BV" in all files of contracts/2026',
    folder: 'contracts/2026',
    find: 'Orion SA',
    with: 'Orion BV',
  },
  plain: async (tool, values) => {
    const { matches } = await tool('fs__search', { path: values.folder, contains: values.find });
    const paths = [...new Set(matches.map(({ path }) => path))].sort();
    for (const path of paths) {
      const lines = matches.filter((match) => match.path === path).map(({ text }) => text);
      const edits = lines.map((line) => ({ oldText: line, newText: line.replaceAll(values.find, values.with) }));
      await tool('files__edit_file', { path, edits });
    }
    return paths;
  },
  code: (values) => `const { matches } = await mcp.fs.search({ path: "${values.folder}", contains: "${values.find}" });
const paths = [...new Set(matches.map((m) => m.path))].sort();
for (const path of paths) {
  const { content } = await mcp.fs.read({ path });
  const { text } = await mcp.text.replace({ text: content, find: "${values.find}", with: "${values.with}" });
  await mcp.fs.write({ path, content: text });
}
return paths;`,
  check: (answer, values, place) => {
    const paths = Object.keys(contracts).filter((path) => path.startsWith(values.folder));
    deepEqual(answer, paths);
    for (const path of paths) deepEqual(place.read(path), contracts[path].replaceAll(values.find, values.with));
  },
};

const QUARTERS = [
  ['figures/jan.csv', 'figures/feb.csv', 'figures/mar.csv'],
  ['figures/apr.csv', 'figures/may.csv', 'figures/jun.csv'],
];
const figures = each(QUARTERS.flat(), (i) => sales(i + 60, 30));
const report = (paths, sums) => `# Sales\n\n${paths.map((path, i) => `- ${path}: ${sums[i].toFixed(2)}\n`).join('')}`;

const quarter = {
  id: 'quarter-report',
  files: figures,
  first: {
    intent: `write the totals of ${QUARTERS[0].join(', ').replace(/, (\S+)$/, ' and $1')} to reports/q1.md`,
    paths: QUARTERS[0],
    target: 'reports/q1.md',
  },
  second: {
    intent: `write the totals of ${QUARTERS[1].join(', ').replace(/, (\S+)$/, ' and $1')} to reports/q2.md`,
    paths: QUARTERS[1],
    target: 'reports/q2.md',
  },
  plain: async (tool, { paths, target }) => {
    const sums = [];
    for (const path of paths) {
      const table = rows((await tool('fs__read', { path })).content);
      sums.push(total([(await tool('math__statistics', { values: table.map(({ amount }) => Number(amount)) })).sum]));
    }
    await tool('fs__write', { path: target, content: report(paths, sums) });
    return target;
  },
  context: ({ paths, target }) => ({ paths, target }),
  code: () => `let text = "# Sales\\n\\n";
for (const path of args.paths) {
  const { rows } = await mcp.csv.parse({ csv: (await mcp.fs.read({ path })).content });
  const { sum } = await mcp.math.statistics({ values: rows.map((row) => Number(row.amount)) });
  text += "- " + path + ": " + sum.toFixed(2) + "\\n";
}
await mcp.fs.write({ path: args.target, content: text });
return args.target;`,
  check: (answer, { paths, target }, place) => {
    deepEqual(answer, target);
    const sums = paths.map((path) => total(rows(place.read(path)).map(({ amount }) => amount)));
    deepEqual(place.read(target), report(paths, sums));
  },
};

const products = (seed) => {
  const next = random(seed);
  return csv(
    Array.from({ length: 25 }, (_, i) => ({
      sku: `P${seed}${i}`,
      name: `article ${i}`,
      price: (next() * 90).toFixed(2),
    })),
  );
};
const catalogues = { 'catalogue/garden.csv': products(71), 'catalogue/kitchen.csv': products(72) };

const convert = {
  id: 'csv-to-json',
  files: catalogues,
  first: {
    intent: 'convert catalogue/garden.csv to JSON in catalogue/garden.json',
    from: 'catalogue/garden.csv',
    to: 'catalogue/garden.json',
  },
  second: {
    intent: 'convert catalogue/kitchen.csv to JSON in catalogue/kitchen.json',
    from: 'catalogue/kitchen.csv',
    to: 'catalogue/kitchen.json',
  },
  plain: async (tool, { from, to }) => {
    const { content } = await tool('fs__read', { path: from });
    await tool('fs__write', { path: to, content: JSON.stringify(rows(content), null, 2) });
    return to;
  },
  code: ({ from, to }) => `const { content } = await mcp.fs.read({ path: "${from}" });
const { rows } = await mcp.csv.parse({ csv: content });
const { json } = await mcp.json.stringify({ data: rows, indent: 2 });
return (await mcp.fs.write({ path: "${to}", content: json })).path;`,
  check: (answer, { from, to }, place) => {
    deepEqual(answer, to);
    deepEqual(JSON.parse(place.read(to)), rows(place.read(from)));
  },
};

const addresses = (seed, count) =>
  csv(
    Array.from({ length: count }, (_, i) => ({ email: `user${(i * seed) % 47}@example.org`, since: 2015 + (i % 10) })),
  );
const lists = {
  'lists/newsletter.csv': addresses(3, 28),
  'lists/customers.csv': addresses(5, 25),
  'lists/events.csv': addresses(4, 27),
  'lists/partners.csv': addresses(7, 26),
};
const emails = (...texts) => [...new Set(texts.flatMap((text) => rows(text).map(({ email }) => email)))].sort();

const merge = {
  id: 'merge-mailing-lists',
  files: lists,
  first: {
    intent: 'merge the emails of lists/newsletter.csv and lists/customers.csv without duplicates into lists/all.txt',
    one: 'lists/newsletter.csv',
    other: 'lists/customers.csv',
    target: 'lists/all.txt',
  },
  second: {
    intent: 'merge the emails of lists/events.csv and lists/partners.csv without duplicates into lists/guests.txt',
    one: 'lists/events.csv',
    other: 'lists/partners.csv',
    target: 'lists/guests.txt',
  },
  plain: async (tool, { one, other, target }) => {
    const both = [await tool('fs__read', { path: one }), await tool('fs__read', { path: other })];
    const merged = emails(...both.map(({ content }) => content));
    await tool('fs__write', { path: target, content: `${merged.join('\n')}\n` });
    return merged.length;
  },
  code: ({ one, other, target }) => `const emails = new Set<string>();
for (const path of ["${one}", "${other}"]) {
  const { rows } = await mcp.csv.parse({ csv: (await mcp.fs.read({ path })).content });
  for (const row of rows) emails.add(row.email);
}
await mcp.fs.write({ path: "${target}", content: [...emails].sort().join("\\n") + "\\n" });
return emails.size;`,
  check: (answer, { one, other, target }, place) => {
    const merged = emails(place.read(one), place.read(other));
    deepEqual(answer, merged.length);
    deepEqual(place.read(target), `${merged.join('\n')}\n`);
  },
};

const settings = each(['settings/app.json', 'settings/db.json'], (i) =>
  JSON.stringify({ name: i, retries: 3, hosts: ['a', 'b'] }, null, 2),
);

/** The second time the user does not say where to. */
const backUp = {
  id: 'back-up',
  files: settings,
  first: { intent: 'back up settings/app.json to backups/app.json', from: 'settings/app.json', to: 'backups/app.json' },
  second: { intent: 'back up settings/db.json', from: 'settings/db.json', to: 'backups/db.json' },
  plain: async (tool, { from, to }) => {
    const { content } = await tool('fs__read', { path: from });
    return (await tool('fs__create', { path: to, content })).path;
  },
  code: ({ from, to }) => `const { content } = await mcp.fs.read({ path: "${from}" });
return (await mcp.fs.create({ path: "${to}", content })).path;`,
  check: (answer, { from, to }, place) => {
    deepEqual(answer, to);
    deepEqual(place.read(to), place.read(from));
  },
};

export const CHANGES = [rename, replace, quarter, convert, merge, backUp];
