// Add up the numbers of all three files; if one is missing, there is no sum.
const { exists } = await mcp.fs.stat({ path: "sum.txt" });
if (exists) return "already there";
const numbers = await Promise.all(
  (args.files as string[]).map(async (path) => {
    const { content } = await mcp.fs.read({ path });
    return Number(content);
  }),
);
const { sum } = await mcp.math.statistics({ values: numbers });
await mcp.fs.write({ path: "sum.txt", content: String(sum) });
return sum;
