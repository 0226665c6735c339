// Find broken links in the documentation page.
const { content } = await mcp.fs.read({ path: args.doc });
const folder = args.doc.slice(0, args.doc.lastIndexOf("/") + 1);
const result = { ok: [] as string[], broken: [] as string[], external: 0 };

for (const { groups } of content.matchAll(/\[(?<label>[^\]]+)\]\((?<target>[^)#]+)(?:#[^)]*)?\)/g)) {
  const { label, target } = groups as { label: string; target: string };
  if (/^[a-z]+:/.test(target)) {
    result.external++;
    continue;
  }
  const { exists } = await mcp.fs.stat({ path: folder + target });
  (exists ? result.ok : result.broken).push(`${label} -> ${target}`);
}
return result;
