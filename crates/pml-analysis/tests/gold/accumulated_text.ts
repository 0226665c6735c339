// edges: A->B
// The accumulated text also holds this turn's result, so the edge does not exist only around the loop.
let log = "";
for (const item of args.items) {
  const part = await mcp.ai.summarize({ text: item }); // @A
  log += part.summary + "\n";
  await mcp.fs.write({ path: args.out, content: log }); // @B
}
