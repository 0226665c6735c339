// Uses what was learned before: `clean_customers` is a capability, called like a function.
const { matches } = await mcp.fs.search({ path: args.dir, pattern: "customers-*.csv" });

const results: { path: string; kept: number; dropped: number }[] = [];
for (const { path } of matches) {
  const out = path.replace(/\.csv$/, ".clean.csv");
  const result = await capabilities.clean_customers({ file: path, out, minimum: args.minimum });
  results.push({ path: out, kept: result.kept, dropped: result.dropped });
}

const { json } = await mcp.json.stringify({ data: results, indent: 2 });
await mcp.fs.write({ path: `${args.dir}/summary.json`, content: json });
return results;
