// Load the data from whichever mirror has it, all asked at once.
const load = async (mirror: string) => {
  const { content } = await mcp.fs.read({ path: `${mirror}/data.json` });
  return { mirror, content };
};
const first = await Promise.any((args.mirrors as string[]).map(load));
const { data } = await mcp.json.parse({ json: first.content });

let none: string;
try {
  await Promise.any(["x", "y"].map(load));
  none = "found";
} catch (error) {
  none = error instanceof AggregateError ? `${error.errors.length} failed` : "other";
}
return { mirror: first.mirror, data, none };
