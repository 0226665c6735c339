// edges: A->C, B->D
// A change after the call does not reach back into it.
const message = { channel: "ops", text: "" };
message.text = (await mcp.ai.summarize({ text: args.first })).summary; // @A
await mcp.chat.post(message); // @C
message.text = (await mcp.ai.summarize({ text: args.second })).summary; // @B
await mcp.chat.post(message); // @D
