// Move the report into the archive; never overwrite what is there.
const { content } = await mcp.fs.read({ path: args.source });
const { lines } = await mcp.text.count({ text: content });
if (lines > 0) {
  await mcp.fs.create({
    path: args.target,
    content,
  });
}
await mcp.fs.delete({ path: args.source });
return lines;
