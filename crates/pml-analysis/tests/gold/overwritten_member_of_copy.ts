// edges: A->C
// The overwritten member no longer holds the result.
const user = await mcp.db.get({ table: "users", id: args.user }); // @A
const anonymous = { ...user };
anonymous.name = "somebody";
await mcp.chat.post({ channel: "log", text: anonymous.name }); // @B
await mcp.mail.send({ to: anonymous.email, subject: "Hi", body: "Hello" }); // @C
