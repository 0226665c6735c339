// Follow the log in chunks until the first error line, and read no further than needed.
let closed = false;

async function* lines(path: string, chunk: number): AsyncGenerator<string, void, void> {
  let rest = "";
  let offset: number | null = 0;
  try {
    while (offset !== null) {
      const page: any = await mcp.fs.read({ path, offset, limit: chunk });
      const parts = (rest + page.content).split("\n");
      rest = parts.pop()!;
      yield* parts;
      offset = page.nextOffset;
    }
    if (rest) yield rest;
  } finally {
    closed = true;
    await mcp.fs.write({ path: "tail.state", content: "closed" });
  }
}

const seen: string[] = [];
for await (const line of lines(args.path, 20)) {
  seen.push(line);
  if (line.startsWith(args.stopAt)) break;
}
return { seen, closed, state: (await mcp.fs.read({ path: "tail.state" })).content };
