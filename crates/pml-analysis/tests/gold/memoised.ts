// edges: A->B, B->C
// A cache of promises behind a helper.
const cache = new Map<string, Promise<any>>();
function user(id: string): Promise<any> {
  if (!cache.has(id)) {
    cache.set(id, mcp.db.get({ table: "users", id })); // @B
  }
  return cache.get(id)!;
}
const { rows } = await mcp.db.query({ sql: "select owner from files" }); // @A
for (const row of rows) {
  const owner = await user(row.owner);
  await mcp.chat.post({ channel: "files", text: owner.name }); // @C
}
