// edges: A->B
// An object is taken apart into entries and put together again.
const { settings } = await mcp.config.load({ name: args.name }); // @A
const upper = Object.fromEntries(
  Object.entries(settings).map(([key, value]) => [key.toUpperCase(), String(value)]),
);
await mcp.db.insert({ table: "settings", record: upper }); // @B
