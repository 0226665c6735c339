// edges: A->C, B->D
// The default is used only where nothing is given.
const fallback = await mcp.fs.read({ path: "default.txt" }); // @A
const digest = await mcp.ai.summarize({ text: args.text }); // @B
function line(text: string = fallback.content): string {
  return text.trim();
}
await mcp.chat.post({ channel: "a", text: line() }); // @C
await mcp.chat.post({ channel: "b", text: line(`Digest: ${digest.summary}`) }); // @D
