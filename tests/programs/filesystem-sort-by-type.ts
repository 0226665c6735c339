// Tidy the downloads: one folder per file type, files without a type stay where they are.
const { content } = await mcp.filesystem.list_directory({ path: args.dir });
const moved: Record<string, string[]> = {};
for (const line of content.split("\n")) {
  const [, kind, name] = /^\[(FILE|DIR)\] (.+)$/.exec(line) ?? [];
  if (kind !== "FILE") continue;
  const dot = name.lastIndexOf(".");
  if (dot <= 0) continue;
  const type = name.slice(dot + 1).toLowerCase();
  if (!(type in moved)) {
    await mcp.filesystem.create_directory({ path: `${args.dir}/${type}` });
    moved[type] = [];
  }
  await mcp.filesystem.move_file({ source: `${args.dir}/${name}`, destination: `${args.dir}/${type}/${name}` });
  moved[type].push(name);
}
return moved;
