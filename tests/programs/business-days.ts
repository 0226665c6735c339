// When is the parcel there, four working days after April 2, with the Easter holidays off?
const holidays = new Set<string>(args.holidays);
let current: string = args.from;
let left: number = args.days;
const skipped: string[] = [];

do {
  const next = await mcp.time.add({ time: current, days: 1 });
  current = next.time.slice(0, 10);
  if (next.weekday === "Saturday" || next.weekday === "Sunday" || holidays.has(current)) {
    skipped.push(`${current} ${next.weekday}`);
    continue;
  }
  left -= 1;
} while (left > 0);

return { arrives: current, skipped };
