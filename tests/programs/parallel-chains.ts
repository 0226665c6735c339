// Write the weekly report from three sources that are read and prepared at the same time.
const [sales, open, words, week] = await Promise.all([
  mcp.fs
    .read({ path: "sales.csv" })
    .then((file: { content: string }) => mcp.csv.parse({ csv: file.content }))
    .then(({ rows }: { rows: { amount: string }[] }) => mcp.math.statistics({ values: rows.map((row) => Number(row.amount)) })),
  (async () => {
    const { content } = await mcp.fs.read({ path: "tickets.json" });
    const { data } = await mcp.json.parse({ json: content });
    return (await mcp.json.query({ data, path: "$[?@.state == 'open'].title" })).matches as string[];
  })(),
  mcp.fs.read({ path: "notes.txt" }).then(({ content }: { content: string }) => mcp.text.count({ text: content })),
  mcp.time.convert({ time: args.at, timezone: args.zone, pattern: "%G-W%V" }),
]);

const report = [`# ${week.text}`, `Sales: ${sales.sum}`, ...open.map((title) => `- ${title}`), `(${words.words} words of notes)`].join("\n");
const written = await mcp.fs.write({ path: `reports/${week.text}.md`, content: report });
return { path: written.path, report };
