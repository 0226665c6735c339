// Make the leaderboard: most points first, then the fastest, then by name; equal results share a rank.
type Row = { player: string; points: number; seconds: number };
const { rows } = await mcp.csv.parse({ csv: (await mcp.fs.read({ path: args.file })).content });
const table: Row[] = rows.map(({ player, points, seconds }: Record<string, string>) => ({
  player, points: +points, seconds: parseFloat(seconds),
}));

const by = <T>(...keys: ((item: T) => number | string)[]) => (a: T, b: T) => {
  for (const key of keys) {
    const [x, y] = [key(a), key(b)];
    if (x !== y) return x < y ? -1 : 1;
  }
  return 0;
};
table.sort(by<Row>((row) => -row.points, (row) => row.seconds, (row) => row.player));

let rank = 0;
const lines: string[] = [];
for (const [index, row] of table.entries()) {
  const previous = table[index - 1];
  if (!previous || previous.points !== row.points || previous.seconds !== row.seconds) rank = index + 1;
  const { text } = await mcp.text.case({ text: row.player, to: "title" });
  lines.push(`${rank}. ${text} ${row.points}`);
}
await mcp.fs.write({ path: "leaderboard.txt", content: lines.join("\n") });
return lines;
