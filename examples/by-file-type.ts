// Summarises every file of a directory in the way that fits it.
type Summary = { path: string; what: string };

async function summarise(path: string): Promise<Summary> {
  const extension = path.split(".").pop()?.toLowerCase();
  const { content } = await mcp.fs.read({ path });
  switch (extension) {
    case "csv": {
      const { columns, rows } = await mcp.csv.parse({ csv: content });
      return { path, what: `${rows.length} rows of ${columns.join(", ")}` };
    }
    case "json": {
      const { data } = await mcp.json.parse({ json: content });
      return { path, what: Array.isArray(data) ? `${data.length} items` : Object.keys(data).join(", ") };
    }
    case "md":
    case "txt": {
      const { words, lines } = await mcp.text.count({ text: content });
      return { path, what: `${words} words in ${lines} lines` };
    }
    default:
      return { path, what: `${content.length} characters` };
  }
}

const { entries } = await mcp.fs.list({ path: args.dir });
const files = entries.filter((entry) => entry.type === "file");
return await Promise.all(files.map((file) => summarise(file.path)));
