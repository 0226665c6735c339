// edges: A->B, B->C
// Results handed on by then.
await mcp.fs.read({ path: args.path }) // @A
  .then((file: { content: string }) => file.content.trim())
  .then((text: string) => mcp.ai.summarize({ text })) // @B
  .then(({ summary }: { summary: string }) => mcp.chat.post({ channel: "digest", text: summary })); // @C
