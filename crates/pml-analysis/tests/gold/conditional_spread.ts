// edges: A->C, B->C
// A member that is only sometimes there.
const thread = await mcp.db.get({ table: "threads", id: args.thread }); // @A
const digest = await mcp.ai.summarize({ text: args.text }); // @B
await mcp.chat.post({ // @C
  channel: "ops",
  text: digest.summary,
  ...(args.reply ? { thread: thread.id } : {}),
});
