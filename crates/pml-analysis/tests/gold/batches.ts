// edges: A->B, B->C
// A list is worked off in batches.
const ids = (await mcp.db.query({ sql: "select id from users" })).rows.map((row: any) => row.id); // @A
const users: any[] = [];
for (let start = 0; start < ids.length; start += 10) {
  const batch = ids.slice(start, start + 10);
  const loaded = await Promise.all(
    batch.map((id: string) => mcp.db.get({ table: "users", id })), // @B
  );
  users.push(...loaded);
}
await mcp.db.insert({ table: "snapshots", record: { names: users.map((user) => user.name) } }); // @C
