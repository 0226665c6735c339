// edges: A->C, B->D
// Two instances of one class do not mix.
class Box {
  constructor(private readonly value: string) {}
  open(): string {
    return `[${this.value}]`;
  }
}
const left = new Box((await mcp.fs.read({ path: args.left })).content); // @A
const right = new Box((await mcp.fs.read({ path: args.right })).content); // @B
await mcp.ai.summarize({ text: left.open() }); // @C
await mcp.ai.summarize({ text: right.open() }); // @D
