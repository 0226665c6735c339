// edges: A->B
// A long chain of pure methods.
const { content } = await mcp.fs.read({ path: args.path }); // @A
const words = content
  .split("\n")
  .map((line: string) => line.trim())
  .filter((line: string) => line !== "" && !line.startsWith("#"))
  .flatMap((line: string) => line.split(/\s+/))
  .slice(0, 50);
await mcp.web.search({ query: words.join(" ").toLowerCase() }); // @B
