// edges: B->C
// The array is emptied between the two.
let lines: string[] = [];
lines.push((await mcp.fs.read({ path: args.head })).content); // @A
lines = [];
lines.push((await mcp.fs.read({ path: args.body })).content); // @B
await mcp.fs.write({ path: args.out, content: lines.join("\n") }); // @C
