// edges: A->B, B->C
// The callback is passed by its name.
type Entry = { path: string };
async function load(entry: Entry): Promise<string> {
  const file = await mcp.fs.read({ path: entry.path }); // @B
  return file.content;
}
const listing = await mcp.fs.list({ path: args.dir }); // @A
const texts = await Promise.all(listing.entries.map(load));
await mcp.ai.summarize({ text: texts.join("\n") }); // @C
