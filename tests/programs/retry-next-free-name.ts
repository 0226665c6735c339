// Save the report without overwriting anything: try report.txt, report-1.txt, and so on.
const tried: string[] = [];
for (let attempt = 0; attempt < 10; attempt++) {
  const path = `out/${args.name}${attempt === 0 ? "" : `-${attempt}`}.txt`;
  tried.push(path);
  try {
    const created = await mcp.fs.create({ path, content: args.content });
    return { saved: created.path, tried };
  } catch (error) {
    if (!String(error).includes("exists already")) throw error;
  }
}
throw new Error("no free name in ten attempts");
