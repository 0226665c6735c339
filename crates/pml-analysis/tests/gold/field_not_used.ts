// edges: A->C
// Only one member of the object is read.
const report = {
  owner: await mcp.db.get({ table: "users", id: args.user }), // @A
  body: await mcp.fs.read({ path: args.path }), // @B
};
await mcp.chat.post({ channel: "ops", text: report.owner.name }); // @C
