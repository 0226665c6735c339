// Carry these numbers through JSON text and back and through a file: nothing may be lost on the way.
const values: Record<string, number> = { ...args, third: 1 / 3, float: 0.1 + 0.2 };
const { json } = await mcp.json.stringify({ data: values });
await mcp.fs.write({ path: "numbers.json", content: json });
const { data } = await mcp.json.parse({ json: (await mcp.fs.read({ path: "numbers.json" })).content });

const lost = Object.keys(values).filter((key) => !Object.is(values[key], data[key]));
const exact = await mcp.math.evaluate({ expression: "a + b", variables: { a: 0.1, b: 0.2 } });
const power = await mcp.math.evaluate({ expression: "2 ^ 53 - 1" });
return { lost, data, float: 0.1 + 0.2, exact: exact.value, limit: power.value === Number.MAX_SAFE_INTEGER };
