// edges: A->B
// A part that may be missing.
const result = await mcp.db.query({ sql: "select name from users limit 1" }); // @A
const name = result?.rows?.[0]?.name;
await mcp.chat.post({ channel: "users", text: name ?? "nobody" }); // @B
