// edges: A->B, B->C, C->D
// A local function takes callbacks and is used twice.
async function each<T, R>(items: T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const out: R[] = [];
  for (const item of items) {
    out.push(await work(item));
  }
  return out;
}
const { rows } = await mcp.db.query({ sql: "select id from users" }); // @A
const users = await each(rows, (row: any) => mcp.db.get({ table: "users", id: row.id })); // @B
const sent = await each(users, (user: any) =>
  mcp.mail.send({ to: user.email, subject: "Hi", body: "Hello" }), // @C
);
await mcp.db.insert({ table: "log", record: { sent: sent.map((mail) => mail.id) } }); // @D
