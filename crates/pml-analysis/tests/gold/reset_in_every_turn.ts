// edges: A->D, B->C, B->D
// The value is reset at the start of each turn, so nothing goes around; without turns the first value survives.
let text = (await mcp.fs.read({ path: args.path })).content; // @A
for (const item of args.items) {
  text = "";
  text += (await mcp.ai.summarize({ text: item })).summary; // @B
  await mcp.chat.post({ channel: "log", text }); // @C
}
await mcp.fs.write({ path: args.out, content: text }); // @D
