// edges: A->B, A->C, B->C
// A text result is parsed and taken apart.
type Config = { url: string; items: { id: string }[] };
const config = JSON.parse((await mcp.fs.read({ path: "config.json" })).content) as Config; // @A
const response = await mcp.http.get({ url: config.url }); // @B
await mcp.http.post({ url: args.target, body: { id: config.items[0].id, body: response.body } }); // @C
