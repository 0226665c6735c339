// edges: none
// The tested value only chooses between two literals.
const file = await mcp.fs.stat({ path: args.path }); // @A
const text = file.exists ? "there" : "missing";
await mcp.chat.post({ channel: "ops", text }); // @B
