// Print the poem with its lines in reverse order and in capitals.
const { fs, text } = mcp;
const { content } = await fs.read({ path: args.path });
const { parts } = await text.split({ text: content, separator: "\n", trim: true });
const shout = async (line: string) => (await text.case({ text: line, to: "upper" })).text;
const lines: string[] = [];
for (const line of parts.reverse()) lines.push(await shout(line));
await fs.write({ path: "reversed.txt", content: lines.join("\n") });
return lines;
