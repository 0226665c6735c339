// edges: A->B, A->C, B->C
// Two arrays are read side by side.
const users = (await mcp.db.query({ sql: "select name, email from users" })).rows; // @A
const letters = await Promise.all(
  users.map((user: any) => mcp.ai.summarize({ text: user.name })), // @B
);
await Promise.all(
  users.map((user: any, i: number) =>
    mcp.mail.send({ to: user.email, subject: "Letter", body: letters[i].summary }), // @C
  ),
);
