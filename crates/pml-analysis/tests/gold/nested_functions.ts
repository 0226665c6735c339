// edges: A->B
// Functions inside functions share the variables around them.
const user = await mcp.db.get({ table: "users", id: args.user }); // @A
async function notify() {
  const line = greeting();
  await send(line);

  function greeting(): string {
    return `Hello ${user.name}`;
  }
  async function send(text: string) {
    await mcp.chat.post({ channel: "hello", text }); // @B
  }
}
await notify();
