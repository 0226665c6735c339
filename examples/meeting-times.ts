// Finds out when a meeting is for everybody, and whom it would get out of bed.
const people: { name: string; zone: string }[] = args.people;
const start = await mcp.time.parse({ text: args.start, pattern: "%d.%m.%Y %H:%M", timezone: args.zone });
const end = await mcp.time.add({ time: start.time, timezone: args.zone, minutes: args.minutes ?? 60 });

const local = await Promise.all(
  people.map(async ({ name, zone }) => {
    const [begins, ends] = await Promise.all([
      mcp.time.convert({ time: start.time, timezone: zone, pattern: "%a %H:%M" }),
      mcp.time.convert({ time: end.time, timezone: zone, pattern: "%H:%M" }),
    ]);
    const hour = Number(begins.time.slice(11, 13));
    return { name, when: `${begins.text} to ${ends.text}`, asleep: hour < 7 || hour >= 22 };
  }),
);

const asleep = local.filter((person) => person.asleep).map((person) => person.name);
const until = await mcp.time.diff({ from: (await mcp.time.now({})).time, to: start.time });
return { inDays: until.days, local, asleep };
