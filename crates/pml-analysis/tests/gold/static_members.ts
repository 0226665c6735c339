// edges: A->B
// A class keeps what it collects in a static member.
class Log {
  static lines: string[] = [];
  static add(line: string): void {
    Log.lines.push(line);
  }
}
Log.add((await mcp.ai.summarize({ text: args.text })).summary); // @A
await mcp.fs.write({ path: args.out, content: Log.lines.join("\n") }); // @B
