// Questions to CSV files.

const table = (path) => `const file = await mcp.fs.read({ path: "${path}" });\nconst { rows } = await mcp.csv.parse({ csv: file.content });\n`;

export const TABLES = [
  {
    id: 'tickets-of',
    first: ['list the titles of the tickets of Nadia in tickets/open.csv', { person: 'Nadia', path: 'tickets/open.csv' }],
    code: ({ person, path }) => `${table(path)}return rows.filter((r) => r.owner === "${person}").map((r) => r.title);`,
    seconds: [
      ['close', 'list the titles of the tickets of Karl in tickets/open.csv', { person: 'Karl' }],
      ['medium', 'which tickets belong to Tomas in tickets/archive.csv? give the titles', { person: 'Tomas', path: 'tickets/archive.csv' }],
      ['medium fr', 'liste les titres des tickets de Ines dans tickets/archive.csv', { person: 'Ines', path: 'tickets/archive.csv' }],
    ],
    distractors: [
      ['operation', 'give the tickets of Karl in tickets/open.csv to Ines'],
      ['contradiction', 'list the titles of the tickets in tickets/open.csv that are not of Karl'],
    ],
    again: [['list the titles of the tickets of Tomas in tickets/archive.csv', { person: 'Tomas', path: 'tickets/archive.csv' }]],
  },
  {
    id: 'hours-by-priority',
    first: ['how many hours do the high priority tickets in tickets/open.csv take', { priority: 'high', path: 'tickets/open.csv' }],
    code: ({ priority, path }) => `${table(path)}let hours = 0;
for (const row of rows) if (row.priority === "${priority}") hours += Number(row.hours);
return hours;`,
    seconds: [
      ['close', 'how many hours do the low priority tickets in tickets/open.csv take', { priority: 'low' }],
      ['medium', 'total hours of medium priority tickets in tickets/archive.csv', { priority: 'medium', path: 'tickets/archive.csv' }],
      ['medium fr', "combien d'heures prennent les tickets de priorité high dans tickets/archive.csv", { path: 'tickets/archive.csv' }],
    ],
    distractors: [
      ['operation', 'how many high priority tickets are in tickets/archive.csv'],
      ['constraint', 'how many hours do the high priority tickets of Nadia in tickets/open.csv take'],
    ],
  },
  {
    id: 'opened-after',
    first: ['which tickets in tickets/open.csv were opened after 2026-02-09', { path: 'tickets/open.csv', date: '2026-02-09' }],
    code: ({ path, date }) => `${table(path)}return rows.filter((r) => r.opened > "${date}").map((r) => r.id);`,
    seconds: [
      ['close', 'which tickets in tickets/archive.csv were opened after 2025-11-01', { path: 'tickets/archive.csv', date: '2025-11-01' }],
      ['medium', 'tickets opened after 2026-02-15 in tickets/open.csv', { date: '2026-02-15' }, { note: 'order of values changed' }],
      ['medium fr', 'quels tickets de tickets/archive.csv ont été ouverts après 2025-12-01', { path: 'tickets/archive.csv', date: '2025-12-01' }],
    ],
    distractors: [
      ['contradiction', 'which tickets in tickets/open.csv were opened before 2026-02-09'],
      ['operation', 'which tickets in tickets/open.csv were closed after 2026-02-09'],
    ],
  },
  {
    id: 'long-loans',
    first: ['which books in loans/spring.csv are out for more than 30 days', { path: 'loans/spring.csv', days: 30 }],
    code: ({ path, days }) => `${table(path)}return rows.filter((row) => Number(row.days) > ${days}).map((row) => row.book);`,
    seconds: [
      ['close', 'which books in loans/winter.csv are out for more than 50 days', { path: 'loans/winter.csv', days: 50 }],
      ['medium', 'books in loans/spring.csv lent out for over 35 days', { days: 35 }],
      ['medium fr', 'quels livres de loans/winter.csv sont sortis depuis plus de 20 jours', { path: 'loans/winter.csv', days: 20 }],
    ],
    distractors: [
      ['operation', 'which books in loans/winter.csv are out for more than 2 months'],
      ['contradiction', 'which books in loans/winter.csv are out for less than 50 days'],
    ],
  },
  {
    id: 'branch-fines',
    first: ['sum of the fines of the north branch in loans/spring.csv', { branch: 'north', path: 'loans/spring.csv' }],
    code: ({ branch, path }) => `${table(path)}const fines = rows.filter((r) => r.branch === "${branch}").map((r) => Number(r.fine));
return (await mcp.math.statistics({ values: fines })).sum;`,
    seconds: [
      ['close', 'sum of the fines of the west branch in loans/winter.csv', { branch: 'west', path: 'loans/winter.csv' }],
      ['medium', 'what do the fines of the south branch add up to in loans/winter.csv', { branch: 'south', path: 'loans/winter.csv' }],
      ['medium fr', "somme des amendes de l'agence south dans loans/spring.csv", { branch: 'south' }],
    ],
    distractors: [
      ['operation', 'number of fines of the south branch in loans/winter.csv'],
      ['operation', 'cancel the fines of the west branch in loans/winter.csv'],
    ],
  },
  {
    id: 'heaviest-parcels',
    first: ['the 2 heaviest parcels in parcels/north.csv', { count: 2, path: 'parcels/north.csv' }],
    code: ({ count, path }) => `${table(path)}rows.sort((a, b) => Number(b.kg) - Number(a.kg));
return rows.slice(0, ${count}).map((r) => r.code);`,
    seconds: [
      ['close', 'the 1 heaviest parcels in parcels/south.csv', { count: 1, path: 'parcels/south.csv' }],
      ['medium', 'give me the 3 heaviest parcels of parcels/north.csv', { count: 3 }],
      ['medium fr', 'les 2 colis les plus lourds de parcels/south.csv', { path: 'parcels/south.csv' }],
    ],
    distractors: [
      ['contradiction', 'the 2 lightest parcels in parcels/south.csv'],
      ['operation', 'weigh the 2 heaviest parcels in parcels/south.csv again'],
    ],
    again: [['the 3 heaviest parcels in parcels/south.csv', { count: 3, path: 'parcels/south.csv' }]],
  },
  {
    id: 'parcels-in-state',
    first: ['how many parcels are lost in parcels/north.csv', { state: 'lost', path: 'parcels/north.csv' }],
    code: ({ state, path }) => `${table(path)}return rows.filter((r) => r.state === "${state}").length;`,
    seconds: [
      ['close', 'how many parcels are held in parcels/south.csv', { state: 'held', path: 'parcels/south.csv' }],
      ['medium', 'number of sent parcels in parcels/north.csv', { state: 'sent' }],
    ],
    distractors: [
      ['contradiction', 'how many parcels are not lost in parcels/south.csv'],
      ['constraint', 'how many parcels are lost in parcels/south.csv near Nice'],
    ],
  },
  {
    id: 'flights-on-route',
    first: ['which flights go from Lyon to Oslo in flights/monday.csv', { from: 'Lyon', to: 'Oslo', path: 'flights/monday.csv' }],
    code: ({ from, to, path }) => `${table(path)}return rows.filter((r) => r.from === "${from}" && r.to === "${to}").map((r) => r.flight);`,
    seconds: [
      ['close', 'which flights go from Oslo to Porto in flights/sunday.csv', { from: 'Oslo', to: 'Porto', path: 'flights/sunday.csv' }],
      ['medium', 'which flights go to Lyon from Porto in flights/sunday.csv', { from: 'Porto', to: 'Lyon', path: 'flights/sunday.csv' }, { note: 'order of values changed' }],
      ['medium fr', 'quels vols vont de Turin à Lyon dans flights/monday.csv', { from: 'Turin', to: 'Lyon' }],
    ],
    distractors: [
      ['contradiction', 'which flights do not go from Lyon to Oslo in flights/monday.csv'],
      ['missing', 'which flights go to Oslo in flights/monday.csv'],
    ],
  },
  {
    id: 'free-seats',
    first: ['which flights in flights/monday.csv have at least 10 free seats', { path: 'flights/monday.csv', seats: 10 }],
    code: ({ path, seats }) => `${table(path)}return rows.filter((r) => parseInt(r.seats, 10) >= ${seats}).map((r) => r.flight);`,
    seconds: [
      ['close', 'which flights in flights/sunday.csv have at least 5 free seats', { path: 'flights/sunday.csv', seats: 5 }],
      ['medium', 'flights with 20 free seats or more in flights/sunday.csv', { path: 'flights/sunday.csv', seats: 20 }, { note: 'order of values changed' }],
      ['medium fr', 'quels vols de flights/monday.csv ont au moins 7 places libres', { seats: 7 }],
    ],
    distractors: [
      ['contradiction', 'which flights in flights/sunday.csv have at most 5 free seats'],
      ['operation', 'book 5 free seats in flights/sunday.csv'],
    ],
  },
  {
    id: 'gate-of',
    first: ['at which gate does KX333 leave in flights/monday.csv', { flight: 'KX333', path: 'flights/monday.csv' }],
    code: ({ flight, path }) => `${table(path)}const hit = rows.find((r) => r.flight === "${flight}");
return hit ? hit.gate : "unknown";`,
    seconds: [
      ['close', 'at which gate does KX206 leave in flights/sunday.csv', { flight: 'KX206', path: 'flights/sunday.csv' }],
      ['medium', 'gate of KX410 in flights/monday.csv?', { flight: 'KX410' }],
      ['medium fr', 'à quelle porte part KX344 dans flights/sunday.csv', { flight: 'KX344', path: 'flights/sunday.csv' }],
    ],
    distractors: [
      ['operation', 'at what time does KX206 leave in flights/sunday.csv'],
      ['operation', 'move KX206 to another gate in flights/sunday.csv'],
    ],
  },
  {
    id: 'warmest-time',
    first: ['at what time was it warmest in sensors/roof.csv', { path: 'sensors/roof.csv' }],
    code: ({ path }) => `${table(path)}const best = rows.reduce((a, b) => (Number(b.celsius) > Number(a.celsius) ? b : a));
return best.time;`,
    seconds: [
      ['close', 'at what time was it warmest in sensors/cellar.csv', { path: 'sensors/cellar.csv' }],
      ['medium fr', 'à quelle heure faisait-il le plus chaud dans sensors/cellar.csv', { path: 'sensors/cellar.csv' }],
    ],
    distractors: [
      ['contradiction', 'at what time was it coldest in sensors/cellar.csv'],
      ['operation', 'at what time was it most humid in sensors/cellar.csv'],
    ],
  },
  {
    id: 'humidity-between',
    first: ['average humidity from 09:00 to 15:00 in sensors/roof.csv', { from: '09:00', to: '15:00', path: 'sensors/roof.csv' }],
    code: ({ from, to, path }) => `${table(path)}const values = rows.filter((r) => r.time >= "${from}" && r.time <= "${to}").map((r) => Number(r.humidity));
const { mean } = await mcp.math.statistics({ values });
return (await mcp.math.round({ value: mean, digits: 1 })).value;`,
    seconds: [
      ['close', 'average humidity from 06:00 to 12:00 in sensors/cellar.csv', { from: '06:00', to: '12:00', path: 'sensors/cellar.csv' }],
      ['medium', 'mean humidity in sensors/roof.csv from 12:00 to 18:00', { from: '12:00', to: '18:00' }, { note: 'order of values changed' }],
      ['medium fr', 'humidité moyenne de 06:00 à 09:00 dans sensors/roof.csv', { from: '06:00', to: '09:00' }],
    ],
    distractors: [
      ['operation', 'average temperature from 06:00 to 12:00 in sensors/cellar.csv'],
      ['operation', 'highest humidity from 06:00 to 12:00 in sensors/cellar.csv'],
    ],
  },
  {
    id: 'account-balance',
    first: ['what is the balance of the fuel account in ledger/april.csv', { account: 'fuel', path: 'ledger/april.csv' }],
    code: ({ account, path }) => `${table(path)}let balance = 0;
for (const { account, debit, credit } of rows) {
  if (account !== "${account}") continue;
  balance += Number(credit) - Number(debit);
}
return Math.round(balance * 100) / 100;`,
    seconds: [
      ['close', 'what is the balance of the sales account in ledger/april.csv', { account: 'sales' }],
      ['medium', 'balance of the repairs account according to ledger/may.csv', { account: 'repairs', path: 'ledger/may.csv' }],
      ['medium fr', 'quel est le solde du compte rent dans ledger/may.csv', { account: 'rent', path: 'ledger/may.csv' }],
    ],
    distractors: [
      ['constraint', 'what is the balance of the fuel account in ledger/april.csv before 2026-04-15'],
      ['operation', 'close the fuel account in ledger/april.csv'],
    ],
  },
  {
    id: 'debits-in-period',
    first: [
      'sum the debits in ledger/april.csv from 2026-04-01 to 2026-04-15',
      { path: 'ledger/april.csv', from: '2026-04-01', to: '2026-04-15' },
    ],
    code: ({ path, from, to }) => `${table(path)}const inside = rows.filter((r) => r.date >= "${from}" && r.date <= "${to}");
const total = inside.reduce((sum, r) => sum + Number(r.debit), 0);
return Math.round(total * 100) / 100;`,
    seconds: [
      ['close', 'sum the debits in ledger/may.csv from 2026-05-01 to 2026-05-05', { path: 'ledger/may.csv', from: '2026-05-01', to: '2026-05-05' }],
      ['medium', 'from 2026-05-05 to 2026-05-31, what do the debits in ledger/may.csv sum up to', { path: 'ledger/may.csv', from: '2026-05-05', to: '2026-05-31' }, { note: 'order of values changed' }],
      ['medium fr', 'additionne les débits de ledger/april.csv de 2026-04-10 à 2026-04-30', { from: '2026-04-10', to: '2026-04-30' }],
    ],
    distractors: [
      ['contradiction', 'sum the credits in ledger/may.csv from 2026-05-01 to 2026-05-05'],
      ['missing', 'sum the debits in ledger/may.csv from 2026-05-10'],
    ],
  },
  {
    id: 'club-members',
    first: ['who plays for Rook in scores/chess.csv', { club: 'Rook', path: 'scores/chess.csv' }],
    code: ({ club, path }) => `${table(path)}return rows.filter((row) => row["club"] === "${club}").map((row) => row["player"]);`,
    seconds: [
      ['close', 'who plays for Stone in scores/go.csv', { club: 'Stone', path: 'scores/go.csv' }],
      ['medium', 'which players of King are in scores/chess.csv', { club: 'King' }],
      ['medium fr', 'qui joue pour Moon dans scores/go.csv', { club: 'Moon', path: 'scores/go.csv' }],
    ],
    distractors: [
      ['contradiction', 'who plays against Stone in scores/go.csv'],
      ['operation', 'who is the best player of Stone in scores/go.csv'],
    ],
  },
  {
    id: 'win-percentage',
    first: ['win percentage of Abel in scores/chess.csv', { player: 'Abel', path: 'scores/chess.csv' }],
    code: ({ player, path }) => `${table(path)}const p = rows.find((r) => r.player === "${player}");
const share = Number(p.wins) / (Number(p.wins) + Number(p.losses));
return (await mcp.math.round({ value: share * 100, digits: 1 })).value;`,
    seconds: [
      ['close', 'win percentage of Fumi in scores/go.csv', { player: 'Fumi', path: 'scores/go.csv' }],
      ['medium', 'what percentage of games did Britt win in scores/chess.csv', { player: 'Britt' }],
      ['medium fr', 'pourcentage de victoires de Gil dans scores/go.csv', { player: 'Gil', path: 'scores/go.csv' }],
    ],
    distractors: [
      ['contradiction', 'loss percentage of Fumi in scores/go.csv'],
      ['operation', 'number of games of Fumi in scores/go.csv'],
    ],
  },
  {
    id: 'rating-lead',
    first: ['how many rating points is Dov ahead of Abel in scores/chess.csv', { ahead: 'Dov', behind: 'Abel', path: 'scores/chess.csv' }],
    code: ({ ahead, behind, path }) => `${table(path)}const rating = (name) => Number(rows.find((r) => r.player === name).rating);
return rating("${ahead}") - rating("${behind}");`,
    seconds: [
      ['close', 'how many rating points is Fumi ahead of Gil in scores/go.csv', { ahead: 'Fumi', behind: 'Gil', path: 'scores/go.csv' }],
      ['medium', 'in scores/chess.csv, how many rating points is Cora ahead of Britt', { ahead: 'Cora', behind: 'Britt' }, { note: 'order of values changed' }],
    ],
    distractors: [
      ['contradiction', 'how many rating points is Gil behind Fumi in scores/go.csv', { ok: 650 }],
      ['operation', 'how many wins is Fumi ahead of Gil in scores/go.csv'],
    ],
  },
  {
    id: 'agenda',
    first: ['what is on 2026-06-01 in calendar/june.csv', { date: '2026-06-01', path: 'calendar/june.csv' }],
    code: ({ date, path }) => `${table(path)}return rows.filter((e) => e.date === "${date}").map((e) => \`\${e.start} \${e.title}\`);`,
    seconds: [
      ['close', 'what is on 2026-07-06 in calendar/july.csv', { date: '2026-07-06', path: 'calendar/july.csv' }],
      ['medium', 'show what calendar/june.csv has on 2026-06-15', { date: '2026-06-15' }, { note: 'order of values changed' }],
      ['medium fr', "qu'y a-t-il le 2026-07-20 dans calendar/july.csv", { date: '2026-07-20', path: 'calendar/july.csv' }],
    ],
    distractors: [
      ['operation', 'cancel what is on 2026-07-06 in calendar/july.csv'],
      ['constraint', 'what is on 2026-07-06 in calendar/july.csv after 12:00'],
    ],
  },
  {
    id: 'room-minutes',
    first: ['for how many minutes is room Blue booked in calendar/june.csv', { room: 'Blue', path: 'calendar/june.csv' }],
    code: ({ room, path }) => `${table(path)}const minutes = (clock) => Number(clock.slice(0, 2)) * 60 + Number(clock.slice(3));
return rows
  .filter((e) => e.room === "${room}")
  .reduce((sum, e) => sum + minutes(e.end) - minutes(e.start), 0);`,
    seconds: [
      ['close', 'for how many minutes is room Red booked in calendar/july.csv', { room: 'Red', path: 'calendar/july.csv' }],
      ['medium', 'how many minutes are booked for room Green in calendar/june.csv', { room: 'Green' }],
      ['medium fr', 'pendant combien de minutes la salle Blue est-elle réservée dans calendar/july.csv', { path: 'calendar/july.csv' }],
    ],
    distractors: [
      ['operation', 'for how many days is room Red booked in calendar/july.csv'],
      ['contradiction', 'for how many minutes is room Red free in calendar/july.csv'],
    ],
  },
  {
    id: 'survey-share',
    first: ['what percentage of people from Graz answered yes in survey/may.csv', { city: 'Graz', answer: 'yes', path: 'survey/may.csv' }],
    code: ({ city, answer, path }) => `${table(path)}const here = rows.filter((r) => r.city === "${city}");
const count = here.filter((r) => r.answer === "${answer}").length;
return Math.round((100 * count) / here.length);`,
    seconds: [
      ['close', 'what percentage of people from Linz answered no in survey/may.csv', { city: 'Linz', answer: 'no' }],
      ['medium', 'share of people from Ulm who answered no in survey/june.csv, in percent', { city: 'Ulm', answer: 'no', path: 'survey/june.csv' }],
      ['medium fr', 'quel pourcentage des gens de Graz a répondu yes dans survey/june.csv', { path: 'survey/june.csv' }],
    ],
    distractors: [
      ['operation', 'how many people from Linz answered no in survey/may.csv'],
      ['constraint', 'what percentage of people from Graz over 30 answered yes in survey/may.csv'],
    ],
  },
  {
    id: 'age-group',
    first: ['how many people aged 20 to 40 are in survey/may.csv', { low: 20, high: 40, path: 'survey/may.csv' }],
    code: ({ low, high, path }) => `${table(path)}return rows.filter(({ age }) => Number(age) >= ${low} && Number(age) <= ${high}).length;`,
    seconds: [
      ['close', 'how many people aged 30 to 60 are in survey/may.csv', { low: 30, high: 60 }],
      ['medium', 'number of people in survey/june.csv aged 20 to 38', { high: 38, path: 'survey/june.csv' }, { note: 'order of values changed' }],
      ['medium fr', 'combien de personnes de 18 à 30 ans dans survey/may.csv', { low: 18, high: 30 }],
    ],
    distractors: [
      ['contradiction', 'how many people older than 40 are in survey/june.csv'],
      ['operation', 'how old are the people in survey/june.csv on average'],
    ],
  },
  {
    id: 'exchange',
    first: ['how many USD are 250 euros according to rates.csv', { currency: 'USD', euros: 250, path: 'rates.csv' }],
    code: ({ currency, euros, path }) => `${table(path)}const rate = Number(rows.find((r) => r.currency === "${currency}").perEuro);
return (await mcp.math.round({ value: ${euros} * rate, digits: 2 })).value;`,
    seconds: [
      ['close', 'how many JPY are 40 euros according to rates.csv', { currency: 'JPY', euros: 40 }],
      ['medium', '99 euros in GBP according to rates.csv', { currency: 'GBP', euros: 99 }, { note: 'order of values changed' }],
      ['medium fr', 'combien de CHF font 80 euros selon rates.csv', { currency: 'CHF', euros: 80 }],
    ],
    distractors: [
      ['contradiction', 'how many euros are 250 USD according to rates.csv'],
      ['missing', 'how many JPY is a euro according to rates.csv', { ok: 160 }],
    ],
    again: [['how many CHF are 10 euros according to rates.csv', { currency: 'CHF', euros: 10 }]],
  },
  {
    id: 'distinct-values',
    first: ['which different values has the column city in parcels/north.csv', { column: 'city', path: 'parcels/north.csv' }],
    code: ({ column, path }) => `${table(path)}return [...new Set(rows.map((r) => r.${column}))].sort();`,
    seconds: [
      ['close', 'which different values has the column state in parcels/south.csv', { column: 'state', path: 'parcels/south.csv' }],
      ['medium', 'list the distinct values of the column owner in tickets/open.csv', { column: 'owner', path: 'tickets/open.csv' }],
      ['medium fr', 'quelles valeurs différentes a la colonne room dans calendar/june.csv', { column: 'room', path: 'calendar/june.csv' }],
    ],
    distractors: [
      ['operation', 'which value of the column state occurs most in parcels/south.csv'],
      ['operation', 'drop the column state from parcels/south.csv'],
    ],
  },
  {
    id: 'shelf-count',
    first: ['how many pieces of bolt are in semis/garage.csv', { item: 'bolt', path: 'semis/garage.csv' }],
    code: ({ item, path }) => `const { content } = await mcp.fs.read({ path: "${path}" });
const { rows } = await mcp.csv.parse({ csv: content, delimiter: ";" });
return Number(rows.find((r) => r.item === "${item}").count);`,
    seconds: [
      ['close', 'how many pieces of hinge are in semis/garage.csv', { item: 'hinge' }],
      ['medium', 'number of pieces of lamp in semis/attic.csv', { item: 'lamp', path: 'semis/attic.csv' }],
      ['medium fr', 'combien de pièces de rug y a-t-il dans semis/attic.csv', { item: 'rug', path: 'semis/attic.csv' }],
    ],
    distractors: [
      ['operation', 'on which shelf is hinge in semis/garage.csv'],
      ['operation', 'order 10 pieces of hinge for semis/garage.csv'],
    ],
  },
  {
    id: 'sorted-by',
    first: ['list the players in scores/go.csv by wins', { column: 'wins', path: 'scores/go.csv' }],
    args: { column: 'column', path: 'path' },
    code: () => `const { content } = await mcp.fs.read({ path: args.path });
const { rows } = await mcp.csv.parse({ csv: content });
return rows.sort((a, b) => Number(b[args.column]) - Number(a[args.column])).map((r) => r.player);`,
    seconds: [
      ['close', 'list the players in scores/chess.csv by losses', { column: 'losses', path: 'scores/chess.csv' }],
      ['close', 'list the players in scores/chess.csv by rating', { column: 'rating', path: 'scores/chess.csv' }, { context: { column: 'rating', path: 'scores/chess.csv' } }],
      ['medium fr', 'liste les joueurs de scores/chess.csv par wins', { path: 'scores/chess.csv' }],
    ],
    distractors: [
      ['contradiction', 'list the players in scores/chess.csv by wins, worst first'],
      ['operation', 'list the clubs in scores/chess.csv by wins'],
    ],
  },
  {
    id: 'rows-where',
    first: ['show the rows of survey/june.csv where city is Ulm', { path: 'survey/june.csv', column: 'city', value: 'Ulm' }],
    args: { path: 'file', column: 'column', value: 'value' },
    code: () => `const file = await mcp.fs.read({ path: args.file });
const { rows } = await mcp.csv.parse({ csv: file.content });
return rows.filter((row) => row[args.column] === args.value);`,
    seconds: [
      ['close', 'show the rows of survey/may.csv where answer is no', { path: 'survey/may.csv', column: 'answer', value: 'no' }],
      ['medium', 'rows where owner is Karl in tickets/open.csv', { path: 'tickets/open.csv', column: 'owner', value: 'Karl' }, { note: 'order of values changed' }],
      ['medium fr', 'montre les lignes de parcels/south.csv où city est Nice', { path: 'parcels/south.csv', column: 'city', value: 'Nice' }],
    ],
    distractors: [
      ['contradiction', 'show the rows of survey/may.csv where answer is not no'],
      ['operation', 'delete the rows of survey/may.csv where answer is no'],
    ],
  },
];
