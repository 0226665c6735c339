// edges: A->B, B->C
// A method of a class makes the call; it is called from two places.
class Users {
  private table = "users";
  async load(id: string) {
    return mcp.db.get({ table: this.table, id });
  }
}
const users = new Users();
const employee = await users.load(args.user); // @A(load)
const manager = await users.load(employee.manager); // @B(load)
await mcp.mail.send({ to: manager.email, subject: "Leave", body: args.text }); // @C
