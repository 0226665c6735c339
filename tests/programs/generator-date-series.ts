// List the payment dates of a contract that is paid on the last day it can be, every month from January 31.
function* steps(count: number): Generator<number> {
  for (let i = 0; i < count; i++) yield i;
}

const dates: { date: string; weekday: string }[] = [];
for (const i of steps(args.count)) {
  const added = await mcp.time.add({ time: args.start, months: args.every.months * i });
  dates.push({ date: added.time.slice(0, 10), weekday: added.weekday });
}
const weekend = dates.filter(({ weekday }) => weekday.startsWith("S"));
return { dates, weekend: weekend.length };
