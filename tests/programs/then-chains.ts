// Read the first settings file or else the second, in the old style without await.
const seen: string[] = [];
return mcp.fs
  .read({ path: args.first })
  .catch((error: Error) => {
    seen.push(error.name);
    return mcp.fs.read({ path: args.second });
  })
  .then(({ content }: { content: string }) => mcp.json.parse({ json: content }))
  .then(
    ({ data }: { data: { level: number } }) => ({ level: data.level, seen }),
    () => ({ level: 0, seen }),
  )
  .finally(() => mcp.fs.write({ path: "read.log", content: "done" }))
  .then((result: { level: number; seen: string[] }) => ({ ...result, level: result.level * 10 }));
