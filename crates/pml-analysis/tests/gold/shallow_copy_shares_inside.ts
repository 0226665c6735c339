// edges: B->C
// A shallow copy shares the inner object, so the later write is seen through it.
const draft = { meta: { text: "" } };
draft.meta.text = (await mcp.fs.read({ path: args.first })).content; // @A
const copy = { ...draft };
draft.meta.text = (await mcp.fs.read({ path: args.second })).content; // @B
await mcp.ai.summarize({ text: copy.meta.text }); // @C
