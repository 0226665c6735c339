// Take the first of these documents that exists and is not empty, and say which one and how long it is.
let checked = 0;
for (const path of args.candidates as string[]) {
  checked++;
  if ((await mcp.fs.stat({ path })).exists && (await mcp.text.count({ text: (await mcp.fs.read({ path })).content })).words > 0) {
    return { path, checked, words: (await mcp.text.count({ text: (await mcp.fs.read({ path })).content })).words };
  }
}
return { path: null, checked };
