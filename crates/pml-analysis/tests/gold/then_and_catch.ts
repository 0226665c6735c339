// edges: A->C, B->C
// The rejection handler supplies another value.
const body = await mcp.http.get({ url: args.url }) // @A
  .then((response: { body: string }) => response.body)
  .catch(() => mcp.web.fetch({ url: args.mirror })); // @B
await mcp.ai.summarize({ text: body }); // @C
