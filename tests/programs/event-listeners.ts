// Watch the sensor readings: an alarm file for each over 30, and statistics; then switch the alarm off and take one test reading more.
type Handler = (value: string) => void | Promise<void>;
class Bus {
  readonly #handlers = new Map<string, Set<Handler>>();
  on(event: string, handler: Handler): () => void {
    const set = this.#handlers.get(event) ?? new Set<Handler>();
    this.#handlers.set(event, set.add(handler));
    return () => void set.delete(handler);
  }
  async emit(event: string, value: string): Promise<number> {
    const handlers = [...(this.#handlers.get(event) ?? [])];
    for (const handler of handlers) await handler(value);
    return handlers.length;
  }
}

const bus = new Bus();
const readings: number[] = [];
let alarms = 0;
bus.on("temp", (value) => void readings.push(Number(value)));
const off = bus.on("temp", async (value) => {
  if (Number(value) <= 30) return;
  alarms++;
  await mcp.fs.write({ path: `alarms/${alarms}.txt`, content: `too hot: ${value}` });
  if (alarms === 1) bus.on("door", async (how) => void (await mcp.fs.write({ path: "door.txt", content: how })));
});

let unheard = 0;
for (const line of args.lines as string[]) {
  const [event, value = ""] = line.split(" ");
  if ((await bus.emit(event, value)) === 0) unheard++;
}
off();
await bus.emit("temp", "99");
const { mean, max } = await mcp.math.statistics({ values: readings });
return { mean, max, alarms, unheard };
