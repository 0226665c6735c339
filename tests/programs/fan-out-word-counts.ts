// Count the words of all chapters at once and tell me the longest one.
const { entries } = await mcp.fs.list({ path: args.dir });
const chapters = entries.filter((entry: { path: string }) => entry.path.endsWith(".txt"));

const counts: { path: string; words: number }[] = await Promise.all(
  chapters.map(async ({ path }: { path: string }) => {
    const { content } = await mcp.fs.read({ path });
    const { words } = await mcp.text.count({ text: content });
    return { path, words };
  }),
);

const { sum } = await mcp.math.statistics({ values: counts.map((count) => count.words) });
const longest = counts.toSorted((a, b) => b.words - a.words)[0];
return { counts, total: sum, longest: longest.path };
