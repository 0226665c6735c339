// edges: A->B
// The keys of a result are data of that result.
const { settings } = await mcp.config.load({ name: args.name }); // @A
for (const key in settings) {
  await mcp.db.insert({ table: "settings", record: { key } }); // @B
}
