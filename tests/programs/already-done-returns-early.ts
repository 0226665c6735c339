// Run the monthly import unless it has been run already; say what the earlier run did.
const marker = `done/${args.batch}.marker`;
const before = await mcp.fs.stat({ path: marker });
if (before.exists) {
  const { content } = await mcp.fs.read({ path: marker });
  const { matches } = await mcp.text.match({ text: content, pattern: "\\d+" });
  return { ran: false, earlier: Number(matches[0].text) };
}
const { csv } = await mcp.csv.stringify({ rows: [{ id: 1 }] });
await mcp.fs.write({ path: `out/${args.batch}.csv`, content: csv });
await mcp.fs.write({ path: marker, content: "1 rows" });
return { ran: true };
