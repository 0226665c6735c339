// Work out the formula step by step and list every single operation in the order it is done.
const steps: string[] = [];
const tokens = [...(args.formula as string).matchAll(/\s*(?:(\d+(?:\.\d+)?)|([-+*/()]))/gy)].map((m) => m[1] ?? m[2]);
let at = 0;

const operate = async (a: number, operator: string, b: number): Promise<number> => {
  const { value } = await mcp.math.evaluate({ expression: `(${a}) ${operator} (${b})` });
  steps.push(`${a} ${operator} ${b} = ${value}`);
  return value;
};
async function atom(): Promise<number> {
  const token = tokens[at++];
  if (token !== "(") return Number(token);
  const value = await sum();
  at++;
  return value;
}
async function product(): Promise<number> {
  let value = await atom();
  while (tokens[at] === "*" || tokens[at] === "/") value = await operate(value, tokens[at++], await atom());
  return value;
}
async function sum(): Promise<number> {
  let value = await product();
  while (tokens[at] === "+" || tokens[at] === "-") value = await operate(value, tokens[at++], await product());
  return value;
}

const value = await sum();
const check = await mcp.math.evaluate({ expression: args.formula });
return { value, steps, agrees: check.value === value };
