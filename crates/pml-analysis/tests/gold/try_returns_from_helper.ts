// edges: A->C, B->C
// A helper returns from the try block or after it.
async function load(): Promise<string> {
  try {
    return (await mcp.http.get({ url: args.url })).body; // @A
  } catch {
    // The copy below is good enough.
  }
  return (await mcp.fs.read({ path: args.cache })).content; // @B
}
await mcp.ai.summarize({ text: await load() }); // @C
