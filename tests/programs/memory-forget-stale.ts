// Remember these three projects, then forget those whose last change is before the given date, with their links.
await mcp.memory.create_entities({
  entities: [
    { name: "kite", entityType: "project", observations: ["changed 2026-02-10"] },
    { name: "anvil", entityType: "project", observations: ["changed 2024-11-02"] },
    { name: "moss", entityType: "project", observations: [] },
  ],
});
await mcp.memory.create_relations({ relations: [{ from: "kite", to: "anvil", relationType: "uses" }, { from: "kite", to: "moss", relationType: "uses" }] });

const { entities } = await mcp.memory.search_nodes({ query: "project" });
const stale: string[] = [];
for (const { name, observations } of entities) {
  const changed = observations.map((line: string) => /changed (\S+)/.exec(line)?.[1]).find(Boolean);
  if (changed && (await mcp.time.diff({ from: changed, to: args.before })).seconds > 0) stale.push(name);
}
if (stale.length) await mcp.memory.delete_entities({ entityNames: stale });
const left = await mcp.memory.read_graph({});
return { stale, left: left.entities.map((entity: any) => entity.name), relations: left.relations };
