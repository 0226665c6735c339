// Work out the balance after each movement, exact to the cent, one after the other.
type Line = { movement: number; balance: number };

const lines = await (args.movements as number[]).reduce<Promise<Line[]>>(async (previous, movement) => {
  const soFar = await previous;
  const balance = soFar.at(-1)?.balance ?? (args.opening as number);
  const { value } = await mcp.math.evaluate({ expression: "a + b", variables: { a: balance, b: movement } });
  return [...soFar, { movement, balance: value }];
}, Promise.resolve([]));

return { lines, closing: lines.at(-1)?.balance, overdrawn: lines.some((line) => line.balance < 0) };
