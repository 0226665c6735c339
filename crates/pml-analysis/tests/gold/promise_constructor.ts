// edges: A->B
// A value passes through a promise made by hand.
const file = await mcp.fs.read({ path: args.path }); // @A
const later = await new Promise<string>((resolve) => {
  setTimeout(() => resolve(file.content), 5);
});
await mcp.ai.summarize({ text: later }); // @B
