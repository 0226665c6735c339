// Prints conversations as an agent sees them: what it sends with pml_execute and pml_discover, and the text it gets back.
//
//   node conversations.mjs --pml FILE
//
// Each begins with a program and goes on with sentences: other values, other words, French, what only looks similar, values
// that contradict a constant, ready calls, and booleans said in words.

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { makePlace } from './place.mjs';

const { values: options } = parseArgs({ options: { pml: { type: 'string' } } });
if (!options.pml) {
  console.error('usage: node conversations.mjs --pml FILE');
  process.exit(2);
}

const table = (path) => `const { content } = await mcp.fs.read({ path: "${path}" });\nconst { rows } = await mcp.csv.parse({ csv: content });\n`;

/** Each has a title, the first intent with its program, and what is sent next: a sentence, or a request. */
const CONVERSATIONS = [
  {
    title: 'The second time, with other values',
    first: ['total kilometres of Aiko in runs/spring.csv', `${table('runs/spring.csv')}return rows.filter((r) => r.runner === "Aiko").reduce((sum, r) => sum + Number(r.km), 0);`],
    next: ['total kilometres of Bram in runs/spring.csv', 'total kilometres of Cleo in runs/summer.csv'],
  },
  {
    title: 'In other words',
    first: ['average mark of class 7b in school/maths.csv', `${table('school/maths.csv')}const marks = rows.filter((r) => r.class === "7b").map((r) => Number(r.mark));\nreturn (await mcp.math.statistics({ values: marks })).mean;`],
    next: ['what is the average mark in school/history.csv for class 7a'],
  },
  {
    title: 'In French',
    first: ['read the first 2 lines of letters/bank.txt', 'const { content } = await mcp.fs.read({ path: "letters/bank.txt" });\nreturn content.split("\\n").slice(0, 2);'],
    next: ['lis les 3 premières lignes de letters/landlord.txt'],
  },
  {
    title: 'What only looks similar',
    first: ['which items are out of stock in stock/tools.json', 'const { content } = await mcp.fs.read({ path: "stock/tools.json" });\nreturn JSON.parse(content).filter((it) => it.stock === 0).map((it) => it.name);'],
    next: ['which items are in stock in stock/paints.json', 'how many items are out of stock in stock/paints.json'],
  },
  {
    title: 'A value that contradicts a constant',
    first: ['which tickets of Nadia are in tickets/open.csv', `const all = args;\n${table('tickets/open.csv')}return rows.filter((r) => r.owner === "Nadia").map((r) => r.id).concat(Object.keys(all));`],
    next: ['which tickets of Karl are in tickets/open.csv'],
  },
  {
    title: 'A ready call, sent back as it is',
    first: ['how many parcels are lost in parcels/north.csv', `${table('parcels/north.csv')}return rows.filter((r) => r.state === "lost").length;`],
    next: ['tell me how many parcels went missing, that is lost, in parcels/south.csv', 'ready'],
  },
  {
    title: 'Something is open',
    first: ['which flights go from Lyon to Oslo in flights/monday.csv', `${table('flights/monday.csv')}return rows.filter((r) => r.from === "Lyon" && r.to === "Oslo").map((r) => r.flight);`],
    next: ['which flights go to Porto in flights/sunday.csv'],
  },
  {
    title: 'Discover shows it first',
    first: ['sum of the fines of the north branch in loans/spring.csv', `${table('loans/spring.csv')}return rows.filter((r) => r.branch === "north").reduce((sum, r) => sum + Number(r.fine), 0);`],
    next: [{ tool: 'pml_discover', intent: 'sum of the fines of the west branch in loans/winter.csv' }],
  },
  {
    title: 'On or off, said in words',
    first: ['how many rows has raw/probes.csv without header', 'const { content } = await mcp.fs.read({ path: "raw/probes.csv" });\nreturn (await mcp.csv.parse({ csv: content, header: false })).rows.length;'],
    next: ['how many rows has raw/valves.csv with header', 'how many rows has raw/valves.csv'],
  },
  {
    title: 'A program that writes',
    first: ['add the line "call Bob" to queue/monday.txt', 'await mcp.fs.write({ path: "queue/monday.txt", content: "call Bob\\n", append: true });\nreturn "added";'],
    next: ['add the line "buy ink" to queue/tuesday.txt', 'do not add the line "buy ink" to queue/tuesday.txt'],
  },
];

const place = await makePlace(resolve(options.pml));
for (const [number, { title, first: [intent, code], next }] of CONVERSATIONS.entries()) {
  console.log(`\n## ${number + 1}. ${title}\n`);
  let text = await say('pml_execute', { intent, implementation: { type: 'code', code } });
  await place.settle();
  for (const asked of next) text = await say(asked.tool ?? 'pml_execute', request(asked, text));
}
await place.close();

/** What is sent: a sentence, the line that the reply before offered, or a request. */
function request(asked, before) {
  if (asked === 'ready') return JSON.parse(before.match(/^pml_execute (\{.*\})/m)?.[1] ?? '{}');
  return typeof asked === 'string' ? { intent: asked } : { intent: asked.intent };
}

async function say(tool, sent) {
  const { text } = await (tool === 'pml_discover' ? place.discover(sent) : place.execute(sent));
  console.log(`> ${tool} ${JSON.stringify(sent)}\n\n${text}\n`);
  return text;
}
