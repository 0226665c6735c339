// Copy the file byte by byte through base64 and make sure that the copy is the same; append a tail to the copy.
const source = await mcp.fs.read({ path: "in.txt", encoding: "base64" });
await mcp.fs.create({ path: "copy.txt", content: source.content, encoding: "base64" });
const [a, b] = await Promise.all(["in.txt", "copy.txt"].map((path) => mcp.fs.read({ path })));
if (a.content !== b.content) throw new Error("the copy differs");
const { size } = await mcp.fs.write({ path: "copy.txt", content: "IQ==", encoding: "base64", append: true });
return { base64: source.content, bytes: source.size, size, text: (await mcp.fs.read({ path: "copy.txt" })).content };
