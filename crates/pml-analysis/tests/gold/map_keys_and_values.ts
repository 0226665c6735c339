// edges: A->B, A->D, B->C
// What goes in as a key and as a value comes out apart.
const { rows } = await mcp.db.query({ sql: "select id from users" }); // @A
const names = new Map<string, string>();
for (const { id } of rows) {
  const user = await mcp.db.get({ table: "users", id }); // @B
  names.set(id, user.name);
}
await mcp.chat.post({ channel: "names", text: [...names.values()].join(", ") }); // @C
await mcp.chat.post({ channel: "ids", text: [...names.keys()].join(", ") }); // @D
