// edges: A->B, A->C, B->C
// Elements reached by a running index.
const { entries } = await mcp.fs.list({ path: args.dir }); // @A
for (let i = 0; i < entries.length; i++) {
  const original = await mcp.fs.read({ path: entries[i].path }); // @B
  await mcp.fs.write({ path: entries[i].path + ".bak", content: original.content }); // @C
}
