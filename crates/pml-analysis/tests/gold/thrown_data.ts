// edges: A->B
// A result travels in an error.
const file = await mcp.fs.stat({ path: args.path }); // @A
try {
  if (!file.exists) throw new Error(`missing: ${file.path}`);
} catch (error) {
  await mcp.chat.post({ channel: "ops", text: (error as Error).message }); // @B
}
