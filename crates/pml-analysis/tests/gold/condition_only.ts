// edges: none
// A value that only decides which call happens does not flow.
const file = await mcp.fs.stat({ path: args.path }); // @A
if (file.exists) {
  await mcp.fs.read({ path: args.path }); // @B
} else {
  await mcp.fs.create({ path: args.path }); // @C
}
