// edges: A->D, B->C
// Elements picked by a constant index are separate.
const pair = [
  await mcp.fs.read({ path: args.left }), // @A
  await mcp.fs.read({ path: args.right }), // @B
];
await mcp.ai.summarize({ text: pair[1].content }); // @C
await mcp.ai.summarize({ text: pair[0].content }); // @D
