// edges: A->D, B->C
// Two variables change places.
let a = (await mcp.fs.read({ path: args.a })).content; // @A
let b = (await mcp.fs.read({ path: args.b })).content; // @B
[a, b] = [b, a];
await mcp.ai.summarize({ text: a }); // @C
await mcp.ai.summarize({ text: b }); // @D
