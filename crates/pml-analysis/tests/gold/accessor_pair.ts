// edges: A->B
// A value goes in through a setter and out through a getter.
const state = {
  value: "",
  get text() {
    return this.value.trim();
  },
  set text(next: string) {
    this.value = next.toLowerCase();
  },
};
state.text = (await mcp.fs.read({ path: args.path })).content; // @A
await mcp.ai.summarize({ text: state.text }); // @B
