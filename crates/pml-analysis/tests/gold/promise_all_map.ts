// edges: A->B, B->C
// The callback's item comes from the array; the collected results come from the callback.
const { rows } = await mcp.db.query({ sql: "select id from users" }); // @A
const users = await Promise.all(
  rows.map((row: { id: string }) => mcp.db.get({ table: "users", id: row.id })), // @B
);
await mcp.mail.send({ // @C
  to: users.map((user) => user.email),
  subject: "Notice",
  body: "Maintenance tonight",
});
