// Does the server see a PATH, and does it see nothing it should not? Tell me only yes or no.
const environment = await mcp.everything.get_env({});
const names = Object.keys(environment);
let echoed = await mcp.everything.echo({ message: "[1, 2]" });
const parsed = await mcp.json.parse({ json: echoed.replace(/^Echo: /, "") });
return {
  object: typeof environment === "object",
  path: names.includes("PATH"),
  secrets: names.filter((name) => /TOKEN|SECRET|PASSWORD/.test(name)).length,
  text: typeof echoed,
  sum: parsed.data.reduce((a: number, b: number) => a + b),
};
