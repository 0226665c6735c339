// More dates, money and numbers.

import { deepEqual } from 'node:assert/strict';

const day = 86_400_000;
const later = (date, days) => new Date(Date.parse(date) + days * day).toISOString().slice(0, 10);

const deadline = {
  id: 'date-after-days',
  first: { intent: 'which date is 90 days after 2026-02-14?', days: 90, date: '2026-02-14' },
  second: { intent: 'which date is 45 days after 2026-08-30?', days: 45, date: '2026-08-30' },
  plain: async (tool, { days, date }) => (await tool('time__add', { time: date, days })).time.slice(0, 10),
  code: ({ days, date }) => `const { time } = await mcp.time.add({ time: "${date}", days: ${days} });
return time.slice(0, 10);`,
  check: (answer, { days, date }) => deepEqual(answer, later(date, days)),
};

const monthly = (loan, rate, years) => {
  const r = rate / 1200;
  return ((loan * r) / (1 - (1 + r) ** (-12 * years))).toFixed(2);
};

const loan = {
  id: 'monthly-payment',
  first: { intent: 'what is the monthly payment for a loan of 20000 at 4 % over 5 years?', loan: 20000, rate: 4, years: 5 },
  second: { intent: 'what is the monthly payment for a loan of 7500 at 6 % over 3 years?', loan: 7500, rate: 6, years: 3 },
  plain: async (tool, { loan: amount, rate, years }) => {
    const expression = `${amount} * (${rate} / 1200) / (1 - (1 + ${rate} / 1200) ^ (0 - 12 * ${years}))`;
    return (await tool('math__evaluate', { expression })).value.toFixed(2);
  },
  code: ({ loan: amount, rate, years }) => `const { value } = await mcp.math.evaluate({
  expression: "loan * r / (1 - (1 + r) ^ (0 - n))",
  variables: { loan: ${amount}, r: ${rate} / 1200, n: 12 * ${years} },
});
return (await mcp.math.round({ value, digits: 2 })).text;`,
  check: (answer, { loan: amount, rate, years }) => deepEqual(answer, monthly(amount, rate, years)),
};

const exchange = {
  id: 'exchange-money',
  first: { intent: 'how many euros are 250 dollars at a rate of 0.92?', dollars: 250, rate: 0.92 },
  second: { intent: 'how many euros are 1340 dollars at a rate of 0.88?', dollars: 1340, rate: 0.88 },
  plain: async (tool, { dollars, rate }) => (await tool('math__evaluate', { expression: `${dollars} * ${rate}` })).value.toFixed(2),
  code: ({ dollars, rate }) => `const { value } = await mcp.math.evaluate({ expression: "${dollars} * ${rate}" });
return (await mcp.math.round({ value, digits: 2 })).text;`,
  check: (answer, { dollars, rate }) => deepEqual(answer, (dollars * rate).toFixed(2)),
};

const weekday = (date) => new Intl.DateTimeFormat('en-GB', { weekday: 'long', timeZone: 'UTC' }).format(new Date(date));

const weekdays = {
  id: 'weekdays-of-two-dates',
  first: { intent: 'on which weekdays do 2026-05-01 and 2026-12-25 fall?', one: '2026-05-01', other: '2026-12-25' },
  second: { intent: 'on which weekdays do 2027-01-06 and 2027-08-15 fall?', one: '2027-01-06', other: '2027-08-15' },
  plain: async (tool, { one, other }) => [
    (await tool('time__convert', { time: one })).weekday,
    (await tool('time__convert', { time: other })).weekday,
  ],
  code: ({ one, other }) => `const [one, other] = await Promise.all([mcp.time.convert({ time: "${one}" }), mcp.time.convert({ time: "${other}" })]);
return [one.weekday, other.weekday];`,
  check: (answer, { one, other }) => deepEqual(answer, [weekday(one), weekday(other)]),
};

const statistics = {
  id: 'mean-and-median',
  first: { intent: 'what are mean and median of 4, 8, 15, 16, 23 and 42?', numbers: [4, 8, 15, 16, 23, 42] },
  second: { intent: 'what are mean and median of 7, 11, 12, 30 and 5?', numbers: [7, 11, 12, 30, 5] },
  plain: async (tool, { numbers }) => {
    const { mean, median } = await tool('math__statistics', { values: numbers });
    return { mean, median };
  },
  context: ({ numbers }) => ({ numbers }),
  code: () => `const { mean, median } = await mcp.math.statistics({ values: args.numbers });
return { mean, median };`,
  check: (answer, { numbers }) => {
    const sorted = [...numbers].sort((a, b) => a - b);
    const middle = (sorted[Math.ceil(sorted.length / 2) - 1] + sorted[Math.floor(sorted.length / 2)]) / 2;
    deepEqual(answer, { mean: sorted.reduce((a, b) => a + b) / sorted.length, median: middle });
  },
};

const sum = {
  id: 'somme-de-deux-nombres',
  first: { intent: 'quelle est la somme de 120 et 345 ?', one: 120, other: 345 },
  second: { intent: 'quelle est la somme de 77 et 1024 ?', one: 77, other: 1024 },
  plain: async (tool, { one, other }) => {
    const text = await tool('everything__get-sum', { a: one, b: other });
    return Number(text.match(/is (\d+)/)[1]);
  },
  code: ({ one, other }) => `const texte = await mcp.everything["get-sum"]({ a: ${one}, b: ${other} });
return Number(texte.match(/is (\\d+)/)[1]);`,
  check: (answer, { one, other }) => deepEqual(answer, one + other),
};

export const EVERYDAY = [deadline, loan, exchange, weekdays, statistics, sum];
