// edges: A->B, A->C
// An assignment is an expression with a value.
let file;
const text = (file = await mcp.fs.read({ path: args.path })).content; // @A
await mcp.ai.summarize({ text }); // @B
await mcp.fs.stat({ path: file.path }); // @C
