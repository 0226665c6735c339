// This export is not quite JSON. Try to repair it step by step until it parses, and store the clean version.
const repairs: [string, { find: string; with: string; regex?: boolean }][] = [
  ["comments", { find: "(?m)^\\s*//.*$", with: "", regex: true }],
  ["quotes", { find: "'", with: '"' }],
  ["trailing commas", { find: ",\\s*([\\]}])", with: "$1", regex: true }],
];

let { content: text } = await mcp.fs.read({ path: "export.json" });
const applied: string[] = [];
for (;;) {
  try {
    const { data } = await mcp.json.parse({ json: text });
    await mcp.fs.write({ path: "clean.json", content: JSON.stringify(data) });
    return { applied, data };
  } catch (error) {
    const repair = repairs.shift();
    if (!repair) throw error;
    const [name, rule] = repair;
    const { text: repaired, replaced } = await mcp.text.replace({ text, ...rule });
    text = repaired;
    applied.push(`${name} (${replaced})`);
  }
}
