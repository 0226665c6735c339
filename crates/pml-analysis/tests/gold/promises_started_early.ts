// edges: A->D, B->C
// Both calls are under way before either is waited for.
const reading = mcp.fs.read({ path: args.path }); // @A
const fetching = mcp.web.fetch({ url: args.url }); // @B
await mcp.ai.summarize({ text: await fetching }); // @C
const file = await reading;
await mcp.ai.summarize({ text: file.content }); // @D
