// edges: A->C, B->C
// The value is set where it works, or in the handler.
let text: string;
try {
  const response = await mcp.http.get({ url: args.url }); // @A
  text = response.body;
} catch {
  const copy = await mcp.fs.read({ path: args.cache }); // @B
  text = copy.content;
}
await mcp.ai.summarize({ text }); // @C
