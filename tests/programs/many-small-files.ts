// Make forty small files at once, add up what they hold, and clear them away again.
const names = Array.from({ length: args.count as number }, (_, i) => `tmp/part-${String(i).padStart(3, "0")}.txt`);
await Promise.all(names.map((path, i) => mcp.fs.create({ path, content: String(i * i) })));
const { entries, truncated } = await mcp.fs.list({ path: "tmp" });
const contents = await Promise.all(entries.map(({ path }: { path: string }) => mcp.fs.read({ path })));
const { sum, count } = await mcp.math.statistics({ values: contents.map(({ content }) => Number(content)) });
const inOrder = contents.every(({ content }, i) => content === String(i * i));
await mcp.fs.delete({ path: "tmp", recursive: true });
return { sum, count, inOrder, truncated, left: (await mcp.fs.stat({ path: "tmp" })).exists };
