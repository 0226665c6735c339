// edges: A->C, B->C, B->D
// A default flows when the member may be missing.
const fallback = await mcp.db.get({ table: "users", id: "admin" }); // @A
const { rows: [first, { email = fallback.email } = fallback] } = await mcp.db.query({ sql: "select name, email from users" }); // @B
await mcp.mail.send({ to: email, subject: "Hi", body: "Hello" }); // @C
await mcp.chat.post({ channel: "users", text: first.name }); // @D
