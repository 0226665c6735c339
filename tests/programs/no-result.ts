// Clean up the temporary folders; no answer needed.
for (const path of args.folders) {
  await mcp.fs.delete({ path, recursive: true });
}
const left = await mcp.fs.list({ path: "tmp" });
if (left.entries.length === 0) await mcp.fs.delete({ path: "tmp" });
