// edges: A->B, B->C
// A learned capability is a call like any other.
const file = await mcp.fs.read({ path: args.path }); // @A
const digest = await capabilities.summarize({ text: file.content }); // @B
await mcp.chat.post({ channel: "ops", text: `Digest: ${digest}` }); // @C
