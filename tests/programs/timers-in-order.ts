// Write three log lines with pauses between them; the one with the shortest pause comes first.
const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const order: string[] = [];

await Promise.all([
  sleep(400).then(() => order.push("slow")),
  sleep(200).then(() => order.push("middle")),
  (async () => {
    await sleep(0);
    order.push("fast");
  })(),
]);

let ticks = 0;
await new Promise<void>((resolve) => {
  const handle = setInterval(() => {
    ticks += 1;
    if (ticks === 3) {
      clearInterval(handle);
      resolve();
    }
  }, 5);
});

const cancelled = setTimeout(() => order.push("never"), 10);
clearTimeout(cancelled);
await sleep(30);
for (const line of order) {
  await mcp.fs.write({ path: "order.log", content: `${line}\n`, append: true });
}
return { order, ticks };
