// edges: A->C
// A helper that does not use one of its arguments.
const pick = (first: { content: string }, _second: { content: string }) => first.content;
const a = await mcp.fs.read({ path: args.a }); // @A
const b = await mcp.fs.read({ path: args.b }); // @B
await mcp.ai.summarize({ text: pick(a, b) }); // @C
