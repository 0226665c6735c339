// edges: A->C, B->D
// Two closures made by the same function have their own variables.
function collector() {
  let total = "";
  return {
    add(text: string) { total += text; },
    read() { return total; },
  };
}
const left = collector();
const right = collector();
left.add((await mcp.fs.read({ path: args.left })).content); // @A
right.add((await mcp.fs.read({ path: args.right })).content); // @B
await mcp.ai.summarize({ text: left.read() }); // @C
await mcp.ai.summarize({ text: right.read() }); // @D
