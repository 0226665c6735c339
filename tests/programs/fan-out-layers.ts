// Compare two quarters: read both at the same time, compute both at the same time, then write one comparison.
const files = await Promise.all([mcp.fs.read({ path: "q1.csv" }), mcp.fs.read({ path: "q2.csv" })]);
const tables = await Promise.all(files.map((file) => mcp.csv.parse({ csv: file.content })));
const [first, second] = await Promise.all(
  tables.map((table) => mcp.math.statistics({ values: table.rows.map((row: any) => Number(row.v)) })),
);
const growth = await mcp.math.evaluate({
  expression: "(b - a) / a * 100",
  variables: { a: first.sum, b: second.sum },
});
const report = { first: first.sum, second: second.sum, growth: growth.value, medians: [first.median, second.median] };
await mcp.fs.write({ path: "comparison.json", content: (await mcp.json.stringify({ data: report, indent: 2 })).json });
return report;
