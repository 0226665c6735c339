// Flatten the nested user records into a table with dotted column names.
function flatten(value: unknown, prefix = ""): Record<string, unknown> {
  if (Array.isArray(value)) return { [prefix]: value.join("|") };
  if (value === null || typeof value !== "object") return { [prefix]: value };
  return Object.assign({}, ...Object.entries(value).map(([key, inner]) => flatten(inner, prefix ? `${prefix}.${key}` : key)));
}

const { data } = await mcp.json.parse({ json: (await mcp.fs.read({ path: "users.json" })).content });
const rows = (data as unknown[]).map((user) => flatten(user));
const columns = [...new Set(rows.flatMap(Object.keys))];
const { csv } = await mcp.csv.stringify({ rows, columns });
await mcp.fs.write({ path: "users.csv", content: csv });
return { columns, csv };
