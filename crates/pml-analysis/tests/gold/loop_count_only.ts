// edges: none
// How often a loop runs is not data.
const queue = await mcp.db.query({ sql: "select id from jobs" }); // @A
const n = queue.rows.length;
for (let i = 0; i < n; i++) {
  await mcp.everything.echo({ message: `tick ${i}` }); // @B
}
