// edges: A->B, B->C
// What a loop collects is used after it.
const listing = await mcp.fs.list({ path: args.dir }); // @A
const texts: string[] = [];
for (const entry of listing.entries) {
  if (entry.type !== "file") continue;
  const file = await mcp.fs.read({ path: entry.path }); // @B
  texts.push(file.content);
}
await mcp.ai.summarize({ text: texts.join("\n\n"), style: "bullets" }); // @C
