// edges: A->C, B->D
// Taking from the front and from the back of a known array.
const paths: string[] = [];
paths.push((await mcp.fs.stat({ path: args.first })).path); // @A
paths.push((await mcp.fs.stat({ path: args.second })).path); // @B
const front = paths.shift()!;
const back = paths.pop()!;
await mcp.fs.read({ path: front }); // @C
await mcp.fs.read({ path: back }); // @D
