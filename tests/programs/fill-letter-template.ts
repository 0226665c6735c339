// Write one reminder letter per person from the template; tell me which placeholders stay open.
const { content: template } = await mcp.fs.read({ path: "letter.txt" });
const open = new Set<string>();

for (const person of args.people) {
  const values: Record<string, string | undefined> = {
    name: person.name,
    amount: (await mcp.math.round({ value: person.amount, digits: 2 })).text,
    due: (await mcp.time.convert({ time: "2026-09-01", pattern: "%d %B %Y" })).text,
  };
  const letter = template.replace(/\{\{\s*(\w+)\s*\}\}/g, (whole: string, key: string) => {
    if (values[key] === undefined) open.add(key);
    return values[key] ?? whole;
  });
  await mcp.fs.write({ path: `letters/${person.name}.txt`, content: letter });
}
return { letters: (await mcp.fs.list({ path: "letters" })).entries.map((entry: any) => entry.path), open: [...open] };
