// edges: A->B
// Functions are called above the place where they are written.
await main();

async function main() {
  const text = await load();
  await publish(text);
}
async function publish(text: string) {
  await mcp.chat.post({ channel: "news", text }); // @B
}
async function load(): Promise<string> {
  return (await mcp.fs.read({ path: args.path })).content; // @A
}
