// edges: A->B
// A comparison of a result is a value computed from it.
const file = await mcp.fs.stat({ path: args.path }); // @A
await mcp.chat.post({ channel: "ops", text: "checked", silent: file.size > 1000 }); // @B
