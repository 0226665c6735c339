// After how many years at seven per cent has the money grown to the goal? Show the balance of each year.
let balance: number = args.start;
const years: string[] = [];
do {
  const grown = await mcp.math.evaluate({ expression: "b * (1 + r)", variables: { b: balance, r: args.rate } });
  const rounded = await mcp.math.round({ value: grown.value, digits: 2 });
  balance = rounded.value;
  years.push(rounded.text);
} while (balance < args.goal && years.length < 50);
return { years: years.length, balances: years };
