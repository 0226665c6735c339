// Show in a log in which order the parts of the clean-up run.
const log = (line: string) => mcp.fs.write({ path: "order.log", content: `${line}\n`, append: true });

async function inner(): Promise<string> {
  try {
    await log("try");
    await mcp.fs.read({ path: "missing.txt" });
    await mcp.fs.write({ path: "unreachable.txt", content: "" });
    return "never";
  } catch {
    await log("catch");
    return "from catch";
  } finally {
    await log("finally");
  }
}

const value = await inner();
await log(`after: ${value}`);
const overridden = await (async () => {
  for (;;) {
    try {
      return "first";
    } finally {
      await log("leaving the loop");
      break;
    }
  }
  return "second";
})();
return { value, overridden, log: (await mcp.fs.read({ path: "order.log" })).content.trim().split("\n") };
