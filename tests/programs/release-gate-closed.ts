// Mark version 2.0.0 for release only if the changelog mentions it; otherwise write down what is missing.
const missing: string[] = [];

const changelog = await mcp.fs.read({ path: "CHANGELOG.md" });
const found = await mcp.text.match({ text: changelog.content, pattern: "(?m)^## (\\S+)" });
if (!found.matches.some((match: { groups: string[] }) => match.groups[0] === args.version)) {
  missing.push(`CHANGELOG.md has no section ${args.version}`);
}

const manifest = await mcp.fs.read({ path: "package.json" });
const version = (await mcp.json.query({ data: JSON.parse(manifest.content), path: "/version" })).matches[0];
if (version !== args.version) {
  missing.push(`package.json says ${version}`);
}

if (missing.length === 0) {
  await mcp.fs.write({ path: "RELEASE", content: args.version });
  return { released: true };
} else {
  const { text } = await mcp.text.join({ parts: missing.map((line) => `- [ ] ${line}`), separator: "\n" });
  await mcp.fs.write({ path: "OPEN.md", content: `${text}\n` });
  return { released: false, missing };
}
