// Write a birthday card with her name in title case, the age she would have, and her biography.
const card = `Dear ${(await mcp.text.case({ text: args.name, to: "title" })).text},
happy ${/^P(\d+)Y/.exec((await mcp.time.diff({ from: args.born, to: args.day })).duration)?.[1]}th on a ${
  (await mcp.time.convert({ time: args.day, pattern: "%A" })).text
}!
${(await mcp.fs.read({ path: "bio.txt" })).content}`;
await mcp.fs.write({ path: `cards/${args.name.replaceAll(" ", "-")}.txt`, content: card });
return card;
