// edges: A->A, A->B
// around: A->A
// Two functions call each other down a tree.
async function folder(path: string): Promise<void> {
  const { entries } = await mcp.fs.list({ path }); // @A
  for (const entry of entries) await visit(entry);
}
async function visit(entry: { type: string; path: string }): Promise<void> {
  if (entry.type === "directory") return folder(entry.path);
  await mcp.fs.read({ path: entry.path }); // @B
}
await folder(args.root);
