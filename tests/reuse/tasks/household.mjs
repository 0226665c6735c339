// Everyday questions, asked again in other words than the first time.

const table = (path) => `const { content } = await mcp.fs.read({ path: "${path}" });\nconst { rows } = await mcp.csv.parse({ csv: content });\n`;
const document = (path) => `const { content } = await mcp.fs.read({ path: "${path}" });\nconst items = JSON.parse(content);\n`;

export const HOUSEHOLD = [
  {
    id: 'meter-total',
    first: ['how many kWh did the heating use in energy/january.csv', { meter: 'heating', path: 'energy/january.csv' }],
    code: ({ meter, path }) => `${table(path)}return rows.filter((r) => r.meter === "${meter}").reduce((sum, r) => sum + Number(r.kwh), 0);`,
    seconds: [
      ['close', 'how many kWh did the kitchen use in energy/february.csv', { meter: 'kitchen', path: 'energy/february.csv' }],
      ['medium', 'how much kWh was used by the office in energy/january.csv', { meter: 'office' }],
      ['free', 'using energy/february.csv, tell me the kWh used by the heating', { path: 'energy/february.csv' }],
      ['medium fr', 'combien de kWh la cuisine (kitchen) a-t-elle utilisés dans energy/january.csv', { meter: 'kitchen' }],
    ],
    distractors: [
      ['operation', 'how much did the heating cost in energy/january.csv'],
      ['contradiction', 'how many kWh did everything except the heating use in energy/january.csv'],
    ],
  },
  {
    id: 'dearest-day',
    first: ['on which day was the most electricity used in energy/january.csv', { path: 'energy/january.csv' }],
    code: ({ path }) => `${table(path)}const byDay = new Map();
for (const { day, kwh } of rows) byDay.set(day, (byDay.get(day) ?? 0) + Number(kwh));
return [...byDay].sort((a, b) => b[1] - a[1])[0][0];`,
    seconds: [
      ['close', 'on which day was the most electricity used in energy/february.csv', { path: 'energy/february.csv' }],
      ['medium', 'which day used the most electricity in energy/february.csv', { path: 'energy/february.csv' }],
      ['free', 'day with the highest electricity use in energy/february.csv', { path: 'energy/february.csv' }],
      ['medium fr', 'quel jour a-t-on utilisé le plus d\'électricité dans energy/february.csv', { path: 'energy/february.csv' }],
    ],
    distractors: [
      ['contradiction', 'on which day was the least electricity used in energy/february.csv'],
      ['operation', 'how much electricity was used each day in energy/february.csv'],
    ],
  },
  {
    id: 'mark-of',
    first: ['which mark did Noor get in school/maths.csv', { pupil: 'Noor', path: 'school/maths.csv' }],
    code: ({ pupil, path }) => `${table(path)}return Number(rows.find((row) => row.pupil === "${pupil}").mark);`,
    seconds: [
      ['close', 'which mark did Marc get in school/history.csv', { pupil: 'Marc', path: 'school/history.csv' }],
      ['medium', 'what mark does Lena have in school/history.csv', { pupil: 'Lena', path: 'school/history.csv' }],
      ['medium', "Odile's mark in school/maths.csv", { pupil: 'Odile' }],
      ['medium fr', 'quelle note a eue Pavel dans school/maths.csv', { pupil: 'Pavel' }],
    ],
    distractors: [
      ['operation', 'how many absences does Noor have in school/maths.csv'],
      ['operation', 'change the mark of Noor in school/maths.csv to 18'],
    ],
  },
  {
    id: 'class-average',
    first: ['average mark of class 7b in school/maths.csv', { group: '7b', path: 'school/maths.csv' }],
    code: ({ group, path }) => `${table(path)}const marks = rows.filter((row) => row.class === "${group}").map((row) => Number(row.mark));
return (await mcp.math.statistics({ values: marks })).mean;`,
    seconds: [
      ['close', 'average mark of class 7a in school/history.csv', { group: '7a', path: 'school/history.csv' }],
      ['medium', 'what is the average mark in school/maths.csv for class 7a', { group: '7a' }, { note: 'order of values changed' }],
      ['free', 'in school/history.csv, what did class 7b score on average', { path: 'school/history.csv' }],
      ['medium fr', 'note moyenne de la classe 7b dans school/history.csv', { path: 'school/history.csv' }],
    ],
    distractors: [
      ['operation', 'highest mark of class 7a in school/history.csv'],
      ['missing', 'average mark of the class in school/history.csv'],
    ],
  },
  {
    id: 'passed',
    first: ['list the pupils with a mark of at least 12 in school/maths.csv', { least: 12, path: 'school/maths.csv' }],
    code: ({ least, path }) => `${table(path)}return rows.filter((row) => Number(row.mark) >= ${least}).map((row) => row.pupil);`,
    seconds: [
      ['close', 'list the pupils with a mark of at least 15 in school/history.csv', { least: 15, path: 'school/history.csv' }],
      ['medium', 'which pupils have a mark of at least 10 in school/maths.csv', { least: 10 }],
      ['free', 'who got a mark of 14 or more in school/maths.csv', { least: 14 }],
      ['medium fr', 'liste les élèves avec une note d\'au moins 13 dans school/history.csv', { least: 13, path: 'school/history.csv' }],
    ],
    distractors: [
      ['contradiction', 'list the pupils with a mark of at most 12 in school/maths.csv'],
      ['contradiction', 'list the pupils with a mark above 12 in school/maths.csv'],
    ],
  },
  {
    id: 'runner-distance',
    first: ['total kilometres of Aiko in runs/spring.csv', { runner: 'Aiko', path: 'runs/spring.csv' }],
    code: ({ runner, path }) => `${table(path)}let km = 0;
for (const row of rows) if (row.runner === "${runner}") km += Number(row.km);
return km;`,
    seconds: [
      ['close', 'total kilometres of Bram in runs/summer.csv', { runner: 'Bram', path: 'runs/summer.csv' }],
      ['medium', 'how many kilometres did Cleo run in total in runs/summer.csv', { runner: 'Cleo', path: 'runs/summer.csv' }],
      ['free', 'add up the kilometres of Bram in runs/spring.csv', { runner: 'Bram' }],
      ['medium fr', 'total des kilomètres de Aiko dans runs/summer.csv', { path: 'runs/summer.csv' }],
    ],
    distractors: [
      ['operation', 'total minutes of Aiko in runs/spring.csv'],
      ['operation', 'average kilometres of Aiko in runs/spring.csv'],
    ],
  },
  {
    id: 'pace',
    first: ['what pace per km does a run of 10 km in 52 minutes have', { km: 10, minutes: 52 }],
    code: ({ km, minutes }) => `const { value } = await mcp.math.evaluate({ expression: "${minutes} / ${km}" });
return (await mcp.math.round({ value, digits: 2 })).value;`,
    seconds: [
      ['close', 'what pace per km does a run of 8 km in 44 minutes have', { km: 8, minutes: 44 }],
      ['medium', 'pace per km of a run of 5 km in 31 minutes', { km: 5, minutes: 31 }],
      ['free', 'I ran 12.5 km in 70 minutes, what is my pace per km', { km: 12.5, minutes: 70 }],
      ['medium fr', 'quelle allure par km a une course de 6 km en 40 minutes', { km: 6, minutes: 40 }],
    ],
    distractors: [
      ['operation', 'what pace per mile does a run of 8 km in 44 minutes have'],
      ['operation', 'how long does a run of 8 km at a pace of 5 minutes per km take'],
    ],
  },
  {
    id: 'where-is-item',
    first: ['in which bin is the drill according to stock/tools.json', { item: 'drill', path: 'stock/tools.json' }],
    code: ({ item, path }) => `${document(path)}return items.find((it) => it.name === "${item}").bin;`,
    seconds: [
      ['close', 'in which bin is the varnish according to stock/paints.json', { item: 'varnish', path: 'stock/paints.json' }],
      ['medium', 'bin of the hammer in stock/tools.json', { item: 'hammer' }],
      ['medium', 'which bin is the saw in, see stock/tools.json', { item: 'saw' }],
      ['medium fr', 'dans quel bac est le hammer selon stock/tools.json', { item: 'hammer' }],
    ],
    distractors: [
      ['operation', 'which items are in the bin of the drill according to stock/tools.json'],
      ['operation', 'put the drill into another bin in stock/tools.json'],
    ],
  },
  {
    id: 'sold-out',
    first: ['which items are out of stock in stock/tools.json', { path: 'stock/tools.json' }],
    code: ({ path }) => `${document(path)}return items.filter((it) => it.stock === 0).map((it) => it.name);`,
    seconds: [
      ['close', 'which items are out of stock in stock/paints.json', { path: 'stock/paints.json' }],
      ['medium', 'list the items of stock/paints.json that are out of stock', { path: 'stock/paints.json' }],
      ['medium', 'show me all items out of stock in stock/paints.json', { path: 'stock/paints.json' }],
      ['medium fr', 'quels articles sont en rupture de stock dans stock/paints.json', { path: 'stock/paints.json' }],
    ],
    distractors: [
      ['contradiction', 'which items are in stock in stock/paints.json'],
      ['operation', 'how many items are out of stock in stock/paints.json'],
    ],
  },
  {
    id: 'from-supplier',
    first: ['names of the items from supplier Ferro in stock/tools.json', { supplier: 'Ferro', path: 'stock/tools.json' }],
    code: ({ supplier, path }) => `${document(path)}return items.filter((it) => it.supplier === "${supplier}").map((it) => it.name);`,
    seconds: [
      ['close', 'names of the items from supplier Chroma in stock/paints.json', { supplier: 'Chroma', path: 'stock/paints.json' }],
      ['medium', 'which items in stock/tools.json come from the supplier Lignum', { supplier: 'Lignum' }, { note: 'order of values changed' }],
      ['free', 'what do we buy from Lignum? list the names of the items in stock/paints.json', { supplier: 'Lignum', path: 'stock/paints.json' }],
      ['medium fr', 'noms des articles du fournisseur Lignum dans stock/tools.json', { supplier: 'Lignum' }],
    ],
    distractors: [
      ['operation', 'prices of the items from supplier Ferro in stock/tools.json'],
      ['contradiction', 'names of the items not from supplier Ferro in stock/tools.json'],
    ],
  },
  {
    id: 'stock-value',
    first: ['total value of the stock in stock/tools.json', { path: 'stock/tools.json' }],
    code: ({ path }) => `${document(path)}const total = items.reduce((sum, it) => sum + it.stock * it.price, 0);
return (await mcp.math.round({ value: total, digits: 2 })).value;`,
    seconds: [
      ['close', 'total value of the stock in stock/paints.json', { path: 'stock/paints.json' }],
      ['medium', 'what is the stock in stock/paints.json worth in total', { path: 'stock/paints.json' }],
      ['medium fr', 'valeur totale du stock dans stock/paints.json', { path: 'stock/paints.json' }],
    ],
    distractors: [
      ['operation', 'total number of pieces of the stock in stock/paints.json'],
      ['operation', 'average price of the stock in stock/paints.json'],
    ],
  },
  {
    id: 'change-price',
    first: ['set the price of the saw in stock/tools.json to 19.5', { item: 'saw', path: 'stock/tools.json', price: 19.5 }],
    code: ({ item, path, price }) => `${document(path)}for (const it of items) if (it.name === "${item}") it.price = ${price};
await mcp.fs.write({ path: "${path}", content: JSON.stringify(items, null, 2) + "\\n" });
return "saved";`,
    seconds: [
      ['close', 'set the price of the blue in stock/paints.json to 20', { item: 'blue', path: 'stock/paints.json', price: 20 }],
      ['medium', 'in stock/tools.json, set the price of the hammer to 15.25', { item: 'hammer', price: 15.25 }, { note: 'order of values changed' }],
      ['medium', 'change the price of the drill to 79 in stock/tools.json', { item: 'drill', price: 79 }, { note: 'order of values changed' }],
      ['medium fr', 'mets le prix du hammer dans stock/tools.json à 16', { item: 'hammer', price: 16 }],
    ],
    distractors: [
      ['contradiction', 'raise the price of the saw in stock/tools.json by 19.5'],
      ['operation', 'set the stock of the saw in stock/tools.json to 5'],
    ],
  },
  {
    id: 'find-word-lines',
    first: ['which lines of letters/landlord.txt mention "boiler", ignoring case', { path: 'letters/landlord.txt', word: 'boiler' }],
    code: ({ path, word }) => `const { content } = await mcp.fs.read({ path: "${path}" });
return content.split("\\n").filter((line) => line.toLowerCase().includes("${word}"));`,
    seconds: [
      ['close', 'which lines of letters/bank.txt mention "card", ignoring case', { path: 'letters/bank.txt', word: 'card' }],
      ['medium', 'show the lines of letters/bank.txt that mention "dear", ignoring case', { path: 'letters/bank.txt', word: 'dear' }],
      ['medium fr', 'quelles lignes de letters/bank.txt mentionnent "new", en ignorant la casse', { path: 'letters/bank.txt', word: 'new' }],
    ],
    distractors: [
      ['contradiction', 'which lines of letters/landlord.txt do not mention "boiler", ignoring case'],
      ['operation', 'how many lines of letters/landlord.txt mention "boiler", ignoring case'],
    ],
  },
  {
    id: 'trip-length',
    first: ['how many kilometres is the trip in trips/alps.json', { path: 'trips/alps.json' }],
    code: ({ path }) => `const { content } = await mcp.fs.read({ path: "${path}" });
return JSON.parse(content).days.reduce((sum, day) => sum + day.km, 0);`,
    seconds: [
      ['close', 'how many kilometres is the trip in trips/coast.json', { path: 'trips/coast.json' }],
      ['medium', 'number of kilometres of the trip in trips/coast.json', { path: 'trips/coast.json' }],
      ['free', 'how long is the trip in trips/coast.json, in kilometres', { path: 'trips/coast.json' }],
      ['medium fr', 'combien de kilomètres fait le voyage dans trips/coast.json', { path: 'trips/coast.json' }],
    ],
    distractors: [
      ['operation', 'how many days is the trip in trips/coast.json'],
      ['operation', 'how many miles is the trip in trips/coast.json'],
    ],
  },
  {
    id: 'stop-on-day',
    first: ['where does the trip in trips/alps.json stop on day 2', { path: 'trips/alps.json', day: 2 }],
    code: ({ path, day }) => `const { content } = await mcp.fs.read({ path: "${path}" });
return JSON.parse(content).days.find((d) => d.day === ${day}).stop;`,
    seconds: [
      ['close', 'where does the trip in trips/coast.json stop on day 1', { path: 'trips/coast.json', day: 1 }],
      ['medium', 'on day 3, where does the trip in trips/alps.json stop', { day: 3 }, { note: 'order of values changed' }],
      ['medium', 'stop of day 2 in trips/coast.json', { path: 'trips/coast.json' }],
      ['medium fr', "où s'arrête le voyage de trips/coast.json le jour 2", { path: 'trips/coast.json' }],
    ],
    distractors: [
      ['operation', 'what does the hotel cost on day 2 in trips/coast.json'],
      ['operation', 'on which day does the trip in trips/coast.json stop in Lorient'],
    ],
  },
];
