// Do the steps with a lock file in place; whatever happens, the lock must be gone afterwards.
const lock = "work.lock";
async function withLock<T>(work: () => Promise<T>): Promise<T> {
  await mcp.fs.create({ path: lock, content: "locked" });
  try {
    return await work();
  } finally {
    await mcp.fs.delete({ path: lock });
  }
}

await withLock(async () => {
  for (let step = 1; ; step++) {
    if (step >= args.limit) throw new RangeError(`step ${step} is one too many`);
    await mcp.fs.write({ path: "steps.log", content: `${step};`, append: true });
  }
});
