// edges: A->C, B->D
// An options object with defaults that refer to one another.
async function report({ title, body = "", footer = title }: { title: string; body?: string; footer?: string }) {
  await mcp.chat.post({ channel: "reports", text: `${title}\n${body}\n${footer}` });
}
const head = await mcp.db.get({ table: "reports", id: args.id }); // @A
const file = await mcp.fs.read({ path: args.path }); // @B
await report({ title: head.title }); // @C(report)
await report({ title: "Files", body: file.content }); // @D(report)
