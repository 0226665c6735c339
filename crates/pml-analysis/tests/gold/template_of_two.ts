// edges: A->C, B->C
// A text put together from two results.
const user = await mcp.db.get({ table: "users", id: args.user }); // @A
const motd = await mcp.fs.read({ path: "motd.txt" }); // @B
await mcp.chat.post({ channel: "general", text: `Hello ${user.name}!\n${motd.content}` }); // @C
