// edges: A->A, A->B
// around: A->A
// Directories found are put into the queue that the loop empties.
const queue: string[] = [args.root];
const files: string[] = [];
while (queue.length > 0) {
  const dir = queue.shift()!;
  const { entries } = await mcp.fs.list({ path: dir }); // @A
  for (const entry of entries) {
    if (entry.type === "directory") queue.push(entry.path);
    else files.push(entry.path);
  }
}
await mcp.db.insert({ table: "scans", record: { files } }); // @B
