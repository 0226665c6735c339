// When does a person born on February 29 celebrate each year, and which birthdays are real ones?
const celebrations: string[] = [];
const real: number[] = [];
for (let year = 2025; year < args.until; year++) {
  const { time } = await mcp.time.add({ time: args.born, years: year - 2024 });
  celebrations.push(time.slice(0, 10));
  const date = new Date(time);
  if (date.getUTCMonth() === 1 && date.getUTCDate() === 29) real.push(year);
}
return { celebrations, real };
