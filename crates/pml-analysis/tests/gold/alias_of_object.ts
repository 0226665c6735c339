// edges: A->C, B->D
// Two names of one object: a write through one is a write to both.
const draft = { channel: "ops", text: "" };
const same = draft;
same.text = (await mcp.fs.read({ path: args.first })).content; // @A
await mcp.chat.post({ channel: draft.channel, text: draft.text }); // @C
same.text = (await mcp.fs.read({ path: args.second })).content; // @B
await mcp.chat.post({ channel: draft.channel, text: draft.text }); // @D
