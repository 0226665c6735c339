// edges: A->C, B->C
// One of the functions of a map is called by a key that may not be there.
const readers = new Map<string, (path: string) => Promise<any>>([
  ["file", (path) => mcp.fs.read({ path })], // @A
  ["page", (url) => mcp.web.fetch({ url })], // @B
]);
const read = await readers.get(args.kind)?.(args.place);
if (read) await mcp.ai.summarize({ text: read.content }); // @C
