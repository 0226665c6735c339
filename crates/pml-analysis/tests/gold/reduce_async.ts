// edges: A->A, A->B
// around: A->A
// An asynchronous accumulator hands each result to the next step.
const final = await args.languages.reduce(async (before: Promise<string>, language: string) => {
  const text = await before;
  return mcp.ai.translate({ text, language }); // @A
}, Promise.resolve(args.text));
await mcp.chat.post({ channel: "chain", text: final }); // @B
