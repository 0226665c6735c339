// Ask for the weather in all three cities at once; pick the warmest, and pack an umbrella where it rains.
interface Weather { temperature: number; conditions: string; humidity: number }
const cities = ["New York", "Chicago", "Los Angeles"] as const;
const weather = await Promise.all(
  cities.map(async (location) => ({ location, ...((await mcp.everything.get_structured_content({ location })) as Weather) })),
);
const warmest = weather.reduce((a, b) => (b.temperature > a.temperature ? b : a));
for (const { location, conditions } of weather) {
  if (/rain|drizzle/i.test(conditions)) {
    await mcp.fs.write({ path: "packing.txt", content: `umbrella for ${location}\n`, append: true });
  }
}
const { mean } = await mcp.math.statistics({ values: weather.map((city) => city.humidity) });
return { warmest: warmest.location, weather, humidity: (await mcp.math.round({ value: mean, digits: 1 })).value };
