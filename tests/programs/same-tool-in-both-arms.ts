// Log the readings: what is below zero into the frost log, everything else into the normal log.
const written: Record<string, number> = {};
for (const value of args.readings as number[]) {
  const result = value < 0
    ? await mcp.fs.write({ path: "frost.log", content: `${value}\n`, append: true })
    : await mcp.fs.write({ path: "normal.log", content: `${value}\n`, append: true });
  written[result.path] = result.size;
}
return written;
