// edges: A->C, B->C
// A case that falls through into one that adds to the value.
let text = "";
switch (args.kind) {
  case "page":
    text = (await mcp.http.get({ url: args.url })).body; // @A
  // falls through
  case "row":
    text += (await mcp.db.get({ table: "texts", id: args.id })).text; // @B
}
await mcp.ai.summarize({ text }); // @C
