// edges: A->A, A->B
// around: A->A
// Each turn works on what the turn before made.
let text: string = args.text;
for (const language of args.languages) {
  text = await mcp.ai.translate({ text, language }); // @A
}
await mcp.chat.post({ channel: "translations", text }); // @B
