// Turn the ini file into one JSON file per section, with numbers as numbers.
const { content } = await mcp.fs.read({ path: "app.ini" });
const sections: { [section: string]: { [key: string]: string | number } } = {};
let current = "";
for (const raw of content.split(/\r?\n/)) {
  const line = raw.trim();
  if (!line || line.startsWith(";")) continue;
  const header = line.match(/^\[(?<name>[^\]]+)\]$/);
  if (header?.groups) {
    current = header.groups.name;
    sections[current] = {};
    continue;
  }
  const [key, ...rest] = line.split("=");
  const value = rest.join("=").trim();
  sections[current][key.trim()] = /^\d+$/.test(value) ? parseInt(value, 10) : value;
}

const written: Record<string, number> = {};
for (const name in sections) {
  const { json } = await mcp.json.stringify({ data: sections[name] });
  written[name] = (await mcp.fs.write({ path: `${name}.json`, content: json })).size;
}
return { sections, written };
