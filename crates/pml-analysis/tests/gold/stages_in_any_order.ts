// edges: A->A, A->B, A->C, B->A, B->B, B->C
// around: A->A, A->B, B->A, B->B
// Stages of a table run in the order that is asked for, each on what the last one gave.
const stages: Record<string, (text: string) => Promise<string>> = {
  shorten: async (text) => (await mcp.ai.summarize({ text })).summary, // @A
  translate: async (text) => (await mcp.ai.translate({ text, language: "fr" })).text, // @B
};
let text = args.text;
for (const name of args.order) {
  text = await stages[name](text);
}
await mcp.fs.write({ path: args.out, content: text }); // @C
