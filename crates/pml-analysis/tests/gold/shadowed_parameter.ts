// edges: A->B, B->C
// A callback's parameter hides the variable outside.
const row = await mcp.db.query({ sql: "select url from feeds" }); // @A
const pages = await Promise.all(
  row.rows.map(async (row: { url: string }) => {
    return mcp.web.fetch({ url: row.url }); // @B
  }),
);
await mcp.ai.summarize({ text: pages.map((row: string) => row.slice(0, 500)).join("\n") }); // @C
