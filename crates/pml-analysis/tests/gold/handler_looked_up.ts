// edges: A->C, B->C
// A function is looked up by name, kept and called; what it gives is what is written.
const sources: Record<string, (query: string) => Promise<any>> = {
  web: (query) => mcp.web.search({ query }), // @A
  issues: (state) => mcp.issues.list({ state }), // @B
};
const source = sources[args.source];
if (!source) throw new Error("no such source");
const found = await source(args.query);
await mcp.fs.write({ path: args.out, content: JSON.stringify(found) }); // @C
