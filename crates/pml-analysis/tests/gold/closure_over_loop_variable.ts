// edges: A->B
// Closures made in a loop keep the item of their turn.
const { rows } = await mcp.db.query({ sql: "select id from users" }); // @A
const jobs: Array<() => Promise<unknown>> = [];
for (const row of rows) {
  jobs.push(() => mcp.db.get({ table: "users", id: row.id })); // @B
}
for (const job of jobs) {
  await job();
}
