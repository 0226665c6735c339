// Note these facts; make an entry where there is none yet, and never note a fact twice.
let created = 0;
let added = 0;
for (const [name, fact] of args.facts as [string, string][]) {
  try {
    const { results } = await mcp.memory.add_observations({ observations: [{ entityName: name, contents: [fact] }] });
    added += results[0].addedObservations.length;
  } catch (error) {
    if (!/not found/.test((error as Error).message)) throw error;
    await mcp.memory.create_entities({ entities: [{ name, entityType: "drink", observations: [fact] }] });
    created++;
  }
}
const { entities } = await mcp.memory.read_graph({});
return { created, added, entities };
