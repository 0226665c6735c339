// Who of the team has not done the training, who came from outside, and who is first in the alphabet of all?
async function* people(): AsyncGenerator<string> {
  yield* (await mcp.text.split({ text: (await mcp.fs.read({ path: "done.txt" })).content, separator: "\n", trim: true })).parts;
}
const done = new Set(await Array.fromAsync(people()));
const team = new Set<string>(args.team);
const visitors = new Set<string>(args.visitors);
const { promise, resolve } = Promise.withResolvers<string>();
setTimeout(resolve, 1, "checked");

const byState = Object.groupBy([...team], (name) => (done.has(name) ? "done" : "open"));
await mcp.fs.write({ path: "open.txt", content: (byState.open ?? []).join("\n") });
return {
  open: [...team.difference(done)],
  outside: [...visitors.difference(team)],
  both: [...team.intersection(visitors)],
  all: [...team.union(visitors)].toSorted(),
  first: team.values().filter((name) => name > "ann").take(1).toArray(),
  last: [...team].findLast((name) => done.has(name)),
  swapped: [...team].with(0, "zoe"),
  byState,
  state: await promise,
};
