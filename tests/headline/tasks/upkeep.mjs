// More tasks that leave something behind: diaries, settings, lists, memos, the knowledge graph.

import { deepEqual, throws } from 'node:assert/strict';
import { csv, each, prose, random } from '../data.mjs';

const journals = each(['log/house.md', 'log/car.md'], (i) => `# Log ${i}\n\n- 2026-01-0${i + 1}: ${prose(i + 600, 8)}`);

const entry = {
  id: 'add-log-entry',
  files: journals,
  first: {
    intent: 'add the entry "called the plumber" of 2026-03-02 to log/house.md',
    text: 'called the plumber',
    date: '2026-03-02',
    path: 'log/house.md',
  },
  second: {
    intent: 'add the entry "changed the tyres" of 2026-04-11 to log/car.md',
    text: 'changed the tyres',
    date: '2026-04-11',
    path: 'log/car.md',
  },
  plain: async (tool, { text, date, path }) => {
    await tool('fs__write', { path, content: `- ${date}: ${text}\n`, append: true });
    return path;
  },
  code: ({ text, date, path }) => `await mcp.fs.write({ path: "${path}", content: "- ${date}: ${text}\\n", append: true });
return "${path}";`,
  check: (answer, { text, date, path }, place) => {
    deepEqual(answer, path);
    deepEqual(place.read(path), `${journals[path]}- ${date}: ${text}\n`);
  },
};

const services = each(['services/api.json', 'services/mail.json'], (i) =>
  JSON.stringify({ name: `service ${i}`, port: 8000 + i, hosts: ['north', 'south'], limits: { users: 40 } }, null, 2),
);

const port = {
  id: 'set-port',
  files: services,
  first: { intent: 'set the port to 9090 in services/api.json', port: 9090, path: 'services/api.json' },
  second: { intent: 'set the port to 2525 in services/mail.json', port: 2525, path: 'services/mail.json' },
  plain: async (tool, { port: wanted, path }) => {
    const settings = JSON.parse((await tool('fs__read', { path })).content);
    await tool('fs__write', { path, content: JSON.stringify({ ...settings, port: wanted }, null, 2) });
    return wanted;
  },
  code: ({ port: wanted, path }) => `const settings = JSON.parse((await mcp.fs.read({ path: "${path}" })).content);
settings.port = ${wanted};
await mcp.fs.write({ path: "${path}", content: JSON.stringify(settings, null, 2) });
return settings.port;`,
  check: (answer, { port: wanted, path }, place) => {
    deepEqual(answer, wanted);
    deepEqual(JSON.parse(place.read(path)), { ...JSON.parse(services[path]), port: wanted });
  },
};

const wordLists = each(['words/animals.txt', 'words/plants.txt'], (i) => {
  const next = random(i + 610);
  return `${Array.from({ length: 30 }, () => `word${Math.floor(next() * 900) + 100}`).join('\n')}\n`;
});
const ordered = (text) => `${text.trim().split('\n').sort().join('\n')}\n`;

const sorted = {
  id: 'sort-lines',
  files: wordLists,
  first: {
    intent: 'sort the lines of words/animals.txt into words/animals-sorted.txt',
    from: 'words/animals.txt',
    to: 'words/animals-sorted.txt',
  },
  second: {
    intent: 'sort the lines of words/plants.txt into words/plants-sorted.txt',
    from: 'words/plants.txt',
    to: 'words/plants-sorted.txt',
  },
  plain: async (tool, { from, to }) => {
    const { content } = await tool('fs__read', { path: from });
    await tool('fs__write', { path: to, content: ordered(content) });
    return to;
  },
  code: ({ from, to }) => `const { content } = await mcp.fs.read({ path: "${from}" });
const lines = content.trim().split("\\n").sort();
return (await mcp.fs.write({ path: "${to}", content: lines.join("\\n") + "\\n" })).path;`,
  check: (answer, { from, to }, place) => {
    deepEqual(answer, to);
    deepEqual(place.read(to), ordered(wordLists[from]));
  },
};

const exports_ = each(['export/orders.csv', 'export/returns.csv'], (i) => {
  const next = random(i + 620);
  return csv(Array.from({ length: 20 }, (_, n) => ({ id: n, amount: Math.floor(next() * 500), note: `note ${n % 4}` })));
});
const withSemicolons = (text) => text.replaceAll(',', ';');

const excel = {
  id: 'csv-with-semicolons',
  files: exports_,
  first: {
    intent: 'write export/orders.csv with semicolons to export/orders-excel.csv',
    from: 'export/orders.csv',
    to: 'export/orders-excel.csv',
  },
  second: {
    intent: 'save export/returns.csv with semicolons as export/returns-excel.csv',
    from: 'export/returns.csv',
    to: 'export/returns-excel.csv',
  },
  plain: async (tool, { from, to }) => {
    const { content } = await tool('fs__read', { path: from });
    await tool('fs__write', { path: to, content: withSemicolons(content) });
    return to;
  },
  code: ({ from, to }) => `const { rows } = await mcp.csv.parse({ csv: (await mcp.fs.read({ path: "${from}" })).content });
const { csv } = await mcp.csv.stringify({ rows, delimiter: ";" });
return (await mcp.fs.write({ path: "${to}", content: csv })).path;`,
  check: (answer, { from, to }, place) => {
    deepEqual(answer, to);
    deepEqual(place.read(to), withSemicolons(exports_[from]));
  },
};

const caches = each(
  ['cache/one', 'cache/two'].flatMap((folder, n) =>
    Array.from({ length: 9 + n }, (_, i) => `${folder}/file${i}.${i % 3 ? (n ? 'bak' : 'tmp') : 'dat'}`),
  ),
  (i) => `cached ${i}`,
);

const cleaning = {
  id: 'delete-by-ending',
  files: caches,
  first: { intent: 'delete all .tmp files in cache/one', ending: '.tmp', folder: 'cache/one' },
  second: { intent: 'delete all .bak files in cache/two', ending: '.bak', folder: 'cache/two' },
  plain: async (tool, { ending, folder }) => {
    const { entries } = await tool('fs__list', { path: folder });
    const paths = entries.map(({ path }) => path).filter((path) => path.endsWith(ending));
    for (const path of paths) await tool('fs__delete', { path });
    return paths.length;
  },
  code: ({ ending, folder }) => `const { entries } = await mcp.fs.list({ path: "${folder}" });
const old = entries.filter((entry) => entry.path.endsWith("${ending}"));
for (const entry of old) await mcp.fs.delete({ path: entry.path });
return old.length;`,
  check: (answer, { ending, folder }, place) => {
    const paths = Object.keys(caches).filter((path) => path.startsWith(`${folder}/`));
    const gone = paths.filter((path) => path.endsWith(ending));
    deepEqual(answer, gone.length);
    for (const path of gone) throws(() => place.read(path));
    for (const path of paths.filter((each) => !gone.includes(each))) deepEqual(place.read(path), caches[path]);
  },
};

const memos = each(
  ['memos/board', 'memos/press'].flatMap((folder, n) => Array.from({ length: 5 + n }, (_, i) => `${folder}/memo${i}.txt`)),
  (i) => prose(i + 630, 40),
);

const heading = {
  id: 'head-every-memo',
  files: memos,
  first: { intent: 'put the line "CONFIDENTIAL" above every file in memos/board', line: 'CONFIDENTIAL', folder: 'memos/board' },
  second: { intent: 'put the line "EMBARGO UNTIL MAY" above every file in memos/press', line: 'EMBARGO UNTIL MAY', folder: 'memos/press' },
  plain: async (tool, { line, folder }) => {
    const { entries } = await tool('fs__list', { path: folder });
    for (const { path } of entries) {
      const { content } = await tool('fs__read', { path });
      await tool('fs__write', { path, content: `${line}\n${content}` });
    }
    return entries.length;
  },
  code: ({ line, folder }) => `const { entries } = await mcp.fs.list({ path: "${folder}" });
for (const { path } of entries) {
  const { content } = await mcp.fs.read({ path });
  await mcp.fs.write({ path, content: "${line}\\n" + content });
}
return entries.length;`,
  check: (answer, { line, folder }, place) => {
    const paths = Object.keys(memos).filter((path) => path.startsWith(`${folder}/`));
    deepEqual(answer, paths.length);
    for (const path of paths) deepEqual(place.read(path), `${line}\n${memos[path]}`);
  },
};

const entity = (name, entityType, ...observations) => ({ type: 'entity', name, entityType, observations });
const relation = (from, relationType, to) => ({ type: 'relation', from, to, relationType });
const found = (place, name) => place.items().find((item) => item.type === 'entity' && item.name === name);

const projects = {
  id: 'note-in-graph',
  graph: [entity('atlas-project', 'project', 'started 2024'), entity('borealis-project', 'project', 'started 2025')],
  first: {
    intent: 'note about atlas-project in the knowledge graph: "moved to phase 2"',
    name: 'atlas-project',
    note: 'moved to phase 2',
  },
  second: {
    intent: 'note about borealis-project in the knowledge graph: "waits for funding"',
    name: 'borealis-project',
    note: 'waits for funding',
  },
  plain: async (tool, { name, note }) => {
    await tool('memory__add_observations', { observations: [{ entityName: name, contents: [note] }] });
    return note;
  },
  code: ({ name, note }) => `await mcp.memory.add_observations({ observations: [{ entityName: "${name}", contents: ["${note}"] }] });
return "${note}";`,
  check: (answer, { name, note }, place) => {
    deepEqual(answer, note);
    deepEqual(found(place, name).observations.slice(1), [note]);
  },
};

const EMPLOYERS = { Helix: ['Vera Holm', 'Luc Petit', 'Ana Prat'], Quanta: ['Ivo Marek', 'Zoe Lang'] };

const employees = {
  id: 'employees-in-graph',
  graph: Object.entries(EMPLOYERS).flatMap(([company, names]) => [
    entity(company, 'company', 'in the index'),
    ...names.flatMap((name) => [entity(name, 'employee'), relation(name, 'works_at', company)]),
  ]),
  first: { intent: 'who works at Helix according to the knowledge graph?', company: 'Helix' },
  second: { intent: 'who works at Quanta according to the knowledge graph?', company: 'Quanta' },
  plain: async (tool, { company }) => {
    const { relations } = await tool('memory__read_graph', {});
    return relations.filter(({ to, relationType }) => to === company && relationType === 'works_at').map(({ from }) => from);
  },
  code: ({ company }) => `const { relations } = await mcp.memory.read_graph({});
return relations.filter((r) => r.relationType === "works_at" && r.to === "${company}").map((r) => r.from);`,
  check: (answer, { company }) => deepEqual(answer, EMPLOYERS[company]),
};

const cities = {
  id: 'cities-into-graph',
  first: { intent: 'add the cities Lyon, Porto and Ghent to the knowledge graph', names: ['Lyon', 'Porto', 'Ghent'] },
  second: { intent: 'add the cities Oslo and Turin to the knowledge graph', names: ['Oslo', 'Turin'] },
  plain: async (tool, { names }) => {
    await tool('memory__create_entities', { entities: names.map((name) => ({ name, entityType: 'city', observations: [] })) });
    return names.length;
  },
  context: ({ names }) => ({ names }),
  code: () => `await mcp.memory.create_entities({
  entities: args.names.map((name) => ({ name, entityType: "city", observations: [] })),
});
return args.names.length;`,
  check: (answer, { names }, place) => {
    deepEqual(answer, names.length);
    for (const name of names) deepEqual(found(place, name).entityType, 'city');
  },
};

const TOPICS = { solar: ['roof-plan', 'farm-plan'], tidal: ['bay-plan'] };

const topics = {
  id: 'mentions-in-graph',
  graph: Object.entries(TOPICS).flatMap(([topic, names]) => names.map((name) => entity(name, 'plan', `about ${topic} power`))),
  first: { intent: 'which entries of the knowledge graph mention "solar"?', word: 'solar' },
  second: { intent: 'which entries of the knowledge graph mention "tidal"?', word: 'tidal' },
  plain: async (tool, { word }) => (await tool('memory__search_nodes', { query: word })).entities.map(({ name }) => name),
  code: ({ word }) => `const { entities } = await mcp.memory.search_nodes({ query: "${word}" });
return entities.map((entity) => entity.name);`,
  check: (answer, { word }) => deepEqual(answer, TOPICS[word]),
};

export const UPKEEP = [entry, port, sorted, excel, cleaning, heading, projects, employees, cities, topics];
