// Read the notes with the options I gave, if any; those I left out are as if they were not there.
const { path, offset, limit, encoding } = args as { path: string; offset?: number; limit?: number; encoding?: "utf8" };
const whole = await mcp.fs.read({ path, offset, limit, encoding });
const middle = await mcp.fs.read({ path, offset: offset ?? 3, limit: limit ?? 4 });
const result: { whole: string; middle: string; note?: string; none: null } = { whole: whole.content, middle: middle.content, note: undefined, none: null };
await mcp.fs.write({ path: "copy.txt", content: `${result.whole}|${result.middle}`, append: undefined });
return result;
