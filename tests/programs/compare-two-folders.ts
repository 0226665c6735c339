// What changed between the two versions of the folder? Give added, removed and changed files with their diff.
const names = async (dir: string): Promise<string[]> =>
  (await mcp.fs.list({ path: dir, recursive: true })).entries.map((entry: { path: string }) => entry.path.slice(dir.length + 1));

const [before, after] = [await names(args.old), await names(args.new)];
const added = after.filter((name) => !before.includes(name));
const removed = before.filter((name) => !after.includes(name));
const changed: { name: string; added: number; removed: number; diff: string }[] = [];
let equal = 0;
for (const name of before.filter((name) => after.includes(name))) {
  const [a, b] = await Promise.all([args.old, args.new].map((dir) => mcp.fs.read({ path: `${dir}/${name}` })));
  if (a.content === b.content) {
    equal++;
    continue;
  }
  changed.push({ name, ...(await mcp.text.diff({ before: a.content, after: b.content, context: 0 })) });
}
return { added, removed, changed, equal };
