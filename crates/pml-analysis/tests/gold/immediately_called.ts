// edges: A->B, B->C
// Functions called where they are written.
const text = await (async () => {
  const file = await mcp.fs.read({ path: args.path }); // @A
  return file.content;
})();
const digest = await (async (input: string) => mcp.ai.summarize({ text: input }))(text); // @B
await mcp.chat.post({ channel: "ops", text: digest.summary }); // @C
