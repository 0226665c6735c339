// Bring these dates into one form and in order; each may be written in another way, and some may be wrong.
async function read(text: string): Promise<string | undefined> {
  for (const pattern of args.patterns as string[]) {
    try {
      return (await mcp.time.parse({ text, pattern })).time.slice(0, 10);
    } catch (error) {
      console.log(`${text} is not ${pattern}: ${error}`);
    }
  }
}

const dates: string[] = [];
const unreadable: string[] = [];
for (const text of args.dates as string[]) {
  const date = await read(text);
  if (date) dates.push(date);
  else unreadable.push(text);
}
dates.sort((a, b) => Date.parse(a) - Date.parse(b));
const { days } = await mcp.time.diff({ from: dates[0], to: dates[dates.length - 1] });
await mcp.fs.write({ path: "dates.txt", content: dates.join("\n") });
return { dates, unreadable, days };
