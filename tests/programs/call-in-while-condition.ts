// Empty the work queue folder one file at a time, oldest name first, and keep a record of what was done.
const done: string[] = [];
let entries: { path: string }[];
while ((entries = (await mcp.fs.list({ path: args.queue })).entries).length > 0) {
  const [next] = entries;
  const { content } = await mcp.fs.read({ path: next.path });
  done.push(content.toUpperCase());
  await mcp.fs.write({ path: "done.log", content: `${next.path}: ${content}\n`, append: true });
  if (!(await mcp.fs.delete({ path: next.path })).deleted) break;
}
return done;
