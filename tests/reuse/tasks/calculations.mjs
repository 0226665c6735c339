// Numbers: money, measures, statistics.

const rounded = (expression, digits = 2) => `return (await mcp.math.round({ value: ${expression}, digits: ${digits} })).value;`;

export const CALCULATIONS = [
  {
    id: 'gallons',
    first: ['convert 40 litres to gallons', { litres: 40 }],
    code: ({ litres }) => `const { value } = await mcp.math.evaluate({ expression: "${litres} / 3.785411784" });
${rounded('value')}`,
    seconds: [
      ['close', 'convert 12.5 litres to gallons', { litres: 12.5 }],
      ['medium', 'how many gallons are 75 litres', { litres: 75 }],
      ['medium fr', 'convertis 20 litres en gallons', { litres: 20 }],
    ],
    distractors: [
      ['contradiction', 'convert 40 gallons to litres'],
      ['operation', 'convert 40 litres to pints'],
    ],
  },
  {
    id: 'fuel-use',
    first: ['how many litres per 100 km does a car use that needs 38 litres for 520 km', { litres: 38, km: 520 }],
    code: ({ litres, km }) => rounded(`${litres} / ${km} * 100`, 1),
    seconds: [
      ['close', 'how many litres per 100 km does a car use that needs 30 litres for 600 km', { litres: 30, km: 600 }],
      ['medium', 'litres per 100 km of a car that drove 450 km with 27 litres', { litres: 27, km: 450 }, { note: 'order of values changed' }],
    ],
    distractors: [
      ['contradiction', 'how many km does a car drive per litre that needs 30 litres for 600 km'],
      ['missing', 'how many litres per 100 km does a car use'],
    ],
  },
  {
    id: 'tip',
    first: ['what is a tip of 15 percent on 64.80', { percent: 15, bill: 64.8 }],
    code: ({ percent, bill }) => `const tip = await mcp.math.evaluate({ expression: "bill * rate / 100", variables: { bill: ${bill}, rate: ${percent} } });
${rounded('tip.value')}`,
    seconds: [
      ['close', 'what is a tip of 10 percent on 42.50', { percent: 10, bill: 42.5 }],
      ['medium', 'how much tip is 20 percent on 81', { percent: 20, bill: 81 }],
      ['medium fr', 'quel est un pourboire de 12 pour cent sur 95', { percent: 12, bill: 95 }],
    ],
    distractors: [
      ['constraint', 'what is 42.50 with a tip of 10 percent split by 3'],
      ['missing', 'what is a tip on 42.50'],
    ],
    again: [['what is a tip of 18 percent on 30', { percent: 18, bill: 30 }]],
  },
  {
    id: 'discounted',
    first: ['price of 250 after a discount of 20 percent', { price: 250, percent: 20 }],
    code: ({ price, percent }) => `const { value } = await mcp.math.evaluate({ expression: "${price} * (1 - ${percent} / 100)" });
${rounded('value')}`,
    seconds: [
      ['close', 'price of 80 after a discount of 35 percent', { price: 80, percent: 35 }],
      ['medium', 'what does 119.90 cost after a discount of 10 percent', { price: 119.9, percent: 10 }],
      ['medium fr', 'prix de 60 après une remise de 25 pour cent', { price: 60, percent: 25 }],
    ],
    distractors: [
      ['contradiction', 'price of 80 before a discount of 35 percent'],
      ['operation', 'price of 80 after a discount of 35 euros'],
    ],
  },
  {
    id: 'compound-interest',
    first: ['what are 2000 euros worth after 10 years at 5 percent', { capital: 2000, years: 10, percent: 5 }],
    code: ({ capital, years, percent }) => `const end = await mcp.math.evaluate({
  expression: "c * (1 + p / 100) ^ n",
  variables: { c: ${capital}, p: ${percent}, n: ${years} },
});
${rounded('end.value')}`,
    seconds: [
      ['close', 'what are 500 euros worth after 3 years at 4 percent', { capital: 500, years: 3, percent: 4 }],
      ['medium', 'at 2.5 percent, what are 1200 euros worth after 6 years', { capital: 1200, years: 6, percent: 2.5 }, { note: 'order of values changed' }],
      ['medium fr', 'que valent 800 euros après 5 ans à 3 pour cent', { capital: 800, years: 5, percent: 3 }],
    ],
    distractors: [
      ['operation', 'what are 500 euros worth after 3 months at 4 percent'],
      ['missing', 'what are 500 euros worth after 3 years'],
    ],
  },
  {
    id: 'monthly-rate',
    first: ['monthly payment for a loan of 12000 over 24 months at 6 percent', { loan: 12000, months: 24, percent: 6 }],
    code: ({ loan, months, percent }) => `const r = ${percent} / 1200;
const { value } = await mcp.math.evaluate({ expression: "p * r / (1 - (1 + r) ^ (0 - n))", variables: { p: ${loan}, r, n: ${months} } });
${rounded('value')}`,
    seconds: [
      ['close', 'monthly payment for a loan of 5000 over 12 months at 3 percent', { loan: 5000, months: 12, percent: 3 }],
      ['medium', 'what is the monthly payment at 4.5 percent for a loan of 20000 over 60 months', { loan: 20000, months: 60, percent: 4.5 }, { note: 'order of values changed' }],
    ],
    distractors: [
      ['operation', 'monthly payment for a loan of 5000 over 12 years at 3 percent'],
      ['operation', 'total interest for a loan of 5000 over 12 months at 3 percent'],
    ],
  },
  {
    id: 'body-mass',
    first: ['body mass index for 70 kg and 175 cm', { kg: 70, cm: 175 }],
    code: ({ kg, cm }) => `const metres = ${cm} / 100;
${rounded(`${kg} / (metres * metres)`, 1)}`,
    seconds: [
      ['close', 'body mass index for 92 kg and 188 cm', { kg: 92, cm: 188 }],
      ['medium', 'what body mass index has somebody of 160 cm and 55 kg', { kg: 55, cm: 160 }, { note: 'order of values changed' }],
      ['medium fr', 'indice de masse corporelle pour 64 kg et 170 cm', { kg: 64, cm: 170 }],
    ],
    distractors: [
      ['operation', 'body mass index for 200 pounds and 74 inches'],
      ['missing', 'body mass index for 92 kg'],
    ],
  },
  {
    id: 'mean-of',
    first: ['mean of 4, 8 and 15', { numbers: [4, 8, 15] }],
    code: ({ numbers }) => `const stats = await mcp.math.statistics({ values: [${numbers.join(', ')}] });
return stats.mean;`,
    seconds: [
      ['close', 'mean of 10, 20 and 60', { numbers: [10, 20, 60] }],
      ['medium', 'what is the mean of 3, 5, 7 and 9', { numbers: [3, 5, 7, 9] }],
      ['medium fr', 'moyenne de 12, 13 et 17', { numbers: [12, 13, 17] }],
    ],
    distractors: [
      ['operation', 'median of 10, 20 and 60'],
      ['operation', 'geometric mean of 10, 20 and 60'],
    ],
  },
  {
    id: 'percent-change',
    first: ['change in percent from 80 to 100', { from: 80, to: 100 }],
    code: ({ from, to }) => rounded(`(${to} - ${from}) / ${from} * 100`, 1),
    seconds: [
      ['close', 'change in percent from 200 to 150', { from: 200, to: 150 }],
      ['medium', 'what is the change in percent to 30 from 24', { from: 24, to: 30 }, { note: 'order of values changed' }],
      ['medium fr', 'variation en pourcentage de 50 à 65', { from: 50, to: 65 }],
    ],
    distractors: [
      ['operation', 'change in percentage points from 20 percent to 25 percent'],
      ['missing', 'change in percent to 150'],
    ],
  },
  {
    id: 'circle-area',
    first: ['area of a circle with radius 5', { radius: 5 }],
    code: ({ radius }) => `const { value } = await mcp.math.evaluate({ expression: "pi * r ^ 2", variables: { r: ${radius} } });
${rounded('value')}`,
    seconds: [
      ['close', 'area of a circle with radius 2.5', { radius: 2.5 }],
      ['medium', 'what area has a circle with radius 11', { radius: 11 }],
      ['medium fr', "aire d'un cercle de rayon 8", { radius: 8 }],
    ],
    distractors: [
      ['operation', 'circumference of a circle with radius 11'],
      ['contradiction', 'area of a circle with diameter 11'],
    ],
  },
  {
    id: 'hypotenuse',
    first: ['hypotenuse of a right triangle with legs 3 and 4', { a: 3, b: 4 }],
    code: ({ a, b }) => `const h = await mcp.math.evaluate({ expression: "sqrt(a ^ 2 + b ^ 2)", variables: { a: ${a}, b: ${b} } });
${rounded('h.value', 3)}`,
    seconds: [
      ['close', 'hypotenuse of a right triangle with legs 5 and 12', { a: 5, b: 12 }],
      ['medium', 'the legs of a right triangle are 7 and 9, what is the hypotenuse', { a: 7, b: 9 }],
    ],
    distractors: [
      ['operation', 'area of a right triangle with legs 5 and 12'],
      ['contradiction', 'missing leg of a right triangle with hypotenuse 13 and leg 12'],
    ],
  },
  {
    id: 'split-bill',
    first: ['split 96 euros between 4 people', { euros: 96, people: 4 }],
    code: ({ euros, people }) => rounded(`${euros} / ${people}`),
    seconds: [
      ['close', 'split 150.60 euros between 6 people', { euros: 150.6, people: 6 }],
      ['medium', 'what does each of 3 people pay of 100 euros', { euros: 100, people: 3 }, { note: 'order of values changed' }],
      ['medium fr', 'partage 75 euros entre 5 personnes', { euros: 75, people: 5 }],
    ],
    distractors: [
      ['constraint', 'split 150 euros between 6 people with a tip of 10 percent'],
      ['missing', 'split 150 euros'],
    ],
    again: [['split 45 euros between 2 people', { euros: 45, people: 2 }]],
  },
  {
    id: 'speed',
    first: ['average speed for 150 km in 2 hours', { km: 150, hours: 2 }],
    code: ({ km, hours }) => `const { value } = await mcp.math.evaluate({ expression: "d / t", variables: { d: ${km}, t: ${hours} } });
return \`\${value} km/h\`;`,
    seconds: [
      ['close', 'average speed for 420 km in 4 hours', { km: 420, hours: 4 }],
      ['medium', 'in 5 hours I drove 300 km, what is the average speed', { km: 300, hours: 5 }, { note: 'order of values changed' }],
      ['medium fr', 'vitesse moyenne pour 90 km en 3 heures', { km: 90, hours: 3 }],
    ],
    distractors: [
      ['operation', 'average speed for 30 km in 20 minutes'],
      ['operation', 'top speed for 420 km in 4 hours'],
    ],
  },
  {
    id: 'round-to',
    first: ['round 3.14159 to 2 digits', { number: 3.14159, digits: 2 }],
    code: ({ number, digits }) => `return (await mcp.math.round({ value: ${number}, digits: ${digits} })).value;`,
    seconds: [
      ['close', 'round 2.71828 to 3 digits', { number: 2.71828, digits: 3 }],
      ['medium', 'give me 12.3456 with 1 digits', { number: 12.3456, digits: 1 }],
      ['medium fr', 'arrondis 9.87654 à 4 chiffres', { number: 9.87654, digits: 4 }],
    ],
    distractors: [
      ['contradiction', 'round 2.71828 down to 3 digits'],
      ['operation', 'round 2.71828 to 3 significant digits'],
    ],
  },
  {
    id: 'power-cost',
    first: ['cost of running 2000 watts for 5 hours at 0.30 euros per kWh', { watts: 2000, hours: 5, price: 0.3 }],
    code: ({ watts, hours, price }) => `const kwh = (${watts} / 1000) * ${hours};
const cost = await mcp.math.evaluate({ expression: "k * p", variables: { k: kwh, p: ${price} } });
${rounded('cost.value')}`,
    seconds: [
      ['close', 'cost of running 800 watts for 12 hours at 0.25 euros per kWh', { watts: 800, hours: 12, price: 0.25 }],
      ['medium', 'at 0.40 euros per kWh, what does it cost to run 1500 watts for 3 hours', { watts: 1500, hours: 3, price: 0.4 }, { note: 'order of values changed' }],
    ],
    distractors: [
      ['operation', 'cost of running 800 watts for 12 days at 0.25 euros per kWh'],
      ['missing', 'cost of running 800 watts for 12 hours'],
    ],
  },
  {
    id: 'paint',
    first: ['litres of paint for 45 square metres at 9 square metres per litre', { area: 45, yield: 9 }],
    args: { area: 'area', yield: 'perLitre' },
    code: () => `const { value } = await mcp.math.evaluate({ expression: "a / y", variables: { a: args.area, y: args.perLitre } });
return (await mcp.math.round({ value, mode: "ceiling" })).value;`,
    seconds: [
      ['close', 'litres of paint for 60 square metres at 8 square metres per litre', { area: 60, yield: 8 }],
      ['close', 'litres of paint for 33 square metres at 10 square metres per litre', { area: 33, yield: 10 }, { context: { area: 33, perLitre: 10 } }],
      ['medium fr', 'litres de peinture pour 70 mètres carrés à 12 mètres carrés par litre', { area: 70, yield: 12 }],
    ],
    distractors: [
      ['constraint', 'litres of paint for 60 square metres at 8 square metres per litre with two coats'],
      ['operation', 'price of the paint for 60 square metres at 8 euros per litre'],
    ],
  },
  {
    id: 'weighted-mean',
    first: ['weighted mean of these marks', { marks: [2, 3, 1], weights: [1, 2, 1] }],
    given: { marks: 'marks', weights: 'weights' },
    code: () => `let sum = 0;
args.marks.forEach((mark, i) => { sum += mark * args.weights[i]; });
const { sum: total } = await mcp.math.statistics({ values: args.weights });
${rounded('sum / total')}`,
    seconds: [
      ['close', 'weighted mean of the marks', { marks: [10, 20], weights: [3, 1] }],
      ['medium fr', 'moyenne pondérée de ces notes', { marks: [12, 15, 9], weights: [2, 1, 1] }],
    ],
    distractors: [
      ['operation', 'plain mean of these marks, without weights', { context: { marks: [10, 20], weights: [3, 1] } }],
      ['operation', 'best of these marks', { context: { marks: [10, 20], weights: [3, 1] } }],
    ],
  },
];
