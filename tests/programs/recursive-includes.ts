// Put the book together: replace every @include line by the file it names; mark missing files and loops.
const problems: string[] = [];

async function expand(path: string, trail: readonly string[]): Promise<string[]> {
  if (trail.includes(path)) {
    problems.push(`loop: ${[...trail, path].join(" > ")}`);
    return [`[loop ${path}]`];
  }
  let content: string;
  try {
    ({ content } = await mcp.fs.read({ path }));
  } catch {
    problems.push(`missing: ${path}`);
    return [`[missing ${path}]`];
  }
  const lines: string[] = [];
  for (const line of content.split("\n").filter(Boolean)) {
    const include = /^@include\s+(.+)$/.exec(line);
    lines.push(...(include ? await expand(include[1], [...trail, path]) : [line]));
  }
  return lines;
}

const lines = await expand(args.main, []);
await mcp.fs.write({ path: "out/book.md", content: lines.join("\n") + "\n" });
return { lines, problems };
