// edges: A->B, A->C, A->D, B->E, C->E, D->E
// One result into three calls, their results into one.
const { content } = await mcp.fs.read({ path: args.path }); // @A
const [digest, kind, french] = await Promise.all([
  mcp.ai.summarize({ text: content }), // @B
  mcp.ai.classify({ text: content, labels: ["news", "ad"] }), // @C
  mcp.ai.translate({ text: content, language: "fr" }), // @D
]);
await mcp.db.insert({ // @E
  table: "articles",
  record: { digest: digest.summary, kind: kind.label, french },
});
