// edges: A->C, B->C, B->D
// Each partial application keeps its own first argument.
const prefix = (start: string) => (end: string) => `${start}: ${end}`;
const user = await mcp.db.get({ table: "users", id: args.user }); // @A
const digest = await mcp.ai.summarize({ text: args.text }); // @B
const byUser = prefix(user.name);
const bySystem = prefix("system");
await mcp.chat.post({ channel: "a", text: byUser(digest.summary) }); // @C
await mcp.chat.post({ channel: "b", text: bySystem(digest.summary) }); // @D
