// Publish the document: bump its version in the state file, and prove that what is stored is the new state.
interface State { version: number; status: "draft" | "published" }

const load = async (): Promise<State> => {
  const { content } = await mcp.fs.read({ path: args.path });
  const { data } = await mcp.json.parse({ json: content });
  return data as State;
};

const before = await load();
const next: State = { ...before, version: before.version + 1, status: "published" };
await mcp.fs.write({ path: args.path, content: (await mcp.json.stringify({ data: next })).json });
const after = await load();
return { before, after, changed: before.version !== after.version };
