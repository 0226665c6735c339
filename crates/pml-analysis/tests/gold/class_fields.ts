// edges: A->D, B->C
// Members of an instance are separate.
class Report {
  title = "";
  private lines: string[] = [];
  add(line: string): this {
    this.lines.push(line);
    return this;
  }
  text(): string {
    return this.lines.join("\n");
  }
}
const report = new Report();
report.title = (await mcp.db.get({ table: "reports", id: args.id })).title; // @A
report.add((await mcp.ai.summarize({ text: args.text })).summary).add("end"); // @B
await mcp.chat.post({ channel: "reports", text: report.text() }); // @C
await mcp.chat.post({ channel: "titles", text: report.title }); // @D
