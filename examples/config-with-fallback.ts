// Reads a setting from the first configuration that has it; a broken file is as good as none.
async function load(path: string): Promise<Record<string, unknown> | null> {
  try {
    const file = await mcp.fs.read({ path });
    const { data } = await mcp.json.parse({ json: file.content });
    return data;
  } catch (error) {
    console.log(`${path}: ${error}`);
    return null;
  }
}

const settings = (await load("config/local.json")) ?? (await load("config/default.json"));
if (!settings) {
  return { found: false, value: args.fallback };
}

const { matches } = await mcp.json.query({ data: settings, path: args.setting });
return { found: matches.length > 0, value: matches.length > 0 ? matches[0] : args.fallback };
