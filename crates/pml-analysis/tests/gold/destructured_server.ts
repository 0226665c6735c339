// edges: A->B, B->C
// Tools under names of their own.
const { read, write: save } = mcp.fs;
const ai = mcp.ai;
const file = await read({ path: args.path }); // @A
const digest = await ai.summarize({ text: file.content }); // @B
await save({ path: args.out, content: digest.summary }); // @C
