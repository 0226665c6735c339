// Normalise these timestamps to UTC and tell which are no dates; check the good ones against the time tool.
const good: { input: string; utc: string; weekday: string; agree: boolean }[] = [];
const bad: string[] = [];
for (const input of args.dates as string[]) {
  try {
    const told = await mcp.time.convert({ time: input });
    const date = new Date(input);
    good.push({ input, utc: date.toISOString(), weekday: told.weekday, agree: date.getTime() === told.unixMs });
  } catch (error) {
    bad.push(input);
  }
}
const span = new Date(good[0].utc).getTime() - Date.UTC(2000, 0, 1, 0, 0, 0, 123);
const { days } = await mcp.time.diff({ from: good[1].utc, to: good[0].utc });
return { good, bad, days, sameDays: Math.floor(span / 86_400_000) === days };
