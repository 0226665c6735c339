// edges: A->B
// One element is looked for.
const { rows } = await mcp.db.query({ sql: "select id, role from users" }); // @A
const admin = rows.find((row: any) => row.role === "admin") ?? rows.at(-1);
await mcp.db.get({ table: "users", id: admin.id }); // @B
