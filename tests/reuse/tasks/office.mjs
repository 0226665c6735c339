// Questions of an office and an evening, asked again in other words. What fails here is counted, not read: the words that
// are known were not chosen by it.

const table = (path) => `const file = await mcp.fs.read({ path: "${path}" });\nconst { rows } = await mcp.csv.parse({ csv: file.content });\n`;
const document = (path) => `const file = await mcp.fs.read({ path: "${path}" });\nconst list = JSON.parse(file.content);\n`;

export const OFFICE = [
  {
    id: 'phone-of',
    first: ['what is the phone number of Sofia Marin in people/friends.json', { person: 'Sofia Marin', path: 'people/friends.json' }],
    code: ({ person, path }) => `${document(path)}return list.find((p) => p.name === "${person}").phone;`,
    seconds: [
      ['close', 'what is the phone number of Mina Sato in people/clients.json', { person: 'Mina Sato', path: 'people/clients.json' }],
      ['medium', 'phone number of Tariq Aziz from people/friends.json', { person: 'Tariq Aziz' }],
      ['medium', 'give me the phone number that people/clients.json has for Hugo Prat', { person: 'Hugo Prat', path: 'people/clients.json' }, { note: 'order of values changed' }],
      ['medium fr', 'quel est le numéro de téléphone de Greta Holm dans people/friends.json', { person: 'Greta Holm' }],
    ],
    distractors: [
      ['operation', 'whose phone number is +44 20 7946 0018 in people/friends.json'],
      ['operation', 'call Tariq Aziz from people/friends.json'],
    ],
  },
  {
    id: 'people-in-town',
    first: ['who lives in Leeds according to people/friends.json', { town: 'Leeds', path: 'people/friends.json' }],
    code: ({ town, path }) => `${document(path)}return list.filter((p) => p.town === "${town}").map((p) => p.name);`,
    seconds: [
      ['close', 'who lives in Cadiz according to people/clients.json', { town: 'Cadiz', path: 'people/clients.json' }],
      ['medium', 'which people in people/friends.json live in Nantes', { town: 'Nantes' }, { note: 'order of values changed' }],
      ['medium', 'find everyone living in Malmo in people/friends.json', { town: 'Malmo' }],
      ['medium fr', 'qui habite à Nagoya selon people/clients.json', { town: 'Nagoya', path: 'people/clients.json' }],
    ],
    distractors: [
      ['contradiction', 'who does not live in Leeds according to people/friends.json'],
      ['operation', 'who was born in Leeds according to people/friends.json'],
    ],
  },
  {
    id: 'oldest-person',
    first: ['who is the oldest person in people/friends.json', { path: 'people/friends.json' }],
    code: ({ path }) => `${document(path)}list.sort((a, b) => a.born.localeCompare(b.born));
return list[0].name;`,
    seconds: [
      ['close', 'who is the oldest person in people/clients.json', { path: 'people/clients.json' }],
      ['medium', 'the oldest person of people/clients.json', { path: 'people/clients.json' }],
      ['medium', 'tell me which person in people/clients.json is the oldest', { path: 'people/clients.json' }],
      ['medium fr', 'qui est la personne la plus âgée dans people/clients.json', { path: 'people/clients.json' }],
    ],
    distractors: [
      ['contradiction', 'who is the youngest person in people/clients.json'],
      ['operation', 'how old is the oldest person in people/clients.json'],
    ],
  },
  {
    id: 'hours-of',
    first: ['how many hours did Yara work in week 12 in staff/hours.csv', { person: 'Yara', week: 12, path: 'staff/hours.csv' }],
    code: ({ person, week, path }) => `${table(path)}return rows.filter((r) => r.name === "${person}" && Number(r.week) === ${week}).reduce((sum, r) => sum + Number(r.hours), 0);`,
    seconds: [
      ['close', 'how many hours did Uma work in week 21 in staff/spring.csv', { person: 'Uma', week: 21, path: 'staff/spring.csv' }],
      ['medium', 'hours of Zeno in week 13 in staff/hours.csv', { person: 'Zeno', week: 13 }],
      ['free', 'for week 20, how many hours were worked by Wim according to staff/spring.csv', { person: 'Wim', week: 20, path: 'staff/spring.csv' }, { note: 'order of values changed' }],
      ['medium fr', "combien d'heures Wim a-t-il travaillé en semaine 13 dans staff/hours.csv", { person: 'Wim', week: 13 }],
    ],
    distractors: [
      ['missing', 'how many hours did Yara work in staff/hours.csv'],
      ['operation', 'how much did Yara earn in week 12 in staff/hours.csv'],
    ],
  },
  {
    id: 'wage-bill',
    first: ['what did the build team cost in staff/hours.csv', { team: 'build', path: 'staff/hours.csv' }],
    code: ({ team, path }) => `${table(path)}const cost = rows.filter((r) => r.team === "${team}").map((r) => Number(r.hours) * Number(r.rate));
return (await mcp.math.statistics({ values: cost })).sum;`,
    seconds: [
      ['close', 'what did the sales team cost in staff/spring.csv', { team: 'sales', path: 'staff/spring.csv' }],
      ['medium', 'cost of the design team in staff/hours.csv', { team: 'design' }],
      ['medium', 'how much did the build team cost according to staff/spring.csv', { path: 'staff/spring.csv' }],
      ['medium fr', "combien a coûté l'équipe design dans staff/spring.csv", { team: 'design', path: 'staff/spring.csv' }],
    ],
    distractors: [
      ['operation', 'how many hours did the build team work in staff/hours.csv'],
      ['contradiction', 'what did everybody outside the build team cost in staff/hours.csv'],
    ],
  },
  {
    id: 'team-members',
    first: ['list the people of the build team in staff/hours.csv', { team: 'build', path: 'staff/hours.csv' }],
    code: ({ team, path }) => `${table(path)}return [...new Set(rows.filter((row) => row.team === "${team}").map((row) => row.name))];`,
    seconds: [
      ['close', 'list the people of the sales team in staff/spring.csv', { team: 'sales', path: 'staff/spring.csv' }],
      ['medium', 'who are the people of the design team in staff/hours.csv', { team: 'design' }],
      ['medium', 'people in team build, from staff/spring.csv', { path: 'staff/spring.csv' }],
      ['medium fr', "liste les gens de l'équipe design dans staff/spring.csv", { team: 'design', path: 'staff/spring.csv' }],
    ],
    distractors: [
      ['operation', 'how many people are in the build team in staff/hours.csv'],
      ['operation', 'move the people of the build team to sales in staff/hours.csv'],
    ],
  },
  {
    id: 'films-by-director',
    first: ['which films by Okafor are in films/shelf.json', { director: 'Okafor', path: 'films/shelf.json' }],
    code: ({ director, path }) => `${document(path)}return list.filter((film) => film.director === "${director}").map((film) => film.title);`,
    seconds: [
      ['close', 'which films by Lindt are in films/loaned.json', { director: 'Lindt', path: 'films/loaned.json' }],
      ['medium', 'list the films by Ruiz in films/loaned.json', { director: 'Ruiz', path: 'films/loaned.json' }],
      ['medium', 'films in films/shelf.json by Lindt', { director: 'Lindt' }, { note: 'order of values changed' }],
      ['medium fr', 'quels films de Lindt sont dans films/shelf.json', { director: 'Lindt' }],
    ],
    distractors: [
      ['operation', 'how long are the films by Okafor in films/shelf.json'],
      ['operation', 'which films about Okafor are in films/shelf.json'],
    ],
  },
  {
    id: 'best-film',
    first: ['title of the film with the highest rating in films/shelf.json', { path: 'films/shelf.json' }],
    code: ({ path }) => `${document(path)}return list.reduce((a, b) => (b.rating > a.rating ? b : a)).title;`,
    seconds: [
      ['close', 'title of the film with the highest rating in films/loaned.json', { path: 'films/loaned.json' }],
      ['medium', 'which film has the highest rating in films/loaned.json? I need its title', { path: 'films/loaned.json' }],
      ['free', 'what is the best rated film in films/loaned.json called', { path: 'films/loaned.json' }],
      ['medium fr', 'titre du film avec la note la plus haute dans films/loaned.json', { path: 'films/loaned.json' }],
    ],
    distractors: [
      ['contradiction', 'title of the film with the lowest rating in films/loaned.json'],
      ['operation', 'title of the longest film in films/loaned.json'],
    ],
  },
  {
    id: 'short-films',
    first: ['films shorter than 100 minutes in films/shelf.json', { minutes: 100, path: 'films/shelf.json' }],
    code: ({ minutes, path }) => `${document(path)}return list.filter((film) => film.minutes < ${minutes}).map((film) => film.title);`,
    seconds: [
      ['close', 'films shorter than 90 minutes in films/loaned.json', { minutes: 90, path: 'films/loaned.json' }],
      ['medium', 'which films in films/shelf.json are shorter than 120 minutes', { minutes: 120 }, { note: 'order of values changed' }],
      ['free', 'show films of less than 110 minutes from films/shelf.json', { minutes: 110 }],
      ['medium fr', 'films de moins de 95 minutes dans films/loaned.json', { minutes: 95, path: 'films/loaned.json' }],
    ],
    distractors: [
      ['contradiction', 'films longer than 100 minutes in films/shelf.json'],
      ['operation', 'films shorter than 2 hours in films/shelf.json'],
    ],
  },
  {
    id: 'films-of-genre',
    first: ['how many thriller films are in films/shelf.json', { genre: 'thriller', path: 'films/shelf.json' }],
    code: ({ genre, path }) => `${document(path)}return list.filter((film) => film.genres.includes("${genre}")).length;`,
    seconds: [
      ['close', 'how many comedy films are in films/loaned.json', { genre: 'comedy', path: 'films/loaned.json' }],
      ['medium', 'number of drama films in films/shelf.json', { genre: 'drama' }],
      ['medium', 'count the sea films in films/shelf.json', { genre: 'sea' }],
      ['medium fr', 'combien de films thriller y a-t-il dans films/loaned.json', { path: 'films/loaned.json' }],
    ],
    distractors: [
      ['operation', 'which thriller films are in films/shelf.json'],
      ['constraint', 'how many thriller films by Lindt are in films/shelf.json'],
    ],
  },
  {
    id: 'hotel-cost',
    first: ['total hotel cost of the trip in trips/alps.json', { path: 'trips/alps.json' }],
    code: ({ path }) => `${document(path)}let cost = 0;
for (const day of list.days) cost += day.hotel;
return cost;`,
    seconds: [
      ['close', 'total hotel cost of the trip in trips/coast.json', { path: 'trips/coast.json' }],
      ['medium', 'what do the hotels of the trip in trips/coast.json cost in total', { path: 'trips/coast.json' }],
      ['medium fr', "coût total des hôtels du voyage dans trips/coast.json", { path: 'trips/coast.json' }],
    ],
    distractors: [
      ['operation', 'cheapest hotel of the trip in trips/coast.json'],
      ['operation', 'book the hotels of the trip in trips/coast.json'],
    ],
  },
  {
    id: 'hire',
    first: ['add Sven of Oslo with the email sven@oslo.test to people/clients.json', { person: 'Sven', town: 'Oslo', email: 'sven@oslo.test', path: 'people/clients.json' }],
    code: ({ person, town, email, path }) => `${document(path)}list.push({ name: "${person}", email: "${email}", town: "${town}" });
await mcp.fs.write({ path: "${path}", content: JSON.stringify(list) });
return list.length;`,
    seconds: [
      ['close', 'add Ana of Lima with the email ana@lima.test to people/friends.json', { person: 'Ana', town: 'Lima', email: 'ana@lima.test', path: 'people/friends.json' }],
      ['medium', 'to people/friends.json add Kofi of Accra with the email kofi@accra.test', { person: 'Kofi', town: 'Accra', email: 'kofi@accra.test', path: 'people/friends.json' }, { note: 'order of values changed' }],
      ['medium fr', 'ajoute Lise de Gand avec le courriel lise@gand.test à people/clients.json', { person: 'Lise', town: 'Gand', email: 'lise@gand.test' }],
    ],
    distractors: [
      ['contradiction', 'remove Sven of Oslo with the email sven@oslo.test from people/clients.json'],
      ['missing', 'add Ana of Lima to people/friends.json'],
    ],
  },
  {
    id: 'replace-word',
    first: ['replace "card" by "badge" everywhere in letters/bank.txt', { old: 'card', new: 'badge', path: 'letters/bank.txt' }],
    code: (v) => `const file = await mcp.fs.read({ path: "${v.path}" });
const { text, replaced } = await mcp.text.replace({ text: file.content, find: "${v.old}", with: "${v.new}" });
await mcp.fs.write({ path: "${v.path}", content: text });
return replaced;`,
    seconds: [
      ['close', 'replace "boiler" by "stove" everywhere in letters/landlord.txt', { old: 'boiler', new: 'stove', path: 'letters/landlord.txt' }],
      ['medium', 'in letters/bank.txt replace "new" by "second" everywhere', { old: 'new', new: 'second' }, { note: 'order of values changed' }],
      ['medium fr', 'remplace "valve" par "pump" partout dans letters/landlord.txt', { old: 'valve', new: 'pump', path: 'letters/landlord.txt' }],
    ],
    distractors: [
      ['contradiction', 'replace the first "card" by "badge" in letters/bank.txt'],
      ['operation', 'how often would "card" be replaced by "badge" in letters/bank.txt'],
    ],
  },
];
