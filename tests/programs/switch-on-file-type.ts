// Describe every file of the folder in the way that suits its type.
type Described = { path: string; kind: string; detail: string | number };
const described: Described[] = [];
let skipped = 0;

for (const { path } of (await mcp.fs.list({ path: args.dir })).entries as { path: string }[]) {
  const extension = path.slice(path.lastIndexOf(".") + 1);
  let kind = "text";
  switch (extension) {
    case "csv": {
      const { rows } = await mcp.csv.parse({ csv: (await mcp.fs.read({ path })).content });
      described.push({ path, kind: "table", detail: rows.length });
      break;
    }
    case "json": {
      const { data } = await mcp.json.parse({ json: (await mcp.fs.read({ path })).content });
      described.push({ path, kind: "data", detail: Object.keys(data).join() });
      break;
    }
    case "md":
      kind = "markdown";
    // falls through
    case "txt": {
      const { words } = await mcp.text.count({ text: (await mcp.fs.read({ path })).content });
      described.push({ path, kind, detail: words });
      break;
    }
    default:
      skipped += 1;
  }
}
return { described, skipped };
