// Store the map and find the shortest way from home to the museum by asking for the neighbours of one place at a time.
const places = [...new Set<string>(args.links.flat())];
await mcp.memory.create_entities({ entities: places.map((name) => ({ name, entityType: "place", observations: [] })) });
await mcp.memory.create_relations({
  relations: args.links.map(([from, to]: [string, string]) => ({ from, to, relationType: "leads to" })),
});

const queue: string[][] = [[args.from]];
const visited = new Set<string>([args.from]);
let asked = 0;
while (queue.length) {
  const way = queue.shift()!;
  const here = way[way.length - 1];
  if (here === args.to) return { way, asked };
  asked++;
  const { relations } = await mcp.memory.open_nodes({ names: [here] });
  for (const { from, to } of relations) {
    if (from !== here || visited.has(to)) continue;
    visited.add(to);
    queue.push([...way, to]);
  }
}
return { way: null, asked };
