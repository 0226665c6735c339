// Remember all people of the list, who they are and whom they report to; then tell me Bob's team.
type Row = { name: string; role: string; boss: string };
const { rows } = await mcp.csv.parse({ csv: (await mcp.fs.read({ path: "people.csv" })).content });
await mcp.memory.create_entities({
  entities: (rows as Row[]).map(({ name, role }) => ({ name, entityType: "person", observations: [`role: ${role}`] })),
});
const relations = (rows as Row[]).filter((row) => row.boss).map(({ name, boss }) => ({ from: name, to: boss, relationType: "reports to" }));
if (relations.length > 0) await mcp.memory.create_relations({ relations });

const graph = await mcp.memory.read_graph({});
const team = graph.relations.filter((relation: any) => relation.to === "Bob").map((relation: any) => relation.from);
const { entities } = await mcp.memory.open_nodes({ names: team });
return { people: graph.entities.length, team, roles: entities.flatMap((entity: any) => entity.observations) };
