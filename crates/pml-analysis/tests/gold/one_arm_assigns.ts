// edges: A->C, B->C
// The old value survives when the branch is not taken.
let body = (await mcp.fs.read({ path: args.cache })).content; // @A
if (args.fresh) {
  body = (await mcp.http.get({ url: args.url })).body; // @B
}
await mcp.chat.post({ channel: "news", text: body }); // @C
