// Store this text under a name with umlauts and Japanese, read it back, and count it in every way.
const { name, text } = args;
await mcp.fs.write({ path: `資料/${name}`, content: text });
const { entries } = await mcp.fs.list({ path: "資料" });
const { content } = await mcp.fs.read({ path: entries[0].path });
const counted = await mcp.text.count({ text: content });
const head = await mcp.text.slice({ text: content, start: 0, end: 10 });
const tail = await mcp.text.slice({ text: content, start: -2 });

return {
  path: entries[0].path,
  same: content === text,
  counted,
  utf16: content.length,
  codePoints: [...content].length,
  head: head.text,
  tailNormal: tail.text.normalize("NFC"),
  upper: (await mcp.text.case({ text: head.text, to: "upper" })).text,
  words: content.match(/\p{L}+/gu),
};
