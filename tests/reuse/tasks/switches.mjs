// What is on or off is said in words: with or without a header, upper and lower case as equal, deleted with all content.

export const SWITCHES = [
  {
    id: 'rows-without-header',
    first: ['how many rows has raw/probes.csv without header', { path: 'raw/probes.csv', header: false }],
    code: ({ path, header }) => `const { content } = await mcp.fs.read({ path: "${path}" });
const { rows } = await mcp.csv.parse({ csv: content, header: ${header} });
return rows.length;`,
    seconds: [
      ['close', 'how many rows has raw/valves.csv with header', { path: 'raw/valves.csv', header: true }],
      ['close', 'how many rows has raw/valves.csv without header', { path: 'raw/valves.csv' }],
      ['medium', 'number of rows in raw/valves.csv with a header', { path: 'raw/valves.csv', header: true }],
      ['medium fr', 'combien de lignes a raw/valves.csv sans en-tête', { path: 'raw/valves.csv' }],
      ['medium fr', 'combien de lignes a raw/valves.csv avec en-tête', { path: 'raw/valves.csv', header: true }],
    ],
    distractors: [
      ['operation', 'how many columns has raw/valves.csv without header'],
      ['operation', 'what is the header of raw/valves.csv'],
    ],
  },
  {
    id: 'count-matches',
    first: ['how often does "boiler" occur in letters/landlord.txt, case-insensitive', { word: 'boiler', path: 'letters/landlord.txt', ignore: true }],
    code: ({ word, path, ignore }) => `const { content } = await mcp.fs.read({ path: "${path}" });
const { matches } = await mcp.text.match({ text: content, pattern: "${word}", ignoreCase: ${ignore} });
return matches.length;`,
    seconds: [
      ['close', 'how often does "card" occur in letters/bank.txt, case-insensitive', { word: 'card', path: 'letters/bank.txt' }],
      ['close', 'how often does "card" occur in letters/bank.txt, case-sensitive', { word: 'card', path: 'letters/bank.txt', ignore: false }],
      ['medium', 'how often does "dear" occur in letters/bank.txt, ignoring case', { word: 'dear', path: 'letters/bank.txt' }],
      ['medium fr', 'combien de fois "new" apparaît dans letters/bank.txt, en ignorant la casse', { word: 'new', path: 'letters/bank.txt' }],
    ],
    distractors: [
      ['operation', 'which lines contain "card" in letters/bank.txt, case-insensitive'],
      ['constraint', 'how often does "card" occur in letters/bank.txt, case-insensitive, at the end of a sentence'],
    ],
  },
  {
    id: 'delete-folder',
    first: ['delete the folder trash recursively', { folder: 'trash', recursive: true }],
    code: ({ folder, recursive }) => `const { deleted } = await mcp.fs.delete({ path: "${folder}", recursive: ${recursive} });
return deleted;`,
    seconds: [
      ['close', 'delete the folder scratch recursively', { folder: 'scratch' }],
      ['medium fr', 'supprime le dossier drawers récursivement', { folder: 'drawers' }],
    ],
    distractors: [
      ['operation', 'list the folder scratch recursively'],
      ['contradiction', 'delete the folder scratch only if it is empty'],
      ['contradiction', 'do not delete the folder scratch recursively'],
    ],
  },
  {
    id: 'trimmed-lines',
    first: ['list the lines of drawers/top.txt without empty ones', { path: 'drawers/top.txt', trim: true }],
    code: ({ path, trim }) => `const { content } = await mcp.fs.read({ path: "${path}" });
return (await mcp.text.split({ text: content, separator: "\\n", trim: ${trim} })).parts;`,
    seconds: [
      ['close', 'list the lines of drawers/low.txt without empty ones', { path: 'drawers/low.txt' }],
      ['medium', 'show the lines of drawers/low.txt without empty ones', { path: 'drawers/low.txt' }],
    ],
    distractors: [
      ['contradiction', 'list only the empty lines of drawers/low.txt'],
      ['operation', 'how many empty lines has drawers/low.txt'],
    ],
  },
];
