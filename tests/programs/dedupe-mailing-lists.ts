// Combine two mailing lists without duplicates and without those who unsubscribed; tell who is on both.
async function load(name: string): Promise<Set<string>> {
  const { content } = await mcp.fs.read({ path: `lists/${name}.txt` });
  const { parts } = await mcp.text.split({ text: content, separator: "\n", trim: true });
  return new Set(parts.map((address: string) => address.toLowerCase()));
}

const a = await load("a");
const b = await load("b");
const gone = await load("unsubscribed");

const all = new Set([...a, ...b].filter((address) => !gone.has(address)));
const both = [...a].filter((address) => b.has(address));
await mcp.fs.write({ path: "lists/all.txt", content: [...all].sort().join("\n") });
return { all: all.size, both, dropped: a.size + b.size - both.length - all.size };
