// Build the playlist from these snippets, but read each file only once.
function memoize<A extends string, R>(work: (key: A) => Promise<R>) {
  const known: Partial<Record<A, Promise<R>>> = {};
  let hits = 0;
  const lookup = (key: A): Promise<R> => {
    if (known[key]) hits++;
    return (known[key] ??= work(key));
  };
  return { lookup, hits: () => hits };
}

const reader = memoize(async (path: string) => (await mcp.fs.read({ path })).content as string);
const parts: string[] = [];
for (const path of args.wanted) {
  parts.push(await reader.lookup(path));
}
const { text } = await mcp.text.join({ parts, separator: " > " });
return { text, hits: reader.hits() };
