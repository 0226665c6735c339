// Raise the version in every file that mentions it: preview first, then edit, then check with another tool.
const { matches } = await mcp.fs.search({ contains: args.from });
const edited: { path: string; plus: number; minus: number }[] = [];
for (const { path, text } of matches as { path: string; text: string }[]) {
  const edits = [{ oldText: text, newText: text.replaceAll(args.from, args.to) }];
  const preview = await mcp.filesystem.edit_file({ path, edits, dryRun: true });
  const lines = preview.content.split("\n") as string[];
  const plus = lines.filter((line) => /^\+(?!\+\+)/.test(line)).length;
  const minus = lines.filter((line) => /^-(?!--)/.test(line)).length;
  if (plus !== 1 || minus !== 1) throw new Error(`unexpected edit of ${path}`);
  await mcp.filesystem.edit_file({ path, edits });
  edited.push({ path, plus, minus });
}
const left = await mcp.fs.search({ contains: args.from });
return { edited, left: left.matches.length };
