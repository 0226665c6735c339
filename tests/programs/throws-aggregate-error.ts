// Load the package list from any mirror; fail if none has it. (None has.)
await mcp.fs.write({ path: "attempt.log", content: `trying ${args.mirrors.length} mirrors\n` });
const { content } = await Promise.any((args.mirrors as string[]).map((mirror) => mcp.fs.read({ path: `${mirror}/list.txt` })));
await mcp.fs.write({ path: "list.txt", content });
return content.length;
