// Scan the files for leaked keys and stop everything at the first one found.
let scanned = 0;
let leak: { path: string; pattern: string; text: string } | undefined;

scan: for (const path of args.files as string[]) {
  const { content } = await mcp.fs.read({ path });
  for (const pattern of args.patterns as string[]) {
    scanned += 1;
    const { matches } = await mcp.text.match({ text: content, pattern, limit: 1 });
    if (matches.length > 0) {
      leak = { path, pattern, text: matches[0].text };
      break scan;
    }
  }
}
return leak ? { leak, scanned } : { scanned };
