// For each log give its first and last line and whether it ended well; a missing log is not well.
const report: Record<string, { first: string | null; last: string | null; ok: boolean }> = {};
await Promise.all(
  (args.files as string[]).map(async (path) => {
    report[path] = { first: null, last: null, ok: false };
    try {
      const head = await mcp.filesystem.read_text_file({ path, head: 1 });
      const tail = await mcp.filesystem.read_text_file({ path, tail: 2 });
      const last = tail.content.trim().split("\n").pop()!;
      Object.assign(report[path], { first: head.content.trim(), last, ok: last.endsWith("ok") });
    } catch (error) {
      if ((error as Error).name !== "ToolError") throw error;
    }
  }),
);
return Object.fromEntries(Object.entries(report).sort(([a], [b]) => (a < b ? -1 : 1)));
