// edges: A->C, B->D, C->E, D->F
// What one caller gives does not come out at the other.
const shorten = async (text: string): Promise<string> => {
  const digest = await mcp.ai.summarize({ text, style: "short" });
  return digest.summary.trim();
};
const left = await mcp.fs.read({ path: args.left }); // @A
const right = await mcp.fs.read({ path: args.right }); // @B
const leftShort = await shorten(left.content); // @C(shorten)
const rightShort = await shorten(right.content); // @D(shorten)
await mcp.chat.post({ channel: "left", text: leftShort }); // @E
await mcp.chat.post({ channel: "right", text: rightShort }); // @F
