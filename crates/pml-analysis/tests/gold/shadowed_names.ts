// edges: A->D, B->C
// The same name means two things.
const text = (await mcp.fs.read({ path: args.path })).content; // @A
{
  const text = (await mcp.ai.summarize({ text: args.text })).summary; // @B
  await mcp.chat.post({ channel: "inner", text }); // @C
}
await mcp.chat.post({ channel: "outer", text }); // @D
