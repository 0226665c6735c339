// edges: A->C, B->C
// Whoever is first.
const first = await Promise.race([
  mcp.web.fetch({ url: args.url }), // @A
  mcp.web.fetch({ url: args.mirror }), // @B
]);
await mcp.ai.summarize({ text: first }); // @C
