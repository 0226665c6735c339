// Programs that change files.

const data = (path) => `const { content } = await mcp.fs.read({ path: "${path}" });\nconst data = JSON.parse(content);\n`;
const save = (path) => `await mcp.fs.write({ path: "${path}", content: JSON.stringify(data, null, 2) + "\\n" });\n`;

export const WRITES = [
  {
    id: 'put-on-top',
    first: ['put "buy tape" on top of queue/monday.txt', { text: 'buy tape', path: 'queue/monday.txt' }],
    code: ({ text, path }) => `const old = await mcp.fs.read({ path: "${path}" });
await mcp.fs.write({ path: "${path}", content: "${text}\\n" + old.content });
return "done";`,
    seconds: [
      ['close', 'put "feed the cat" on top of queue/tuesday.txt', { text: 'feed the cat', path: 'queue/tuesday.txt' }],
      ['medium', 'insert "wake up" on top of queue/sunday.txt', { text: 'wake up', path: 'queue/sunday.txt' }],
      ['medium fr', 'mets "payer la facture" en haut de queue/monday.txt', { text: 'payer la facture' }],
    ],
    distractors: [
      ['contradiction', 'put "feed the cat" at the bottom of queue/tuesday.txt'],
      ['missing', 'put something on top of queue/tuesday.txt'],
    ],
  },
  {
    id: 'add-bullet',
    first: ['add the bullet "check the seals" to wiki/filters.md', { text: 'check the seals', path: 'wiki/filters.md' }],
    code: ({ text, path }) => `const page = await mcp.fs.read({ path: "${path}" });
const next = page.content + "- " + "${text}" + "\\n";
await mcp.fs.write({ path: "${path}", content: next });
return next.split("\\n").length;`,
    seconds: [
      ['close', 'add the bullet "oil the hinges" to wiki/valves.md', { text: 'oil the hinges', path: 'wiki/valves.md' }],
      ['medium', 'write the bullet "measure flow" at the end of wiki/pumps.md', { text: 'measure flow', path: 'wiki/pumps.md' }],
      ['medium fr', 'ajoute la puce "vider le bac" à wiki/pumps.md', { text: 'vider le bac', path: 'wiki/pumps.md' }],
    ],
    distractors: [
      ['contradiction', 'remove the bullet "oil the hinges" from wiki/valves.md'],
      ['operation', 'add the heading "oil the hinges" to wiki/valves.md'],
    ],
  },
  {
    id: 'enable-flag',
    first: ['enable newCart in flags/mobile.json', { flag: 'newCart', path: 'flags/mobile.json' }],
    code: ({ flag, path }) => `${data(path)}data["${flag}"].enabled = true;
${save(path)}return Object.keys(data).filter((key) => data[key].enabled);`,
    seconds: [
      ['close', 'enable tabs in flags/desktop.json', { flag: 'tabs', path: 'flags/desktop.json' }],
      ['medium fr', 'active tabs dans flags/desktop.json', { flag: 'tabs', path: 'flags/desktop.json' }],
    ],
    distractors: [
      ['contradiction', 'disable newCart in flags/desktop.json'],
      ['contradiction', 'do not enable tabs in flags/desktop.json'],
    ],
  },
  {
    id: 'set-rollout',
    first: ['set the rollout of voice to 60 percent in flags/mobile.json', { flag: 'voice', percent: 60, path: 'flags/mobile.json' }],
    code: ({ flag, percent, path }) => `${data(path)}const before = data.${flag}.rollout;
data.${flag}.rollout = ${percent};
${save(path)}return \`\${before} -> ${percent}\`;`,
    seconds: [
      ['close', 'set the rollout of darkMode to 75 percent in flags/desktop.json', { flag: 'darkMode', percent: 75, path: 'flags/desktop.json' }],
      ['medium', 'in flags/desktop.json, set the rollout of newCart to 30 percent', { flag: 'newCart', percent: 30, path: 'flags/desktop.json' }, { note: 'order of values changed' }],
      ['medium fr', 'règle le rollout de darkMode à 40 pour cent dans flags/mobile.json', { flag: 'darkMode', percent: 40 }],
    ],
    distractors: [
      ['operation', 'raise the rollout of darkMode by 20 percent in flags/desktop.json'],
      ['missing', 'set the rollout of darkMode in flags/desktop.json'],
    ],
  },
  {
    id: 'set-ini',
    first: ['write ttl = 120 into the cache section of ini/app.ini', { key: 'ttl', value: 120, section: 'cache', path: 'ini/app.ini' }],
    code: ({ key, value, section, path }) => `const { content } = await mcp.fs.read({ path: "${path}" });
let inside = false;
const lines = content.split("\\n").map((line) => {
  if (line.startsWith("[")) inside = line === "[${section}]";
  return inside && line.startsWith("${key} =") ? "${key} = ${value}" : line;
});
await mcp.fs.write({ path: "${path}", content: lines.join("\\n") });
return "written";`,
    seconds: [
      ['close', 'write timeout = 45 into the pool section of ini/db.ini', { key: 'timeout', value: 45, section: 'pool', path: 'ini/db.ini' }],
      ['medium', 'put port = 587 into the smtp section of ini/mail.ini', { key: 'port', value: 587, section: 'smtp', path: 'ini/mail.ini' }],
      ['medium fr', 'écris size = 16 dans la section cache de ini/db.ini', { key: 'size', value: 16, path: 'ini/db.ini' }],
    ],
    distractors: [
      ['operation', 'write the cache section of ini/db.ini into ini/app.ini'],
      ['missing', 'write ttl into the cache section of ini/db.ini'],
    ],
  },
  {
    id: 'delete-by-ending',
    first: ['delete all log files in the folder trash', { ending: 'log', folder: 'trash' }],
    code: ({ ending, folder }) => `const { matches } = await mcp.fs.search({ path: "${folder}", pattern: "*.${ending}" });
for (const match of matches) await mcp.fs.delete({ path: match.path });
return matches.map((m) => m.path).sort();`,
    seconds: [
      ['close', 'delete all log files in the folder scratch', { folder: 'scratch' }, { note: 'bare folder name' }],
      ['medium', 'delete every txt file in the folder scratch', { ending: 'txt', folder: 'scratch' }, { note: 'bare folder name' }],
      ['medium fr', 'supprime tous les fichiers raw du dossier shots/oslo', { ending: 'raw', folder: 'shots/oslo' }],
    ],
    distractors: [
      ['contradiction', 'delete all but the log files in the folder scratch'],
      ['constraint', 'delete all log files in the folder scratch that are older than 30 days'],
    ],
  },
  {
    id: 'copy-lines',
    first: ['copy lines 2 to 3 of queue/monday.txt to out/middle.txt', { from: 2, to: 3, path: 'queue/monday.txt', target: 'out/middle.txt' }],
    code: ({ from, to, path, target }) => `const { content } = await mcp.fs.read({ path: "${path}" });
const picked = content.split("\\n").slice(${from} - 1, ${to});
await mcp.fs.write({ path: "${target}", content: picked.join("\\n") + "\\n" });
return picked.length;`,
    seconds: [
      ['close', 'copy lines 1 to 4 of access/api.log to out/api.txt', { from: 1, to: 4, path: 'access/api.log', target: 'out/api.txt' }],
      ['medium', 'copy to out/start.txt lines 1 to 2 of poems/river.txt', { from: 1, to: 2, path: 'poems/river.txt', target: 'out/start.txt' }, { note: 'order of values changed' }],
      ['medium fr', 'copie les lignes 3 à 5 de access/front.log dans out/front.txt', { from: 3, to: 5, path: 'access/front.log', target: 'out/front.txt' }],
    ],
    distractors: [
      ['operation', 'move lines 1 to 4 of access/api.log to out/api.txt'],
      ['missing', 'copy lines 1 to 4 of access/api.log'],
    ],
  },
  {
    id: 'add-parcel',
    first: ['add parcel N9 for Lille with 4.5 kg to parcels/north.csv', { code: 'N9', city: 'Lille', kg: 4.5, path: 'parcels/north.csv' }],
    code: ({ code, city, kg, path }) => `await mcp.fs.write({ path: "${path}", content: "${code},${city},${kg},held\\n", append: true });
const { rows } = await mcp.csv.parse({ csv: (await mcp.fs.read({ path: "${path}" })).content });
return rows.length;`,
    seconds: [
      ['close', 'add parcel S8 for Genoa with 2.25 kg to parcels/south.csv', { code: 'S8', city: 'Genoa', kg: 2.25, path: 'parcels/south.csv' }],
      ['medium', 'add to parcels/south.csv parcel S9 with 6 kg for Nice', { code: 'S9', city: 'Nice', kg: 6, path: 'parcels/south.csv' }, { note: 'order of values changed' }],
      ['medium fr', 'ajoute le colis N7 pour Gent de 3.5 kg à parcels/north.csv', { code: 'N7', city: 'Gent', kg: 3.5 }],
    ],
    distractors: [
      ['missing', 'add parcel S8 for Genoa to parcels/south.csv'],
      ['contradiction', 'return parcel S2 for Genoa with 18.5 kg in parcels/south.csv'],
    ],
  },
  {
    id: 'remove-ticket',
    first: ['remove ticket T2 from tickets/open.csv', { ticket: 'T2', path: 'tickets/open.csv' }],
    code: ({ ticket, path }) => `const { content } = await mcp.fs.read({ path: "${path}" });
const kept = content.split("\\n").filter((line) => !line.startsWith("${ticket},"));
await mcp.fs.write({ path: "${path}", content: kept.join("\\n") });
return kept.length - 2;`,
    seconds: [
      ['close', 'remove ticket T91 from tickets/archive.csv', { ticket: 'T91', path: 'tickets/archive.csv' }],
      ['medium', 'take ticket T4 out of tickets/open.csv', { ticket: 'T4' }],
      ['medium fr', 'retire le ticket T92 de tickets/archive.csv', { ticket: 'T92', path: 'tickets/archive.csv' }],
    ],
    distractors: [
      ['operation', 'move ticket T4 from tickets/open.csv to tickets/archive.csv'],
      ['missing', 'remove a ticket from tickets/open.csv'],
    ],
    again: [['remove ticket T5 from tickets/open.csv', { ticket: 'T5' }]],
  },
  {
    id: 'mark-parcel',
    first: ['mark parcel N2 as sent in parcels/north.csv', { parcel: 'N2', state: 'sent', path: 'parcels/north.csv' }],
    code: ({ parcel, state, path }) => `const { content } = await mcp.fs.read({ path: "${path}" });
const { rows } = await mcp.csv.parse({ csv: content });
const row = rows.find((r) => r.code === "${parcel}");
row.state = "${state}";
const { csv } = await mcp.csv.stringify({ rows });
await mcp.fs.write({ path: "${path}", content: csv });
return row;`,
    seconds: [
      ['close', 'mark parcel S3 as held in parcels/south.csv', { parcel: 'S3', state: 'held', path: 'parcels/south.csv' }],
      ['medium', 'in parcels/south.csv mark parcel S1 as lost', { parcel: 'S1', state: 'lost', path: 'parcels/south.csv' }, { note: 'order of values changed' }],
      ['medium fr', 'marque le colis N4 comme sent dans parcels/north.csv', { parcel: 'N4' }],
    ],
    distractors: [
      ['operation', 'is parcel S3 marked as held in parcels/south.csv'],
      ['missing', 'mark parcel S3 in parcels/south.csv'],
    ],
  },
  {
    id: 'titles-to-file',
    first: [
      'write the titles of the low priority tickets of tickets/open.csv to out/low.txt',
      { priority: 'low', path: 'tickets/open.csv', target: 'out/low.txt' },
    ],
    code: ({ priority, path, target }) => `const file = await mcp.fs.read({ path: "${path}" });
const { rows } = await mcp.csv.parse({ csv: file.content });
const titles = rows.filter((r) => r.priority === "${priority}").map((r) => r.title);
await mcp.fs.create({ path: "${target}", content: titles.join("\\n") });
return titles.length;`,
    seconds: [
      ['close', 'write the titles of the high priority tickets of tickets/archive.csv to out/high.txt', { priority: 'high', path: 'tickets/archive.csv', target: 'out/high.txt' }],
      ['medium', 'save to out/medium.txt the titles of the medium priority tickets of tickets/open.csv', { priority: 'medium', target: 'out/medium.txt' }, { note: 'order of values changed' }],
    ],
    distractors: [
      ['operation', 'write the owners of the high priority tickets of tickets/archive.csv to out/high.txt'],
      ['missing', 'write the titles of the high priority tickets of tickets/archive.csv to a file'],
    ],
  },
  {
    id: 'add-region',
    first: ['add the region asia to limits/team.json', { region: 'asia', path: 'limits/team.json' }],
    code: ({ region, path }) => `${data(path)}data.regions.push("${region}");
${save(path)}return data.regions;`,
    seconds: [
      ['close', 'add the region us to limits/free.json', { region: 'us', path: 'limits/free.json' }],
      ['medium', 'limits/free.json should get the region africa', { region: 'africa', path: 'limits/free.json' }, { note: 'order of values changed' }],
      ['medium fr', 'ajoute la région oceania à limits/team.json', { region: 'oceania' }],
    ],
    distractors: [
      ['contradiction', 'remove the region us from limits/team.json'],
      ['operation', 'add the user asia to limits/team.json'],
    ],
  },
  {
    id: 'join-files',
    first: [
      'join poems/river.txt and poems/harbour.txt into out/poems.txt',
      { one: 'poems/river.txt', other: 'poems/harbour.txt', target: 'out/poems.txt' },
    ],
    code: ({ one, other, target }) => `let text = "";
for (const path of ["${one}", "${other}"]) text += (await mcp.fs.read({ path })).content;
await mcp.fs.write({ path: "${target}", content: text });
return text.split("\\n").length - 1;`,
    seconds: [
      ['close', 'join queue/monday.txt and queue/tuesday.txt into out/week.txt', { one: 'queue/monday.txt', other: 'queue/tuesday.txt', target: 'out/week.txt' }],
      ['medium fr', 'réunis queue/sunday.txt et queue/monday.txt dans out/both.txt', { one: 'queue/sunday.txt', other: 'queue/monday.txt', target: 'out/both.txt' }],
    ],
    distractors: [
      ['constraint', 'join queue/monday.txt and queue/tuesday.txt into out/week.txt without duplicates'],
      ['missing', 'join queue/monday.txt and queue/tuesday.txt'],
    ],
  },
  {
    id: 'raise-storage',
    first: ['raise the storage in limits/free.json by 5', { amount: 5, path: 'limits/free.json' }],
    code: ({ amount, path }) => `${data(path)}data.storage += ${amount};
${save(path)}return data.storage;`,
    seconds: [
      ['close', 'raise the storage in limits/team.json by 250', { amount: 250, path: 'limits/team.json' }],
      ['medium fr', 'augmente le storage de limits/team.json de 100', { amount: 100, path: 'limits/team.json' }],
    ],
    distractors: [
      ['contradiction', 'lower the storage in limits/team.json by 250'],
      ['operation', 'raise the storage in limits/team.json to 250'],
      ['operation', 'raise the storage in limits/team.json by 10 percent'],
    ],
  },
  {
    id: 'add-action',
    first: ['add an action for Karl to minutes/board.md: "buy plants"', { person: 'Karl', path: 'minutes/board.md', text: 'buy plants' }],
    code: ({ person, path, text }) => `const who = "${person}";
await mcp.fs.write({ path: "${path}", content: \`ACTION \${who}: ${text}\\n\`, append: true });
return "ACTION ${person}";`,
    seconds: [
      ['close', 'add an action for Ines to minutes/design.md: "print posters"', { person: 'Ines', path: 'minutes/design.md', text: 'print posters' }],
      ['medium', 'minutes/design.md needs an action for Tomas: "book a studio"', { person: 'Tomas', path: 'minutes/design.md', text: 'book a studio' }, { note: 'order of values changed' }],
      ['medium fr', 'ajoute une action pour Nadia à minutes/board.md : "appeler Lyon"', { person: 'Nadia', text: 'appeler Lyon' }],
    ],
    distractors: [
      ['operation', 'add a decision of Ines to minutes/design.md: "print posters"'],
      ['missing', 'add an action for Ines to minutes/design.md'],
    ],
  },
  {
    id: 'wiki-status',
    first: ['set the status of wiki/pumps.md to final', { path: 'wiki/pumps.md', status: 'final' }],
    code: ({ path, status }) => `const { content } = await mcp.fs.read({ path: "${path}" });
const text = content.replace(/^status: .*$/m, "status: ${status}");
await mcp.fs.write({ path: "${path}", content: text });
return text !== content;`,
    seconds: [
      ['close', 'set the status of wiki/valves.md to draft', { path: 'wiki/valves.md', status: 'draft' }],
      ['medium', 'change the status of wiki/filters.md to obsolete', { path: 'wiki/filters.md', status: 'obsolete' }],
      ['medium fr', 'mets le statut de wiki/valves.md à obsolete', { path: 'wiki/valves.md', status: 'obsolete' }],
    ],
    distractors: [
      ['operation', 'what is the status of wiki/valves.md'],
      ['operation', 'set the owner of wiki/valves.md to Karl'],
    ],
  },
  {
    id: 'rename-column',
    first: ['rename the column kg to weight in parcels/south.csv', { old: 'kg', new: 'weight', path: 'parcels/south.csv' }],
    code: (v) => `const { content } = await mcp.fs.read({ path: "${v.path}" });
const [head, ...rest] = content.split("\\n");
const columns = head.split(",").map((name) => (name === "${v.old}" ? "${v.new}" : name));
await mcp.fs.write({ path: "${v.path}", content: [columns.join(","), ...rest].join("\\n") });
return columns;`,
    seconds: [
      ['close', 'rename the column hours to effort in tickets/open.csv', { old: 'hours', new: 'effort', path: 'tickets/open.csv' }],
      ['medium fr', 'renomme la colonne fine en amount dans loans/winter.csv', { old: 'fine', new: 'amount', path: 'loans/winter.csv' }],
    ],
    distractors: [
      ['operation', 'copy the column hours to effort in tickets/open.csv'],
      ['missing', 'rename the column hours in tickets/open.csv'],
    ],
  },
  {
    id: 'mask-address',
    first: ['mask the address 10.0.0.7 in access/front.log', { address: '10.0.0.7', path: 'access/front.log' }],
    args: { address: 'address', path: 'log' },
    code: () => `const { content } = await mcp.fs.read({ path: args.log });
const masked = await mcp.text.replace({ text: content, find: args.address, with: "x.x.x.x" });
await mcp.fs.write({ path: args.log, content: masked.text });
return masked.replaced;`,
    seconds: [
      ['close', 'mask the address 10.0.1.8 in access/api.log', { address: '10.0.1.8', path: 'access/api.log' }],
      ['medium fr', "masque l'adresse 10.0.2.1 dans access/night.log", { address: '10.0.2.1', path: 'access/night.log' }],
      ['close', 'mask the address in the log', { address: '10.0.0.9' }, { context: { address: '10.0.0.9', log: 'access/front.log' } }],
    ],
    distractors: [
      ['contradiction', 'unmask the address 10.0.1.8 in access/api.log'],
      ['operation', 'block the address 10.0.1.8 in access/api.log'],
    ],
  },
  {
    id: 'sort-tracks',
    first: ['sort the tracks in playlists/run.json by length, longest first', { path: 'playlists/run.json' }],
    code: ({ path }) => `${data(path)}data.tracks.sort((a, b) => b.seconds - a.seconds);
${save(path)}return data.tracks.map((t) => t.title);`,
    seconds: [
      ['close', 'sort the tracks in playlists/calm.json by length, longest first', { path: 'playlists/calm.json' }],
      ['medium fr', 'trie les morceaux de playlists/calm.json par durée, le plus long en premier', { path: 'playlists/calm.json' }],
    ],
    distractors: [
      ['contradiction', 'sort the tracks in playlists/calm.json by length, shortest first'],
      ['operation', 'sort the tracks in playlists/calm.json by title'],
    ],
  },
  {
    id: 'new-sample',
    first: ['create lab/run4.txt for sample C1 with mass 8.5', { path: 'lab/run4.txt', sample: 'C1', mass: 8.5 }],
    code: ({ path, sample, mass }) => `const content = ["sample=${sample}", "mass=" + ${mass}, ""].join("\\n");
const made = await mcp.fs.create({ path: "${path}", content });
return made.size;`,
    seconds: [
      ['close', 'create lab/run5.txt for sample D4 with mass 10.25', { path: 'lab/run5.txt', sample: 'D4', mass: 10.25 }],
      ['medium', 'for sample E2 with mass 7 create lab/run6.txt', { path: 'lab/run6.txt', sample: 'E2', mass: 7 }, { note: 'order of values changed' }],
    ],
    distractors: [
      ['missing', 'create lab/run5.txt for sample D4'],
      ['operation', 'correct lab/run1.txt for sample A7 with mass 10.25'],
    ],
  },
  {
    id: 'ships-to-file',
    first: ['write the names of all ships of the knowledge graph to out/ships.txt', { target: 'out/ships.txt' }],
    code: ({ target }) => `const { entities } = await mcp.memory.read_graph({});
const names = entities.filter((e) => e.entityType === "ship").map((e) => e.name);
await mcp.fs.write({ path: "${target}", content: names.join("\\n") + "\\n" });
return names.length;`,
    seconds: [
      ['close', 'write the names of all ships of the knowledge graph to out/fleet.txt', { target: 'out/fleet.txt' }],
      ['medium fr', 'écris les noms de tous les navires du graphe de connaissances dans out/flotte.txt', { target: 'out/flotte.txt' }],
    ],
    distractors: [
      ['operation', 'write the names of all ports of the knowledge graph to out/ports.txt'],
      ['contradiction', 'read the names of all ships from out/ships.txt into the knowledge graph'],
    ],
  },
];
