// Dates, zones, units and money.

import { deepEqual } from 'node:assert/strict';

const dayCount = {
  id: 'days-between',
  first: { intent: 'how many days are between 2026-01-15 and 2026-04-01?', from: '2026-01-15', to: '2026-04-01' },
  second: { intent: 'how many days are between 2026-02-03 and 2026-09-30?', from: '2026-02-03', to: '2026-09-30' },
  plain: async (tool, { from, to }) => (await tool('time__diff', { from, to })).days,
  code: ({ from, to }) => `return (await mcp.time.diff({ from: "${from}", to: "${to}" })).days;`,
  check: (answer, { from, to }) => deepEqual(answer, (Date.parse(to) - Date.parse(from)) / 86_400_000),
};

const miles = {
  id: 'miles-to-kilometres',
  first: { intent: 'convert 26.2 miles to kilometres', miles: 26.2 },
  second: { intent: 'convert 13.1 miles to kilometres', miles: 13.1 },
  plain: async (tool, { miles }) => (await tool('math__evaluate', { expression: `${miles} * 1.609344` })).value,
  code: ({ miles }) =>
    `return (await mcp.math.evaluate({ expression: "miles * 1.609344", variables: { miles: ${miles} } })).value;`,
  check: (answer, { miles }) => deepEqual(answer.toFixed(6), (miles * 1.609344).toFixed(6)),
};

const wall = (time, zone) =>
  new Intl.DateTimeFormat('en-GB', { timeZone: zone, hour: '2-digit', minute: '2-digit' }).format(new Date(time));

const zones = {
  id: 'meeting-in-three-zones',
  first: {
    intent: 'what time is 2026-03-10 14:00 UTC in America/New_York, Asia/Tokyo and Australia/Sydney?',
    time: '2026-03-10 14:00',
    zones: ['America/New_York', 'Asia/Tokyo', 'Australia/Sydney'],
  },
  second: {
    intent: 'what time is 2026-07-02 09:30 UTC in America/Chicago, Asia/Kolkata and Africa/Nairobi?',
    time: '2026-07-02 09:30',
    zones: ['America/Chicago', 'Asia/Kolkata', 'Africa/Nairobi'],
  },
  plain: async (tool, { time, zones }) => {
    const times = {};
    for (const timezone of zones)
      times[timezone] = (await tool('time__convert', { time, timezone, pattern: '%H:%M' })).text;
    return times;
  },
  context: ({ time, zones }) => ({ time, zones }),
  code: () => `const times: Record<string, string> = {};
for (const timezone of args.zones) {
  times[timezone] = (await mcp.time.convert({ time: args.time, timezone, pattern: "%H:%M" })).text;
}
return times;`,
  check: (answer, { time, zones }) =>
    deepEqual(answer, Object.fromEntries(zones.map((zone) => [zone, wall(`${time.replace(' ', 'T')}Z`, zone)]))),
};

const savings = (capital, rate, years) =>
  Array.from({ length: years }, (_, i) => (capital * (1 + rate / 100) ** (i + 1)).toFixed(2));

const interest = {
  id: 'savings-by-year',
  first: {
    intent: 'what do 10000 euros at 3.5 % interest become after each of 10 years?',
    capital: 10000,
    rate: 3.5,
    years: 10,
  },
  second: {
    intent: 'what do 25000 euros at 4.2 % interest become after each of 12 years?',
    capital: 25000,
    rate: 4.2,
    years: 12,
  },
  plain: async (tool, { capital, rate, years }) => {
    const table = [];
    for (let year = 1; year <= years; year++) {
      const expression = `${capital} * (1 + ${rate} / 100) ^ ${year}`;
      table.push((await tool('math__evaluate', { expression })).value.toFixed(2));
    }
    return table;
  },
  code: ({ capital, rate, years }) => `const table: string[] = [];
for (let year = 1; year <= ${years}; year++) {
  const { value } = await mcp.math.evaluate({
    expression: "capital * (1 + rate / 100) ^ year",
    variables: { capital: ${capital}, rate: ${rate}, year },
  });
  table.push((await mcp.math.round({ value, digits: 2 })).text);
}
return table;`,
  check: (answer, { capital, rate, years }) => deepEqual(answer, savings(capital, rate, years)),
};

const weather = {
  id: 'weather-in-fahrenheit',
  first: { intent: 'what is the temperature in Chicago in Fahrenheit?', city: 'Chicago' },
  second: { intent: 'what is the temperature in New York in Fahrenheit?', city: 'New York' },
  plain: async (tool, { city }) => {
    const { temperature } = await tool('everything__get-structured-content', { location: city });
    return (await tool('math__evaluate', { expression: `${temperature} * 9 / 5 + 32` })).value;
  },
  code: ({ city }) => `const { temperature } = await mcp.everything["get-structured-content"]({ location: "${city}" });
return (await mcp.math.evaluate({ expression: "c * 9 / 5 + 32", variables: { c: temperature } })).value;`,
  check: (answer, { city }) => deepEqual(answer, { Chicago: 96.8, 'New York': 91.4 }[city]),
};

export const CALCULATIONS = [dayCount, miles, zones, interest, weather];
