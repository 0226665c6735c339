// edges: A->B, B->C
// Each result feeds the next call and no other.
const orders = await mcp.db.query({ sql: "select * from orders where open" }); // @A
const digest = await mcp.ai.summarize({ text: JSON.stringify(orders.rows) }); // @B
await mcp.mail.send({ to: args.to, subject: "Open orders", body: digest.summary }); // @C
