// edges: A->C, B->C
// A helper changes the object it is given.
function sign(message: { text: string }, by: string) {
  message.text += `\n— ${by}`;
}
const message = { channel: "ops", text: (await mcp.ai.summarize({ text: args.text })).summary }; // @A
const author = await mcp.db.get({ table: "users", id: args.user }); // @B
sign(message, author.name);
await mcp.chat.post(message); // @C
