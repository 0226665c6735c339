// A report from three sources that are read at the same time.
const [sales, tickets, clock] = await Promise.all([
  mcp.fs.read({ path: "data/sales.csv" }).then((file) => mcp.csv.parse({ csv: file.content })),
  mcp.fs.read({ path: "data/tickets.json" }).then((file) => mcp.json.parse({ json: file.content })),
  mcp.time.now({ timezone: args.timezone }),
]);

const week = await mcp.time.convert({ time: clock.time, timezone: args.timezone, pattern: "%G-W%V" });
const amounts = (sales.rows as Record<string, string>[]).map((row) => Number(row.amount));
const [stats, open] = await Promise.all([
  mcp.math.statistics({ values: amounts }),
  mcp.json.query({ data: tickets.data, path: "$[?@.state == 'open'].title" }),
]);
const total = await mcp.math.round({ value: stats.sum, digits: 2 });

const report = `# Week ${week.text}

Sales: ${total.text} in ${stats.count} orders, ${stats.median} in the middle.

## Open tickets

${open.matches.map((title: string) => `- ${title}`).join("\n")}
`;
await mcp.fs.write({ path: `reports/${week.text}.md`, content: report });
return report;
