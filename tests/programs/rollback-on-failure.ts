// Apply all these changes or none: if one fails, put everything back as it was.
type Change = { path: string; content: string };
const undo: (() => Promise<unknown>)[] = [];

async function apply({ path, content }: Change): Promise<void> {
  const before = await mcp.fs.stat({ path });
  if (before.exists) {
    const old = await mcp.fs.read({ path });
    undo.push(() => mcp.fs.write({ path, content: old.content }));
  } else {
    undo.push(() => mcp.fs.delete({ path }));
  }
  await mcp.fs.write({ path, content });
}

let applied = 0;
try {
  for (const change of args.changes as Change[]) {
    await apply(change);
    applied++;
  }
  return { committed: true, applied };
} catch (error) {
  for (const step of undo.reverse()) await step();
  return { committed: false, applied, undone: undo.length, reason: (error as Error).name };
}
