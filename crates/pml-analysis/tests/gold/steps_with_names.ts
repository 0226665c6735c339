// edges: A->D, B->D, C->B
// Steps of a list under a condition; what each gives is kept with the others.
const before = await mcp.config.load({ name: args.name }); // @C
const steps = [
  { name: "files", run: () => mcp.fs.list({ path: args.path }) }, // @A
  { name: "rows", run: () => mcp.db.query({ sql: before.sql }) }, // @B
];
const results: unknown[] = [];
for (const { name, run } of steps) {
  if (name !== args.skip) results.push(await run());
}
await mcp.queue.publish({ topic: "done", message: results }); // @D
