// edges: A->C, B->C
// When the call fails, the old value is still there.
let text = (await mcp.fs.read({ path: args.cache })).content; // @A
try {
  text = (await mcp.http.get({ url: args.url })).body; // @B
} catch (error) {
  console.warn("using the cache", error);
} finally {
  await mcp.chat.post({ channel: "news", text }); // @C
}
