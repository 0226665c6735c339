// What does the basket cost with discount and VAT, rounded per line, half to even, and where would floats go wrong?
const lines: { price: number; net: number; gross: string }[] = [];
for (const price of args.prices as number[]) {
  const net = await mcp.math.evaluate({ expression: "p * (1 - d / 100)", variables: { p: price, d: args.discountPercent } });
  const rounded = await mcp.math.round({ value: net.value, digits: 2, mode: "half-even" });
  const gross = await mcp.math.evaluate({ expression: "n * (1 + v / 100)", variables: { n: rounded.value, v: args.vatPercent } });
  lines.push({ price, net: rounded.value, gross: (await mcp.math.round({ value: gross.value, digits: 2 })).text });
}
const total = await mcp.math.evaluate({ expression: lines.map((line) => line.gross).join(" + ") });
const naive = lines.map((line) => Number(line.gross)).reduce((a, b) => a + b, 0);
return { lines, total: total.value, cents: Math.round(naive * 100) };
