// Collects the notes of a release into its changelog, with a class that keeps the sections.
class Changelog {
  private sections = new Map<string, string[]>();

  constructor(readonly version: string) {}

  add(kind: string, line: string): void {
    const lines = this.sections.get(kind) ?? [];
    lines.push(line);
    this.sections.set(kind, lines);
  }

  async render(): Promise<string> {
    const today = await mcp.time.now({});
    const parts = [`## ${this.version} (${today.time.slice(0, 10)})`];
    for (const [kind, lines] of this.sections) {
      const title = await mcp.text.case({ text: kind, to: "title" });
      parts.push(`### ${title.text}`, ...lines.map((line) => `- ${line}`));
    }
    const joined = await mcp.text.join({ parts, separator: "\n" });
    return joined.text;
  }
}

const kindOf = (path: string) => (path.includes("fix") ? "fixed" : "added");

const changelog = new Changelog(args.version);
const { matches } = await mcp.fs.search({ path: "changes", pattern: "*.md" });
for (const { path } of matches) {
  const note = await mcp.fs.read({ path });
  changelog.add(kindOf(path), note.content.trim());
}

const before = await mcp.fs.stat({ path: "CHANGELOG.md" });
const old = before.exists ? (await mcp.fs.read({ path: "CHANGELOG.md" })).content : "";
const fresh = await changelog.render();
await mcp.fs.write({ path: "CHANGELOG.md", content: `${fresh}\n\n${old}` });

for (const { path } of matches) {
  await mcp.fs.delete({ path });
}
return { version: args.version, notes: matches.length };
