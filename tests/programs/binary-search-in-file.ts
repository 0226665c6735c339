// Find one key in a large sorted file of lines of equal length without reading all of it.
const LINE = 17;
const { size } = await mcp.fs.stat({ path: "sorted.txt" });
let low = 0;
let high = size / LINE - 1;
let reads = 0;

while (low <= high) {
  const middle = (low + high) >>> 1;
  const { content } = await mcp.fs.read({ path: "sorted.txt", offset: middle * LINE, limit: LINE });
  reads += 1;
  const [key, value] = content.trimEnd().split(" ");
  if (key === args.key) return { line: middle + 1, value: Number(value), reads };
  if (key < args.key) low = middle + 1;
  else high = middle - 1;
}
return { line: null, reads };
