// Sum the likes of the posts and list their ids with every digit; the ids are too large for a number.
const { content } = await mcp.fs.read({ path: "tweets.json" });
const { matches } = await mcp.text.match({ text: content, pattern: '"id":\\s*(\\d+)' });
const ids: bigint[] = matches.map((match: { groups: string[] }) => BigInt(match.groups[0]));
const { data } = await mcp.json.parse({ json: content });
const { sum } = await mcp.math.statistics({ values: data.map((post: { likes: number }) => post.likes) });

const largest = ids.reduce((a, b) => (a > b ? a : b));
await mcp.fs.write({ path: "ids.txt", content: ids.map((id) => id.toString()).join("\n") });
return { ids: ids.map(String), largest: `${largest}`, next: (largest + 1n).toString(), likes: sum };
