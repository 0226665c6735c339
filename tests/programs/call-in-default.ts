// Summarise a folder; the title is the one given, else what the TITLE file says.
const { dir, title = (await mcp.fs.read({ path: `${dir}/TITLE` })).content.trim(), shout = false } = args;

async function words(path: string, content: Promise<{ content: string }> = mcp.fs.read({ path })): Promise<number> {
  return (await mcp.text.count({ text: (await content).content })).words;
}

const { matches } = await mcp.fs.search({ path: dir, pattern: "*.md" });
let total = 0;
for (const { path } of matches) {
  total += await words(path);
}
total += await words("unused", Promise.resolve({ content: "given by hand" }));
return { title: shout ? title.toUpperCase() : title, total };
