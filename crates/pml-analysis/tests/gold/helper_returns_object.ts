// edges: A->B, A->C, A->D, B->C
// An asynchronous helper returns several results in an object.
async function load(id: string) {
  const user = await mcp.db.get({ table: "users", id }); // @A
  const orders = await mcp.db.query({ sql: "select * from orders where user = ?", params: [user.id] }); // @B
  return { user, orders: orders.rows };
}
const { user, orders } = await load(args.user);
await mcp.mail.send({ to: user.email, subject: "Orders", body: JSON.stringify(orders) }); // @C
await mcp.chat.post({ channel: "sales", text: user.name }); // @D
