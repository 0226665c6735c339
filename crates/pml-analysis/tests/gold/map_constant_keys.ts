// edges: A->C, B->D
// Entries under constant keys are separate.
const loaded = new Map<string, string>();
loaded.set("readme", (await mcp.fs.read({ path: "README.md" })).content); // @A
loaded.set("licence", (await mcp.fs.read({ path: "LICENSE" })).content); // @B
await mcp.ai.summarize({ text: loaded.get("readme")! }); // @C
await mcp.ai.summarize({ text: loaded.get("licence") ?? "" }); // @D
