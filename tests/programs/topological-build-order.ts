// In which order must the packages be built so that each comes after all it needs? Write a build script.
const order: string[] = [];
const state: Record<string, "visiting" | "done"> = {};

const visit = async (name: string): Promise<void> => {
  if (state[name] === "done") return;
  if (state[name] === "visiting") throw new Error(`cycle at ${name}`);
  state[name] = "visiting";
  const { content } = await mcp.fs.read({ path: `deps/${name}.json` });
  const { data } = await mcp.json.parse({ json: content });
  for (const needed of data as string[]) await visit(needed);
  state[name] = "done";
  order.push(name);
};

await visit(args.target);
await mcp.fs.create({ path: "build.sh", content: order.map((name) => `build ${name}`).join("\n") + "\n" });
return order;
