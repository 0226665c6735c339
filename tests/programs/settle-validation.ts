// Check which of the JSON files in the folder are valid, all at once, and write a report.
const { matches } = await mcp.fs.search({ path: "in", pattern: "*.json" });
const paths: string[] = matches.map((match: { path: string }) => match.path);
const contents = await Promise.all(paths.map((path) => mcp.fs.read({ path })));
const settled = await Promise.allSettled(contents.map(({ content }) => mcp.json.parse({ json: content })));

const report = settled.map((outcome, index) =>
  outcome.status === "fulfilled"
    ? { path: paths[index], valid: true, kind: Array.isArray(outcome.value.data) ? "array" : typeof outcome.value.data }
    : { path: paths[index], valid: false, error: (outcome.reason as Error).name },
);
await mcp.fs.write({ path: "report.json", content: (await mcp.json.stringify({ data: report })).json });
return { valid: report.filter((line) => line.valid).length, report };
