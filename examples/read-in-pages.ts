// Reads a file that is too large for one answer, and counts its words.
let offset: number | null = 0;
let words = 0;
let pages = 0;

while (offset !== null) {
  const page = await mcp.fs.read({ path: args.path, offset, limit: 65536 });
  const counted = await mcp.text.count({ text: page.content });
  words += counted.words;
  pages += 1;
  offset = page.nextOffset;
}

return { path: args.path, words, pages };
