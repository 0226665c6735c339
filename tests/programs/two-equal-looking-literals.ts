// Make two shopping lists that start with the same item, and a third that is like the first.
const first = await mcp.fs.create({ path: "monday.txt", content: "milk" });
const second = await mcp.fs.create({ path: "tuesday.txt", content: "milk" });
await mcp.fs.write({ path: "monday.txt", content: ", bread", append: true });
const monday = await mcp.fs.read({ path: "monday.txt" });
const third = await mcp.fs.create({ path: "wednesday.txt", content: monday.content });
const tuesday = await mcp.fs.read({ path: "tuesday.txt" });
return { sizes: [first.size, second.size, third.size], monday: monday.content, tuesday: tuesday.content };
