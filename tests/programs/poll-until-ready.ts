// Start the job, look after it every few milliseconds, and report once its state says that it is done.
const path = `jobs/${args.job}.state`;
await mcp.fs.write({ path, content: "queued" });
const states = ["running", "running", "done"];
const seen: string[] = [];

const worker = async () => {
  const next = states.shift();
  if (next) await mcp.fs.write({ path, content: next });
};

let delay = 1;
for (let attempt = 0; attempt < 10; attempt++) {
  const { content: state } = await mcp.fs.read({ path });
  seen.push(state);
  if (state === "done") return { attempts: attempt + 1, seen, delay };
  await worker();
  await new Promise((resolve) => setTimeout(resolve, delay));
  delay = Math.min(delay * 2, 50);
}
throw new Error("the job never ended");
