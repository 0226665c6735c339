// edges: none
// Three calls that share only the program's arguments.
const path: string = args.path;
await mcp.fs.create({ path }); // @A
await mcp.fs.write({ path, content: args.text }); // @B
await mcp.chat.post({ channel: "ops", text: `wrote ${path}` }); // @C
