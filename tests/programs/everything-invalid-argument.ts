// Add up the pairs that are numbers; the service refuses the others, list those.
const sums: string[] = [];
const refused: unknown[] = [];
for (const [a, b] of args.pairs) {
  try {
    sums.push(await mcp.everything.get_sum({ a, b }));
  } catch (error) {
    refused.push({ a, b, known: error instanceof Error });
  }
}
return { sums, refused };
