// edges: A->B
// The callback takes its item apart.
const { rows } = await mcp.db.query({ sql: "select name, email from users" }); // @A
await Promise.all(
  rows.map(({ email, name: who = "you" }: { email: string; name?: string }) =>
    mcp.mail.send({ to: email, subject: "Hi", body: `Hello ${who}` }), // @B
  ),
);
