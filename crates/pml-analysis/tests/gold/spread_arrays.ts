// edges: A->C, B->C
// Two results in one array.
const open = await mcp.issues.list({ state: "open" }); // @A
const closed = await mcp.issues.list({ state: "closed" }); // @B
const all = [...open.issues, ...closed.issues];
await mcp.chat.post({ channel: "dev", text: all.map((issue) => issue.title).join("\n") }); // @C
