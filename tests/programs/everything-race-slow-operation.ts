// Start the long operation; if it is not ready in time, note that and go on with something quick instead.
await mcp.everything.echo({ message: "warm-up" });
const slow = mcp.everything.trigger_long_running_operation({ duration: 3, steps: 1 });
const late = new Promise<"late">((resolve) => setTimeout(() => resolve("late"), args.patienceMs));
const first = await Promise.race([slow, late]);
if (first === "late") {
  const quick = await mcp.everything.trigger_long_running_operation({ duration: 0.1, steps: 1 });
  await mcp.fs.write({ path: "outcome.txt", content: "quick" });
  return { first, quick };
}
await mcp.fs.write({ path: "outcome.txt", content: "slow" });
return { first };
