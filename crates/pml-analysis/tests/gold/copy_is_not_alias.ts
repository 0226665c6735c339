// edges: A->C, B->D
// A copy keeps the old value when the original is changed.
const draft = { text: (await mcp.fs.read({ path: args.first })).content, tags: ["a"] }; // @A
const copy = { ...draft };
draft.text = (await mcp.fs.read({ path: args.second })).content; // @B
await mcp.ai.summarize({ text: copy.text }); // @C
await mcp.ai.summarize({ text: draft.text }); // @D
