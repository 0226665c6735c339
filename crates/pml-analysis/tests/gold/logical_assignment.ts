// edges: A->C, B->C
// An assignment that happens only when nothing is there.
let token: string | undefined = (await mcp.db.get({ table: "tokens", id: args.user }))?.token; // @A
token ??= (await mcp.config.load({ name: "default" })).settings.token as string; // @B
await mcp.http.get({ url: args.url, headers: { authorization: `Bearer ${token}` } }); // @C
