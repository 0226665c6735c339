// The knowledge graph of `server-memory`, alone and with other servers.

import { deepEqual } from 'node:assert/strict';
import { csv, each, rows } from '../data.mjs';

const team = (name, people) =>
  csv(
    people.map((person, i) => ({
      name: person,
      role: ['lead', 'engineer', 'designer'][Math.min(i, 1 + (i % 2))],
      lead: people[0],
      team: name,
    })),
  );
const teams = {
  'team/platform.csv': team('platform', [
    'Maria Lopez',
    'Jonas Weber',
    'Aiko Mori',
    'Sam Reed',
    'Lena Fischer',
    'Omar Haddad',
  ]),
  'team/mobile.csv': team('mobile', ['Ines Duarte', 'Karl Nilsson', 'Priya Nair', 'Tom Baker', 'Yara Costa']),
};
const entitiesOf = (table) =>
  table.map(({ name, role, team: group }) => ({
    name,
    entityType: 'person',
    observations: [`role: ${role}`, `team: ${group}`],
  }));
const relationsOf = (table) =>
  table
    .filter(({ name, lead }) => name !== lead)
    .map(({ name, lead }) => ({ from: name, to: lead, relationType: 'reports_to' }));

const people = {
  id: 'people-into-graph',
  files: teams,
  first: {
    intent: 'add the people of team/platform.csv to the knowledge graph with their roles and who they report to',
    path: 'team/platform.csv',
  },
  second: {
    intent: 'add the people of team/mobile.csv to the knowledge graph with their roles and who they report to',
    path: 'team/mobile.csv',
  },
  plain: async (tool, { path }) => {
    const table = rows((await tool('fs__read', { path })).content);
    await tool('memory__create_entities', { entities: entitiesOf(table) });
    await tool('memory__create_relations', { relations: relationsOf(table) });
    return table.length;
  },
  code: ({ path }) => `const { rows } = await mcp.csv.parse({ csv: (await mcp.fs.read({ path: "${path}" })).content });
await mcp.memory.create_entities({
  entities: rows.map((row) => ({ name: row.name, entityType: "person", observations: ["role: " + row.role, "team: " + row.team] })),
});
await mcp.memory.create_relations({
  relations: rows
    .filter((row) => row.lead !== row.name)
    .map((row) => ({ from: row.name, to: row.lead, relationType: "reports_to" })),
});
return rows.length;`,
  check: (answer, { path }, place) => {
    const table = rows(place.read(path));
    deepEqual(answer, table.length);
    const kept = (type, wanted) =>
      place.items().filter((item) => item.type === type && table.some(({ name }) => name === wanted(item)));
    const bare = (items) => items.map(({ type, ...item }) => item);
    deepEqual(bare(kept('entity', (item) => item.name)), entitiesOf(table));
    deepEqual(bare(kept('relation', (item) => item.from)), relationsOf(table));
  },
};

const SERVICES = {
  'billing-service': ['ledger-service', 'mail-service'],
  'search-service': ['index-service', 'cache-service', 'auth-service'],
};
const services = Object.entries(SERVICES).flatMap(([name, needs]) => [
  ...[name, ...needs].map((service) => ({
    type: 'entity',
    name: service,
    entityType: 'service',
    observations: [`owner of ${service}: ${service.length % 2 ? 'core' : 'data'} team`],
  })),
  ...needs.map((to) => ({ type: 'relation', from: name, to, relationType: 'depends_on' })),
]);

const dependencies = {
  id: 'dependencies-in-graph',
  graph: services,
  first: {
    intent: 'which services does billing-service depend on in the knowledge graph, and who owns them?',
    service: 'billing-service',
  },
  second: {
    intent: 'which services does search-service depend on in the knowledge graph, and who owns them?',
    service: 'search-service',
  },
  plain: async (tool, { service }) => {
    const { relations } = await tool('memory__open_nodes', { names: [service] });
    const names = relations.filter(({ from }) => from === service).map(({ to }) => to);
    const { entities } = await tool('memory__open_nodes', { names });
    return entities.map(({ name, observations }) => ({ name, owner: observations[0].split(': ')[1] }));
  },
  code: ({ service }) => `const service = "${service}";
const { relations } = await mcp.memory.read_graph({});
const names = relations.filter((r) => r.from === service && r.relationType === "depends_on").map((r) => r.to);
const { entities } = await mcp.memory.open_nodes({ names });
return entities.map((e) => ({ name: e.name, owner: e.observations[0].split(": ")[1] }));`,
  check: (answer, { service }) =>
    deepEqual(
      answer,
      SERVICES[service].map((name) => ({ name, owner: `${name.length % 2 ? 'core' : 'data'} team` })),
    ),
};

const sources = each(
  [
    'src/server/main.txt',
    'src/server/routes.txt',
    'src/server/auth.txt',
    'src/client/view.txt',
    'src/client/store.txt',
    'src/client/style.txt',
  ],
  (i) => '// line of code\n'.repeat(20 + i * 13),
);

/** The second time the user does not say how large is large. */
const large = {
  id: 'note-large-files',
  files: sources,
  first: {
    intent: 'note the files of src/server with more than 500 bytes in the knowledge graph as "large"',
    folder: 'src/server',
    bytes: 500,
    label: 'large',
  },
  second: {
    intent: 'note the big files of src/client in the knowledge graph as "heavy"',
    folder: 'src/client',
    bytes: 1100,
    label: 'heavy',
  },
  plain: async (tool, { folder, bytes, label }) => {
    const { entries } = await tool('fs__list', { path: folder });
    const found = entries.filter(({ size }) => size > bytes);
    const entities = found.map(({ path, size }) => ({
      name: path,
      entityType: 'file',
      observations: [label, `${size} bytes`],
    }));
    await tool('memory__create_entities', { entities });
    return found.map(({ path }) => path);
  },
  context: ({ folder, bytes, label }) => ({ folder, bytes, label }),
  code: () => `const { entries } = await mcp.fs.list({ path: args.folder });
const large = entries.filter((entry) => entry.size > args.bytes);
await mcp.memory.create_entities({
  entities: large.map((entry) => ({ name: entry.path, entityType: "file", observations: [args.label, entry.size + " bytes"] })),
});
return large.map((entry) => entry.path);`,
  check: (answer, { folder, bytes, label }, place) => {
    const paths = Object.keys(sources)
      .filter((path) => path.startsWith(folder) && sources[path].length > bytes)
      .sort();
    deepEqual(answer, paths);
    for (const path of paths) {
      const noted = place.items().find((item) => item.name === path);
      deepEqual(noted.observations, [label, `${sources[path].length} bytes`]);
    }
  },
};

export const GRAPHS = [people, dependencies, large];
