// What time is the meeting for everybody, on the morning the clocks change in Paris?
const start = await mcp.time.convert({ time: args.start, from: args.zone, timezone: "UTC" });
const rows = await Promise.all(
  (args.people as { name: string; zone: string }[]).map(async ({ name, zone }) => {
    const local = await mcp.time.convert({ time: start.time, timezone: zone, pattern: "%a %H:%M" });
    return { name, local: local.text, offset: local.time.slice(-6) };
  }),
);
const dayBefore = await mcp.time.add({ time: start.time, timezone: args.zone, days: -1 });
const gap = await mcp.time.diff({ from: dayBefore.time, to: start.time });
return { utc: start.text, rows, hoursSinceSameTimeYesterday: gap.seconds / 3600 };
