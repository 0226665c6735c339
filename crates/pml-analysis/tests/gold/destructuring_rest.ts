// edges: A->D, B->F, C->E
// Rest elements keep their positions, rest members leave out what was taken.
const [head, ...tail] = [
  await mcp.fs.read({ path: args.first }), // @A
  await mcp.fs.read({ path: args.second }), // @B
  await mcp.fs.read({ path: args.third }), // @C
];
const { id, ...others } = { id: head.path, name: tail[0].content };
await mcp.ai.summarize({ text: id }); // @D
await mcp.ai.summarize({ text: tail[1].content }); // @E
await mcp.db.insert({ table: "files", record: others }); // @F
