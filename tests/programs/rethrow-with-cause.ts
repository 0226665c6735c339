// Load the settings; if the file is broken, say so in plain words and keep the original reason.
async function parse(text: string) {
  try {
    return (await mcp.json.parse({ json: text })).data;
  } catch (cause) {
    await mcp.fs.write({ path: "error.log", content: (cause as Error).name + "\n", append: true });
    throw new Error("settings.json is broken", { cause });
  }
}
const { content } = await mcp.fs.read({ path: "settings.json" });
try {
  return await parse(content);
} finally {
  await mcp.fs.write({ path: "error.log", content: "finished\n", append: true });
}
