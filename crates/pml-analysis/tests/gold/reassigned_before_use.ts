// edges: B->C
// The first value is overwritten before anybody reads it.
let text: string = (await mcp.fs.read({ path: args.path })).content; // @A
text = await mcp.web.fetch({ url: args.url }); // @B
await mcp.ai.summarize({ text }); // @C
