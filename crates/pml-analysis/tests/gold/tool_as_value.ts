// edges: A->B, B->C
// The tool itself is the callback.
const { rows } = await mcp.db.query({ sql: "select name from articles" }); // @A
const inputs = rows.map((row: { name: string }) => ({ text: row.name }));
const digests = await Promise.all(inputs.map(mcp.ai.summarize)); // @B
await mcp.chat.post({ channel: "news", text: digests.map((d: any) => d.summary).join("\n") }); // @C
