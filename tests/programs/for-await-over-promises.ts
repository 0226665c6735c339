// Add up the numbers in three files, in order, and say where it stopped making sense.
const reads = ["x.txt", "y.txt", "z.txt"].map((path) => mcp.fs.read({ path }));
let sum = 0;
let position = 0;
for await (const { content } of reads) {
  const value = Number(content);
  if (Number.isNaN(value)) {
    await mcp.fs.write({ path: "problem.txt", content: `file ${position} is not a number: ${content}` });
    break;
  }
  sum += value;
  position += 1;
}
return { sum, position };
