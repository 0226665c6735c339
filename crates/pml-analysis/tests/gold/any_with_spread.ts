// edges: A->C, B->C
// The first that works, from a list and one more.
const page = await Promise.any([
  ...args.urls.map((url: string) => mcp.web.fetch({ url })), // @A
  mcp.web.fetch({ url: args.mirror }), // @B
]);
await mcp.ai.summarize({ text: page }); // @C
