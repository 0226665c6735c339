// Produce the usual statistics, even though there may be nothing to count.
const [csv, header, text] = await Promise.all(["empty.csv", "header.csv", "empty.txt"].map((path) => mcp.fs.read({ path })));
const parsed = await mcp.csv.parse({ csv: csv.content });
const headed = await mcp.csv.parse({ csv: header.content });
const counted = await mcp.text.count({ text: text.content });
const { entries } = await mcp.fs.search({ pattern: "*.nothing" }).then((found: any) => ({ entries: found.matches }));

let mean: number | null = null;
if (args.list.length) {
  mean = (await mcp.math.statistics({ values: args.list })).mean;
}
for (const path of args.files) {
  await mcp.fs.delete({ path });
}
const nothing = await Promise.all([]);
const joined = await mcp.text.join({ parts: [], separator: ", " });
return { columns: parsed.columns, rows: parsed.rows, headed, counted, found: entries.length, mean, nothing, joined: joined.text, last: [].at(-1) ?? null };
