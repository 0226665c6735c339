// Cleans a customer list: no duplicates, no rows without an address, totals by country.
const { file, out = "clean.csv", minimum = 0 } = args;

const { content } = await mcp.fs.read({ path: file });
const { rows } = await mcp.csv.parse({ csv: content, delimiter: ";" });

const seen = new Set<string>();
const clean = (rows as Record<string, string>[])
  .map((row) => ({ ...row, email: row.email.trim().toLowerCase(), revenue: Number(row.revenue || 0) }))
  .filter((row) => row.email.includes("@") && row.revenue >= minimum)
  .filter((row) => !seen.has(row.email) && seen.add(row.email));

const byCountry = clean.reduce<Record<string, number>>((totals, row) => {
  const country = row["country"] || "unknown";
  totals[country] = (totals[country] ?? 0) + row.revenue;
  return totals;
}, {});

const { csv } = await mcp.csv.stringify({ rows: clean });
await mcp.fs.write({ path: out, content: csv });

const stats = clean.length > 0 ? await mcp.math.statistics({ values: clean.map((row) => row.revenue) }) : null;
return { kept: clean.length, dropped: rows.length - clean.length, byCountry, mean: stats?.mean };
