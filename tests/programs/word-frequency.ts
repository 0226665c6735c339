// Which words come most often in the poem? Give the top three and a bar chart in a file.
const { content } = await mcp.fs.read({ path: args.file });
const { text } = await mcp.text.case({ text: content, to: "lower" });
const counts: Record<string, number> = Object.create(null);
for (const [word] of text.matchAll(/[a-z]+/g)) counts[word] = (counts[word] ?? 0) + 1;

const ranked = Object.entries(counts).sort(([a, n], [b, m]) => m - n || a.localeCompare(b)).slice(0, args.top);
const width = Math.max(...ranked.map(([word]) => word.length));
const chart = ranked.map(([word, count]) => `${word.padEnd(width)} ${"#".repeat(count)}`).join("\n");
await mcp.fs.write({ path: "chart.txt", content: chart });
return Object.fromEntries(ranked);
