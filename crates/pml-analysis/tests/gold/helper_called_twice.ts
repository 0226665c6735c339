// edges: A->B, B->C
// One helper, two calls: the second is given what the first returned.
async function fetchUser(id: string) {
  return await mcp.db.get({ table: "users", id });
}
const employee = await fetchUser(args.user); // @A(fetchUser)
const manager = await fetchUser(employee.manager); // @B(fetchUser)
await mcp.mail.send({ to: manager.email, subject: "Leave", body: "Please approve" }); // @C
