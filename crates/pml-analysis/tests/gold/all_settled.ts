// edges: A->B, C->E
// Settled results hold the value in a member; positions stay apart.
const settled = await Promise.allSettled(
  args.urls.map((url: string) => mcp.web.fetch({ url })), // @A
);
const pages = settled
  .filter((one) => one.status === "fulfilled")
  .map((one) => (one as PromiseFulfilledResult<string>).value);
await mcp.ai.summarize({ text: pages.join("\n") }); // @B
const [mine, theirs] = await Promise.allSettled([
  mcp.fs.read({ path: args.mine }), // @C
  mcp.fs.read({ path: args.theirs }), // @D
]);
if (mine.status === "fulfilled" && theirs.status === "fulfilled") {
  await mcp.ai.summarize({ text: mine.value.content }); // @E
}
