// Total sales per region, largest first, as a CSV file and as a result.
interface Sale { region: string; amount: string; day: string }
const { content } = await mcp.fs.read({ path: args.file });
const { rows } = await mcp.csv.parse({ csv: content });

const groups = Map.groupBy(rows as Sale[], (sale) => sale.region);
const totals: { region: string; total: number; sales: number; last: string }[] = [];
for (const [region, sales] of groups) {
  const { sum } = await mcp.math.statistics({ values: sales.map((sale) => Number(sale.amount)) });
  totals.push({ region, total: sum, sales: sales.length, last: sales.map((sale) => sale.day).sort().at(-1)! });
}
totals.sort((a, b) => b.total - a.total || (a.region < b.region ? -1 : 1));

const { csv } = await mcp.csv.stringify({ rows: totals });
await mcp.fs.write({ path: "by-region.csv", content: csv });
return totals;
