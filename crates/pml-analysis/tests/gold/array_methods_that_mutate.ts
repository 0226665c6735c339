// edges: A->C, B->C
// Unshift, splice and reverse keep both results in the array.
const lines: string[] = ["title"];
lines.unshift((await mcp.fs.read({ path: args.head })).content); // @A
lines.splice(1, 0, (await mcp.fs.read({ path: args.body })).content); // @B
lines.reverse();
await mcp.fs.write({ path: args.out, content: lines.join("\n") }); // @C
