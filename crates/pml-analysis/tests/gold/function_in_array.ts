// edges: A->B, B->C
// Steps are kept in an array and run in turn, each on the result before.
const { content } = await mcp.fs.read({ path: args.path }); // @A
const digest = await mcp.ai.summarize({ text: content }); // @B
const clean: Array<(text: string) => string> = [
  (text) => text.trim(),
  (text) => text.replace(/\s+/g, " "),
];
const text = clean.reduce((value, step) => step(value), digest.summary);
await mcp.chat.post({ channel: "ops", text }); // @C
