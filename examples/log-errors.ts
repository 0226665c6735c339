// Counts the errors in all log files of a directory, by message.
const { matches, truncated } = await mcp.fs.search({
  path: args.dir,
  pattern: "*.log",
  contains: "ERROR",
  limit: 5000,
});

const counts = new Map<string, number>();
for (const { text } of matches) {
  // Numbers and ids differ from line to line; the message is what stays.
  const message = (text ?? "").replace(/^.*ERROR\s+/, "").replace(/\b[0-9a-f]{8,}\b|\d+/g, "…");
  counts.set(message, (counts.get(message) ?? 0) + 1);
}

const rows = [...counts.entries()]
  .map(([message, count]) => ({ message, count }))
  .sort((a, b) => b.count - a.count)
  .slice(0, args.top ?? 20);

const { csv } = await mcp.csv.stringify({ rows, columns: ["count", "message"] });
const written = await mcp.fs.write({ path: args.report, content: csv });
return { lines: matches.length, messages: counts.size, truncated, report: written.path };
