// edges: A->B
// A part found by a regular expression.
const { content } = await mcp.fs.read({ path: args.path }); // @A
const [, id] = /"id":"([^"]+)"/.exec(content) ?? [];
if (id !== undefined) {
  await mcp.db.get({ table: "users", id }); // @B
}
