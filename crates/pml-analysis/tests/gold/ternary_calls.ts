// edges: A->C, B->C
// The calls stand inside the conditional.
const text = args.remote
  ? (await mcp.http.get({ url: args.url })).body // @A
  : (await mcp.fs.read({ path: args.path })).content; // @B
await mcp.ai.summarize({ text }); // @C
