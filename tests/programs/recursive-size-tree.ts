// Show me the folder as a tree with the size of everything below each directory.
interface Tree { name: string; size: number; children?: Tree[] }

async function walk(path: string, type: string, size: number | null): Promise<Tree> {
  const name = path.split("/").at(-1)!;
  if (type !== "directory") return { name, size: size ?? 0 };
  const { entries } = await mcp.fs.list({ path });
  const children: Tree[] = [];
  for (const entry of entries) {
    children.push(await walk(entry.path, entry.type, entry.size));
  }
  return { name, size: children.reduce((sum, child) => sum + child.size, 0), children };
}

const start = await mcp.fs.stat({ path: args.root });
return start.exists ? await walk(args.root, start.type, start.size) : null;
