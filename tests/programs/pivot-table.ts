// Make a pivot table: months down, products across, units added up, with a total row.
const { rowKey, columnKey, value }: Record<string, string> = args;
const { rows } = await mcp.csv.parse({ csv: (await mcp.fs.read({ path: "units.csv" })).content, delimiter: ";" });

const columns = [...new Set<string>(rows.map((row: any) => row[columnKey]))].sort();
const grouped = Object.groupBy(rows as Record<string, string>[], (row) => row[rowKey]);
const pivot: Record<string, string | number>[] = [];
for (const [label, members] of Object.entries(grouped)) {
  const line: Record<string, string | number> = { [rowKey]: label };
  for (const column of columns) {
    line[column] = members!.filter((row) => row[columnKey] === column).reduce((sum, row) => sum + Number(row[value]), 0);
  }
  pivot.push(line);
}
const total: Record<string, string | number> = { [rowKey]: "total" };
for (const column of columns) {
  const { sum } = await mcp.math.statistics({ values: pivot.map((line) => line[column]) });
  total[column] = sum;
}
const { csv } = await mcp.csv.stringify({ rows: [...pivot, total], columns: [rowKey, ...columns] });
await mcp.fs.write({ path: "pivot.csv", content: csv });
return csv.trimEnd().split("\n");
