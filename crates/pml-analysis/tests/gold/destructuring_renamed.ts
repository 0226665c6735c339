// edges: A->B, B->C, A->C
// Members under new names, in a declaration and in a parameter.
const { content: raw, path: origin } = await mcp.fs.read({ path: args.path }); // @A
const { summary: brief } = await mcp.ai.summarize({ text: raw }); // @B
const label = ({ where: place, what: thing }: { where: string; what: string }) => `${place}: ${thing}`;
await mcp.chat.post({ channel: "files", text: label({ what: brief, where: origin }) }); // @C
