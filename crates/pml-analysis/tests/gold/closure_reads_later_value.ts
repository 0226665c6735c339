// edges: B->C
// A closure reads the variable when it is called, not when it is written.
let token = (await mcp.config.load({ name: "old" })).settings.token; // @A
const call = (url: string) =>
  mcp.http.get({ url, headers: { authorization: token } }); // @C
token = (await mcp.config.load({ name: "new" })).settings.token; // @B
await call(args.url);
