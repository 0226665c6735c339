// edges: A->C, B->C
// A pure helper with several returns.
type User = { email?: string; backup?: string };
function address(user: User, manager: User): string {
  if (user.email) return user.email;
  if (manager.email) return manager.email;
  return "nobody@example.com";
}
const user = await mcp.db.get({ table: "users", id: args.user }); // @A
const manager = await mcp.db.get({ table: "users", id: args.manager }); // @B
await mcp.mail.send({ to: address(user, manager), subject: "Hi", body: "Hello" }); // @C
