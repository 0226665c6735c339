// edges: A->C
// The label decides; the text flows.
const mail = await mcp.db.get({ table: "mails", id: args.id }); // @A
const kind = await mcp.ai.classify({ text: args.text, labels: ["bug", "praise"] }); // @B
switch (kind.label) {
  case "bug":
    await mcp.issues.create({ title: mail.title, body: mail.body }); // @C
    break;
  case "praise":
    await mcp.chat.post({ channel: "praise", text: "thanks" }); // @D
    break;
}
