// edges: A->C, B->C, A->D, B->D
// The first value, or the second when the first is missing.
const cached = await mcp.db.get({ table: "cache", id: args.key }); // @A
const fresh = await mcp.db.get({ table: "pages", id: args.key }); // @B
const page = cached ?? fresh;
await mcp.chat.post({ channel: "a", text: page.title }); // @C
await mcp.chat.post({ channel: "b", text: cached?.title || fresh.title }); // @D
