// edges: A->D, B->C
// The later member wins when objects are spread.
const summary = await mcp.ai.summarize({ text: args.text }); // @A
const translated: string = await mcp.ai.translate({ text: args.text, language: "fr" }); // @B
const base = { channel: "news", text: summary.summary };
await mcp.chat.post({ ...base, text: translated }); // @C
await mcp.chat.post({ text: translated, ...base }); // @D
