// Store a large table, read it back, and tell whether it is the same and how much it is.
const rows = Array.from({ length: args.lines as number }, (_, i) => [i, `name ${i}`, (i * 7919) % 1000]);
const { csv } = await mcp.csv.stringify({ rows, columns: ["id", "name", "score"] });
await mcp.fs.write({ path: "large.csv", content: csv });
const back = await mcp.fs.read({ path: "large.csv" });
const parsed = await mcp.csv.parse({ csv: back.content });
const { max, mean } = await mcp.math.statistics({ values: parsed.rows.map((row: { score: string }) => +row.score) });
await mcp.fs.delete({ path: "large.csv" });
return { same: back.content === csv, bytes: back.size, rows: parsed.rows.length, last: parsed.rows.at(-1), max, mean };
