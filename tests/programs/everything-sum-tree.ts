// Add these numbers pairwise with the sum service until one is left, and show each round.
const add = async (a: number, b: number): Promise<number> => {
  const said: string = await mcp.everything.get_sum({ a, b });
  const found = /is (-?[\d.]+)\.$/.exec(said);
  if (!found) throw new Error(`cannot read: ${said}`);
  return Number(found[1]);
};

let level: number[] = args.numbers;
const rounds: number[][] = [level];
while (level.length > 1) {
  const pairs = Array.from({ length: Math.ceil(level.length / 2) }, (_, i) => level.slice(i * 2, i * 2 + 2));
  level = await Promise.all(pairs.map(([a, b]) => (b === undefined ? a : add(a, b))));
  rounds.push(level);
}
return { total: level[0], rounds };
