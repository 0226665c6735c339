// Dates, times and time zones.

export const DATES = [
  {
    id: 'days-after',
    first: ['what date is 45 days after 2026-03-01', { days: 45, date: '2026-03-01' }],
    code: ({ days, date }) => `const { time } = await mcp.time.add({ time: "${date}", days: ${days} });
return time.slice(0, 10);`,
    seconds: [
      ['close', 'what date is 10 days after 2026-12-28', { days: 10, date: '2026-12-28' }],
      ['medium', '2026-02-10 plus 30 days is which date', { days: 30, date: '2026-02-10' }, { note: 'order of values changed' }],
      ['medium fr', 'quelle date est 14 jours après 2026-06-20', { days: 14, date: '2026-06-20' }],
    ],
    distractors: [
      ['operation', 'what date is 10 months after 2026-12-28'],
      ['contradiction', 'what date is 10 days before 2026-12-28'],
    ],
    again: [['what date is 7 days after 2026-08-27', { days: 7, date: '2026-08-27' }]],
  },
  {
    id: 'weeks-before',
    first: ['which date was 3 weeks before 2026-05-01', { weeks: 3, date: '2026-05-01' }],
    code: ({ weeks, date }) => `const earlier = await mcp.time.add({ time: "${date}", weeks: -${weeks} });
return earlier.time.split("T")[0];`,
    seconds: [
      ['close', 'which date was 5 weeks before 2026-09-10', { weeks: 5, date: '2026-09-10' }],
      ['medium', '2 weeks before 2026-01-08, which date was it', { weeks: 2, date: '2026-01-08' }],
      ['medium fr', 'quelle date était 4 semaines avant 2026-03-15', { weeks: 4, date: '2026-03-15' }],
    ],
    distractors: [
      ['contradiction', 'which date was 5 weeks after 2026-09-10'],
      ['operation', 'which date was 5 quarters before 2026-09-10'],
    ],
  },
  {
    id: 'weekday-of',
    first: ['on which weekday does 2026-07-14 fall', { date: '2026-07-14' }],
    code: ({ date }) => `return (await mcp.time.convert({ time: "${date}" })).weekday;`,
    seconds: [
      ['close', 'on which weekday does 2026-12-25 fall', { date: '2026-12-25' }],
      ['medium', 'which weekday is 2027-01-01', { date: '2027-01-01' }],
      ['medium fr', 'quel jour de la semaine tombe 2026-05-08', { date: '2026-05-08' }],
    ],
    distractors: [
      ['operation', 'in which week does 2026-12-25 fall'],
      ['operation', 'is 2026-12-25 a holiday'],
    ],
  },
  {
    id: 'utc-in-zone',
    first: ['what time is 2026-03-10 14:00 UTC in Asia/Tokyo', { time: '2026-03-10 14:00', zone: 'Asia/Tokyo' }],
    code: ({ time, zone }) => `const there = await mcp.time.convert({ time: "${time}", timezone: "${zone}", pattern: "%H:%M" });
return there.text;`,
    seconds: [
      ['close', 'what time is 2026-07-02 09:30 UTC in America/Chicago', { time: '2026-07-02 09:30', zone: 'America/Chicago' }],
      ['medium', 'in Asia/Kolkata, what time is 2026-01-05 18:00 UTC', { time: '2026-01-05 18:00', zone: 'Asia/Kolkata' }, { note: 'order of values changed' }],
      ['medium fr', 'quelle heure est-il en Africa/Nairobi à 2026-04-04 07:15 UTC', { time: '2026-04-04 07:15', zone: 'Africa/Nairobi' }],
    ],
    distractors: [
      ['contradiction', 'what time is 2026-07-02 09:30 America/Chicago in UTC'],
      ['operation', 'which date is 2026-07-02 23:30 UTC in Asia/Tokyo'],
    ],
  },
  {
    id: 'zone-to-zone',
    first: [
      'convert 09:30 on 2026-06-01 from Europe/Paris to America/New_York',
      { clock: '09:30', date: '2026-06-01', from: 'Europe/Paris', to: 'America/New_York' },
    ],
    code: ({ clock, date, from, to }) => `const moved = await mcp.time.convert({
  time: "${date} ${clock}",
  from: "${from}",
  timezone: "${to}",
  pattern: "%H:%M",
});
return moved.text;`,
    seconds: [
      ['close', 'convert 18:00 on 2026-11-20 from Asia/Tokyo to Europe/London', { clock: '18:00', date: '2026-11-20', from: 'Asia/Tokyo', to: 'Europe/London' }],
      ['medium', 'convert 07:45 to Europe/Paris from America/Chicago on 2026-02-02', { clock: '07:45', date: '2026-02-02', from: 'America/Chicago', to: 'Europe/Paris' }, { note: 'order of values changed' }],
      ['medium fr', 'convertis 12:00 le 2026-08-08 de Europe/Rome à Asia/Dubai', { clock: '12:00', date: '2026-08-08', from: 'Europe/Rome', to: 'Asia/Dubai' }],
    ],
    distractors: [
      ['missing', 'convert 18:00 on 2026-11-20 to Europe/London'],
      ['operation', 'how far is it on 2026-11-20 at 18:00 from Asia/Tokyo to Europe/London'],
    ],
  },
  {
    id: 'german-date',
    first: ['write 2026-03-09 with dots, day first', { date: '2026-03-09' }],
    code: ({ date }) => `return (await mcp.time.convert({ time: "${date}", pattern: "%d.%m.%Y" })).text;`,
    seconds: [
      ['close', 'write 2025-12-31 with dots, day first', { date: '2025-12-31' }],
      ['medium fr', "écris 2026-10-04 avec des points, le jour d'abord", { date: '2026-10-04' }],
    ],
    distractors: [
      ['contradiction', 'write 2025-12-31 with dots, month first'],
      ['operation', 'write 2025-12-31 with slashes, day first'],
    ],
  },
  {
    id: 'iso-date',
    first: ['turn the date 24/12/2026 into ISO form', { text: '24/12/2026' }],
    code: ({ text }) => `const parsed = await mcp.time.parse({ text: "${text}", pattern: "%d/%m/%Y" });
return parsed.time.slice(0, 10);`,
    seconds: [
      ['close', 'turn the date 01/05/2027 into ISO form', { text: '01/05/2027' }],
      ['medium', 'what is 30/11/2026 in ISO form', { text: '30/11/2026' }],
      ['medium fr', 'mets la date 14/07/2026 sous forme ISO', { text: '14/07/2026' }],
    ],
    distractors: [
      ['contradiction', 'turn the ISO date 2027-05-01 into day/month/year'],
      ['missing', 'turn the date into ISO form'],
    ],
  },
  {
    id: 'month-end',
    first: ['last day of the month that 2026-02-10 is in', { date: '2026-02-10' }],
    code: ({ date }) => `const start = "${date}".slice(0, 8) + "01";
const next = await mcp.time.add({ time: start, months: 1, days: -1 });
return next.time.slice(0, 10);`,
    seconds: [
      ['close', 'last day of the month that 2026-04-05 is in', { date: '2026-04-05' }],
      ['medium fr', 'dernier jour du mois de 2028-02-01', { date: '2028-02-01' }],
    ],
    distractors: [
      ['contradiction', 'first day of the month that 2026-04-05 is in'],
      ['operation', 'last day of the year that 2026-04-05 is in'],
    ],
  },
  {
    id: 'unix-seconds',
    first: ['unix time of 2026-01-01 in seconds', { date: '2026-01-01' }],
    code: ({ date }) => `const moment = await mcp.time.convert({ time: "${date}" });
return moment.unixMs / 1000;`,
    seconds: [
      ['close', 'unix time of 2030-06-15 in seconds', { date: '2030-06-15' }],
      ['medium', 'what is the unix time of 2000-02-29 in seconds', { date: '2000-02-29' }],
    ],
    distractors: [
      ['operation', 'unix time of 2030-06-15 in milliseconds'],
      ['contradiction', 'date of the unix time 1767225600 in seconds'],
    ],
  },
  {
    id: 'shift-hours',
    first: ['how many hours is a shift from 08:15 to 17:45', { from: '08:15', to: '17:45' }],
    code: ({ from, to }) => `const { seconds } = await mcp.time.diff({ from: "2026-01-01 ${from}", to: "2026-01-01 ${to}" });
return seconds / 3600;`,
    seconds: [
      ['close', 'how many hours is a shift from 06:00 to 14:30', { from: '06:00', to: '14:30' }],
      ['medium fr', "combien d'heures dure un poste de 13:00 à 21:15", { from: '13:00', to: '21:15' }],
      ['medium', 'a shift from 10:00 to 16:45 is how many hours', { from: '10:00', to: '16:45' }],
    ],
    distractors: [
      ['operation', 'how many minutes is a shift from 06:00 to 14:30'],
      ['constraint', 'how many hours is a shift from 06:00 to 14:30 with a break of 30 minutes'],
    ],
  },
  {
    id: 'age-on',
    first: ['how old is somebody born on 1990-05-17 on 2026-05-16', { born: '1990-05-17', on: '2026-05-16' }],
    code: ({ born, on }) => `const born = "${born}";
const on = "${on}";
const { days } = await mcp.time.diff({ from: born, to: on });
const years = Number(on.slice(0, 4)) - Number(born.slice(0, 4));
return days < 0 ? null : on.slice(5) < born.slice(5) ? years - 1 : years;`,
    seconds: [
      ['close', 'how old is somebody born on 2001-11-30 on 2026-12-01', { born: '2001-11-30', on: '2026-12-01' }],
      ['medium', 'on 2026-01-01, how old is somebody born on 1975-06-06', { born: '1975-06-06', on: '2026-01-01' }, { note: 'order of values changed' }],
    ],
    distractors: [
      ['missing', 'how old is somebody born on 2001-11-30'],
      ['operation', 'how many days old is somebody born on 2001-11-30 on 2026-12-01'],
    ],
  },
  {
    id: 'invoice-due',
    first: ['when is an invoice of 2026-03-15 due with 30 days to pay', { date: '2026-03-15', days: 30 }],
    args: { date: 'date', days: 'days' },
    code: () => `const due = await mcp.time.add({ time: args.date, days: args.days });
return due.weekday + " " + due.time.slice(0, 10);`,
    seconds: [
      ['close', 'when is an invoice of 2026-07-01 due with 14 days to pay', { date: '2026-07-01', days: 14 }],
      ['medium', 'with 60 days to pay, when is an invoice of 2026-01-31 due', { date: '2026-01-31', days: 60 }, { note: 'order of values changed' }],
      ['close', 'when is an invoice of 2026-10-10 due with 21 days to pay', { date: '2026-10-10', days: 21 }, { context: { date: '2026-10-10', days: 21 } }],
    ],
    distractors: [
      ['operation', 'when is an invoice of 2026-07-01 due with 2 months to pay'],
      ['contradiction', 'when was an invoice written that is due on 2026-07-01 with 14 days to pay'],
    ],
  },
  {
    id: 'date-series',
    first: ['list 4 dates every 7 days from 2026-06-01', { count: 4, step: 7, date: '2026-06-01' }],
    code: ({ count, step, date }) => `const dates = [];
for (let i = 0; i < ${count}; i++) {
  const { time } = await mcp.time.add({ time: "${date}", days: i * ${step} });
  dates.push(time.slice(0, 10));
}
return dates;`,
    seconds: [
      ['close', 'list 3 dates every 10 days from 2026-02-20', { count: 3, step: 10, date: '2026-02-20' }],
      ['medium', 'from 2026-12-25 on, list 5 dates every 2 days', { count: 5, step: 2, date: '2026-12-25' }, { note: 'order of values changed' }],
      ['medium fr', 'liste 2 dates tous les 15 jours à partir de 2026-03-01', { count: 2, step: 15, date: '2026-03-01' }],
    ],
    distractors: [
      ['operation', 'list 3 dates every 2 months from 2026-02-20'],
      ['missing', 'list the dates every 10 days from 2026-02-20'],
    ],
  },
];
