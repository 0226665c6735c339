// Merge all CSV files whose every row is complete; leave out a whole file at its first bad row.
const merged: Record<string, string>[] = [];
const rejected: string[] = [];
const { matches } = await mcp.fs.search({ path: "in", pattern: "*.csv" });

file: for (const { path } of matches) {
  let rows: Record<string, string>[];
  try {
    rows = (await mcp.csv.parse({ csv: (await mcp.fs.read({ path })).content })).rows;
  } catch {
    rejected.push(path);
    continue file;
  }
  for (const row of rows) {
    if (Object.values(row).some((cell) => cell === "")) {
      rejected.push(path);
      continue file;
    }
  }
  merged.push(...rows);
}

const { csv } = await mcp.csv.stringify({ rows: merged, columns: ["id", "name"] });
await mcp.fs.write({ path: "merged.csv", content: csv });
return { rows: merged.length, rejected };
