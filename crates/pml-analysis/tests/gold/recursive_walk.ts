// edges: A->A, A->B
// around: A->A
// A tree is walked; files are read on the way.
async function walk(dir: string): Promise<void> {
  const { entries } = await mcp.fs.list({ path: dir }); // @A
  for (const entry of entries) {
    if (entry.type === "directory") await walk(entry.path);
    else await mcp.fs.read({ path: entry.path }); // @B
  }
}
await walk(args.root);
