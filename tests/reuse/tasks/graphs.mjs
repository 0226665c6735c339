// The knowledge graph of `server-memory`.

export const GRAPHS = [
  {
    id: 'docked-at',
    first: ['which ships are docked at Gdansk', { port: 'Gdansk' }],
    code: ({ port }) => `const { relations } = await mcp.memory.read_graph({});
return relations.filter((r) => r.relationType === "docked_at" && r.to === "${port}").map((r) => r.from);`,
    seconds: [
      ['close', 'which ships are docked at Brest', { port: 'Brest' }],
      ['medium', 'list the ships docked at Brest', { port: 'Brest' }],
      ['medium fr', 'quels navires sont à quai à Brest', { port: 'Brest' }],
    ],
    distractors: [
      ['contradiction', 'which ships are not docked at Brest'],
      ['operation', 'how many ships were docked at Brest last year'],
    ],
  },
  {
    id: 'commander',
    first: ['who commands the ship Orion', { ship: 'Orion' }],
    code: ({ ship }) => `const graph = await mcp.memory.open_nodes({ names: ["${ship}"] });
const relation = graph.relations.find((r) => r.relationType === "commands" && r.to === "${ship}");
return relation ? relation.from : null;`,
    seconds: [
      ['close', 'who commands the ship Lyra', { ship: 'Lyra' }],
      ['medium', 'who is in command of the ship Lyra', { ship: 'Lyra' }],
      ['medium fr', 'qui commande le navire Vega', { ship: 'Vega' }],
    ],
    distractors: [
      ['operation', 'who built the ship Lyra'],
      ['contradiction', 'which ship does Captain Lind command'],
    ],
  },
  {
    id: 'facts-about',
    first: ['what is noted about "Captain Lind" in the knowledge graph', { name: 'Captain Lind' }],
    code: ({ name }) => `const { entities } = await mcp.memory.open_nodes({ names: ["${name}"] });
return entities.flatMap((e) => e.observations);`,
    seconds: [
      ['close', 'what is noted about "Baltic Line" in the knowledge graph', { name: 'Baltic Line' }],
      ['medium', 'show the notes on "Gdansk" in the knowledge graph', { name: 'Gdansk' }],
      ['medium fr', 'que note le graphe de connaissances sur "Captain Moreau"', { name: 'Captain Moreau' }],
    ],
    distractors: [
      ['operation', 'who noted something about "Baltic Line" in the knowledge graph'],
      ['operation', 'forget what is noted about "Baltic Line" in the knowledge graph'],
    ],
  },
  {
    id: 'entities-of-type',
    first: ['names of the entities of type ship in the knowledge graph', { type: 'ship' }],
    code: ({ type }) => `const graph = await mcp.memory.read_graph({});
return graph.entities.filter((e) => e.entityType === "${type}").map((e) => e.name).sort();`,
    seconds: [
      ['close', 'names of the entities of type port in the knowledge graph', { type: 'port' }],
      ['medium', 'which entities of type captain does the knowledge graph have', { type: 'captain' }],
      ['medium fr', 'noms des entités de type carrier dans le graphe de connaissances', { type: 'carrier' }],
    ],
    distractors: [
      ['operation', 'number of entities of type port in the knowledge graph'],
      ['operation', 'change the entities of type port in the knowledge graph to type harbour'],
    ],
  },
  {
    id: 'owns',
    first: ['does "Baltic Line" own "Vega"', { owner: 'Baltic Line', thing: 'Vega' }],
    code: ({ owner, thing }) => `const { relations } = await mcp.memory.read_graph({});
return relations.some((r) => r.from === "${owner}" && r.to === "${thing}" && r.relationType === "owns");`,
    seconds: [
      ['close', 'does "Baltic Line" own "Orion"', { thing: 'Orion' }],
      ['medium', 'is "Lyra" owned by "Baltic Line"', { thing: 'Lyra' }, { note: 'order of values changed' }],
    ],
    distractors: [
      ['operation', 'does "Captain Lind" command "Lyra"'],
      ['missing', 'what does "Baltic Line" own'],
    ],
  },
  {
    id: 'relations-of-type',
    first: ['how many relations of type owns has the knowledge graph', { type: 'owns' }],
    args: { type: 'relationType' },
    code: () => `const { relations } = await mcp.memory.read_graph({});
return relations.filter((r) => r.relationType === args.relationType).length;`,
    seconds: [
      ['close', 'how many relations of type docked_at has the knowledge graph', { type: 'docked_at' }],
      ['close', 'how many relations of type commands has the knowledge graph', { type: 'commands' }, { context: { relationType: 'commands' } }],
      ['medium', 'number of relations of type commands in the knowledge graph', { type: 'commands' }],
    ],
    distractors: [
      ['operation', 'how many entities of type port has the knowledge graph'],
      ['operation', 'delete the relations of type commands in the knowledge graph'],
    ],
  },
  {
    id: 'note-about',
    first: ['note about Orion: "needs paint"', { name: 'Orion', note: 'needs paint' }],
    code: ({ name, note }) => `await mcp.memory.add_observations({ observations: [{ entityName: "${name}", contents: ["${note}"] }] });
return "noted";`,
    seconds: [
      ['close', 'note about Vega: "engine replaced"', { name: 'Vega', note: 'engine replaced' }],
      ['medium', 'write down "visited twice" about Gdansk', { name: 'Gdansk', note: 'visited twice' }, { note: 'order of values changed' }],
      ['medium fr', 'note à propos de Brest : "grève en mai"', { name: 'Brest', note: 'grève en mai' }],
    ],
    distractors: [
      ['contradiction', 'forget about Orion: "built 1998"'],
      ['missing', 'note something about Vega'],
    ],
    again: [['note about Lyra: "new crew"', { name: 'Lyra', note: 'new crew' }]],
  },
  {
    id: 'new-ship',
    first: ['add the ship Altair, built 2021, to the knowledge graph', { ship: 'Altair', year: 2021 }],
    code: ({ ship, year }) => `const created = await mcp.memory.create_entities({
  entities: [{ name: "${ship}", entityType: "ship", observations: ["built ${year}"] }],
});
return created.entities.length;`,
    seconds: [
      ['close', 'add the ship Deneb, built 2019, to the knowledge graph', { ship: 'Deneb', year: 2019 }],
      ['medium', 'put the ship Rigel into the knowledge graph, built 2003', { ship: 'Rigel', year: 2003 }],
      ['medium fr', 'ajoute le navire Antares, construit en 2012, au graphe de connaissances', { ship: 'Antares', year: 2012 }],
    ],
    distractors: [
      ['contradiction', 'remove the ship Deneb, built 2019, from the knowledge graph'],
      ['operation', 'is the ship Deneb, built 2019, in the knowledge graph'],
    ],
  },
  {
    id: 'dock',
    first: ['dock Lyra at Brest', { ship: 'Lyra', port: 'Brest' }],
    code: ({ ship, port }) => `await mcp.memory.create_relations({ relations: [{ from: "${ship}", to: "${port}", relationType: "docked_at" }] });
return "docked";`,
    seconds: [
      ['close', 'dock Orion at Gdansk', { ship: 'Orion', port: 'Gdansk' }],
      ['medium', 'let Vega dock at Brest', { ship: 'Vega', port: 'Brest' }],
    ],
    distractors: [
      ['missing', 'dock Vega'],
      ['contradiction', 'never dock Vega at Brest'],
    ],
  },
  {
    id: 'undock',
    first: ['undock Orion from Brest', { ship: 'Orion', port: 'Brest' }],
    code: ({ ship, port }) => `await mcp.memory.delete_relations({ relations: [{ from: "${ship}", to: "${port}", relationType: "docked_at" }] });
return "at sea";`,
    seconds: [
      ['close', 'undock Vega from Gdansk', { ship: 'Vega', port: 'Gdansk' }],
      ['medium', 'undock the ship Lyra from Gdansk', { ship: 'Lyra', port: 'Gdansk' }],
    ],
    distractors: [
      ['operation', 'is Vega undocked from Gdansk'],
      ['missing', 'undock all ships from Gdansk'],
    ],
  },
  {
    id: 'forget-entity',
    first: ['remove "Captain Lind" from the knowledge graph', { name: 'Captain Lind' }],
    code: ({ name }) => `const done = await mcp.memory.delete_entities({ entityNames: ["${name}"] });
return done.success;`,
    seconds: [
      ['close', 'remove "Baltic Line" from the knowledge graph', { name: 'Baltic Line' }],
      ['medium', 'delete "Captain Moreau" from the knowledge graph', { name: 'Captain Moreau' }],
      ['medium fr', 'retire "Brest" du graphe de connaissances', { name: 'Brest' }],
    ],
    distractors: [
      ['contradiction', 'restore "Baltic Line" in the knowledge graph'],
      ['constraint', 'remove "Baltic Line" from the knowledge graph but keep its ships'],
    ],
  },
];
