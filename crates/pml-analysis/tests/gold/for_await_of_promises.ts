// edges: A->B
// Promises are waited for one after the other.
const pending: Promise<string>[] = args.urls.map((url: string) => mcp.web.fetch({ url })); // @A
for await (const page of pending) {
  await mcp.ai.summarize({ text: page }); // @B
}
