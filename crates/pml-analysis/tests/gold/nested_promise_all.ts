// edges: A->E, B->D, C->E
// Positions inside positions.
const [[first, second], third] = await Promise.all([
  Promise.all([
    mcp.fs.read({ path: args.first }), // @A
    mcp.fs.read({ path: args.second }), // @B
  ]),
  mcp.web.fetch({ url: args.url }), // @C
]);
await mcp.ai.summarize({ text: second.content }); // @D
await mcp.ai.summarize({ text: first.content + third }); // @E
