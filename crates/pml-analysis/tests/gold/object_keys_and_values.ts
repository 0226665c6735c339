// edges: A->B, A->D, B->C
// A plain object as a table: its keys come from one call, its values from another.
const names: Record<string, string> = {};
const { rows } = await mcp.db.query({ sql: "select id from users" }); // @A
for (const row of rows) {
  names[row.id] = (await mcp.db.get({ table: "users", id: row.id })).name; // @B
}
await mcp.chat.post({ channel: "names", text: Object.values(names).join(", ") }); // @C
await mcp.chat.post({ channel: "ids", text: Object.keys(names).join(", ") }); // @D
