// Waits for a file that another program is about to write, a little longer each time.
const attempts = args.attempts ?? 5;
let waitMs = 500;

for (let attempt = 1; attempt <= attempts; attempt++) {
  const found = await mcp.fs.stat({ path: args.path });
  if (found.exists && found.type === "file") {
    const file = await mcp.fs.read({ path: args.path });
    try {
      const parsed = await mcp.json.parse({ json: file.content });
      return { attempt, data: parsed.data };
    } catch (error) {
      console.log(`attempt ${attempt}: not complete yet: ${error}`);
    }
  }
  pml.progress(attempt, attempts, `waiting ${waitMs} ms for ${args.path}`);
  await new Promise((resolve) => setTimeout(resolve, waitMs));
  waitMs = Math.min(waitMs * 2, 8000);
}
throw new Error(`${args.path} did not come in ${attempts} attempts`);
