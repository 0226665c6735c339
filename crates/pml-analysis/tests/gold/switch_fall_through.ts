// edges: A->D, C->D
// A case that falls through is overwritten by the next.
let text = "";
switch (args.kind) {
  case "file":
    text = (await mcp.fs.read({ path: args.path })).content; // @A
    break;
  case "page":
    text = await mcp.web.fetch({ url: args.url }); // @B
  // falls through
  case "row":
    text = (await mcp.db.get({ table: "texts", id: args.id })).text; // @C
    break;
  default:
    text = "nothing";
}
await mcp.ai.summarize({ text }); // @D
