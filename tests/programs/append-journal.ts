// Keep a journal: start today's page, add each entry at its end, and show me the page as it is on disk.
const path = `journal/${args.day}.md`;
await mcp.fs.write({ path, content: `# ${args.day}\n` });

let size = 0;
for (const [index, entry] of (args.entries as string[]).entries()) {
  const written = await mcp.fs.write({ path, content: `${index + 1}. ${entry}\n`, append: true });
  if (written.size <= size) {
    throw new Error("the page did not grow");
  }
  size = written.size;
}

const page = await mcp.fs.read({ path });
return { page: page.content, size, same: page.size === size };
