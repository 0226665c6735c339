// edges: A->C, B->D
// A deep copy through JSON does not see later changes.
const draft = { meta: { text: "" } };
draft.meta.text = (await mcp.fs.read({ path: args.first })).content; // @A
const copy = JSON.parse(JSON.stringify(draft)) as typeof draft;
draft.meta.text = (await mcp.fs.read({ path: args.second })).content; // @B
await mcp.ai.summarize({ text: copy.meta.text }); // @C
await mcp.ai.summarize({ text: draft.meta.text }); // @D
