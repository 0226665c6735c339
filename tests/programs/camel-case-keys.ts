// Rename all keys of this record from snake_case to camelCase, asking for each different key only once.
const cache = new Map<string, Promise<string>>();
const camel = (key: string): Promise<string> => {
  let known = cache.get(key);
  if (!known) {
    known = mcp.text.case({ text: key, to: "camel" }).then((result: { text: string }) => result.text);
    cache.set(key, known);
  }
  return known;
};

const rename = async (value: unknown): Promise<unknown> => {
  if (Array.isArray(value)) return Promise.all(value.map(rename));
  if (value === null || typeof value !== "object") return value;
  const entries: [string, unknown][] = [];
  for (const [key, inner] of Object.entries(value)) {
    entries.push([await camel(key), await rename(inner)]);
  }
  return Object.fromEntries(entries);
};

const { content } = await mcp.fs.read({ path: args.file });
const renamed = await rename(JSON.parse(content));
return { renamed, asked: cache.size };
