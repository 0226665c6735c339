// edges: A->C, B->C
// Either arm may have set the value.
let source: string;
if (args.remote) {
  source = (await mcp.http.get({ url: args.url })).body; // @A
} else {
  source = (await mcp.fs.read({ path: args.path })).content; // @B
}
await mcp.ai.summarize({ text: source }); // @C
