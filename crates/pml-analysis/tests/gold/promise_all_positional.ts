// edges: A->C, B->D
// Results of Promise.all taken apart by position stay apart.
const [user, page] = await Promise.all([
  mcp.db.get({ table: "users", id: args.user }), // @A
  mcp.web.fetch({ url: args.url, format: "markdown" }), // @B
]);
await mcp.mail.send({ to: user.email, subject: "Hello", body: "Welcome" }); // @C
await mcp.ai.summarize({ text: page }); // @D
