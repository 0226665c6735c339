// Merge the configuration layers; later files win, objects are merged, lists are replaced.
type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
const isObject = (value: Json | undefined): value is { [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function merge(base: Json, over: Json): Json {
  if (!isObject(base) || !isObject(over)) return over;
  const result = { ...base };
  for (const [key, value] of Object.entries(over)) {
    result[key] = key in result ? merge(result[key], value) : value;
  }
  return result;
}

let merged: Json = {};
for (const path of args.layers) {
  const { content } = await mcp.fs.read({ path });
  merged = merge(merged, (await mcp.json.parse({ json: content })).data);
}
const { json } = await mcp.json.stringify({ data: merged, indent: 2 });
await mcp.fs.write({ path: "effective.json", content: json });
return merged;
