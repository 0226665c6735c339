// Find a setting in the most specific configuration that has it: local, then team, then base.
type Attempt = { source: string; outcome: "used" | "lacks the key" | "unreadable" };
const attempts: Attempt[] = [];

async function lookup(source: string): Promise<unknown> {
  try {
    const { content } = await mcp.fs.read({ path: `config/${source}.json` });
    const { data } = await mcp.json.parse({ json: content });
    const { matches } = await mcp.json.query({ data, path: `/${args.key}` });
    attempts.push({ source, outcome: matches.length ? "used" : "lacks the key" });
    return matches[0];
  } catch {
    attempts.push({ source, outcome: "unreadable" });
    return undefined;
  }
}

const value = (await lookup("local")) ?? (await lookup("team")) ?? (await lookup("base")) ?? (await lookup("never"));
return { value, attempts };
