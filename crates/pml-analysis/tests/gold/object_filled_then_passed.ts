// edges: A->C, A->D, B->C
// Members set one by one, then the object is passed whole and in part.
const message: { channel: string; text?: string; thread?: string } = { channel: "ops" };
message.text = (await mcp.ai.summarize({ text: args.text })).summary; // @A
message.thread = (await mcp.db.get({ table: "threads", id: args.thread })).id; // @B
await mcp.chat.post(message); // @C
await mcp.fs.write({ path: args.out, content: message.text }); // @D
