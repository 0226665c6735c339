// edges: A->B, C->D
// The program may end before the second half.
const hit = await mcp.db.query({ sql: "select name from cache" }); // @A
if (hit.rows.length > 0) {
  await mcp.chat.post({ channel: "cache", text: hit.rows[0].name }); // @B
  return;
}
const page: string = await mcp.web.fetch({ url: args.url }); // @C
await mcp.chat.post({ channel: "fresh", text: page }); // @D
