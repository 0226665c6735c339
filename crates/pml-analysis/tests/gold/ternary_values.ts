// edges: A->C, B->C
// Either side of the conditional may be the argument.
const file = await mcp.fs.read({ path: args.path }); // @A
const digest = await mcp.ai.summarize({ text: args.text }); // @B
await mcp.chat.post({ channel: "ops", text: args.long ? file.content : digest.summary }); // @C
