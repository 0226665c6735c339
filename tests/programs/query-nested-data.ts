// Which books are cheap, what do all things cost together, and what does the odd key hold?
const { data } = await mcp.json.parse({ json: (await mcp.fs.read({ path: "shop.json" })).content });
const ask = async <T = unknown>(path: string): Promise<T[]> => (await mcp.json.query({ data, path })).matches;

const cheap = await ask<{ title: string; tags?: string[] }>(`$.store.books[?@.price < ${args.maxPrice}]`);
const prices = await ask<number>("$..price");
const { sum } = await mcp.math.statistics({ values: prices });
return {
  cheap: cheap.map(({ title, tags: [first = "none", ...others] = [] }) => ({ title, first, others: others.length })),
  sum,
  last: await ask("$.store.books[-1].title"),
  odd: await ask("/a~1b/m~0n"),
  missing: await ask("/no/such/thing"),
};
