// The files, git repositories and knowledge graph that the tasks work on. Always the same, to the byte.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const lines = (...all) => `${all.join('\n')}\n`;
const json = (value) => `${JSON.stringify(value, null, 2)}\n`;

const TEXTS = {
  'recipes/pancakes.txt': lines('Pancakes', 'serves: 4', '200 g flour', '300 ml milk', '2 eggs', '1 tsp salt'),
  'recipes/chili.txt': lines('Chili', 'serves: 6', '500 g beans', '400 g tomatoes', '2 onions', '3 tsp paprika'),
  'recipes/crepes.txt': lines('Crepes', 'serves: 3', '250 g flour', '500 ml milk', '4 eggs', '50 g butter'),
  'poems/river.txt': lines(
    'The river runs below the stone,',
    'it carries leaves and light alone,',
    'and no one asks it where it goes.',
    '',
    'The river knows what nobody knows,',
    'a slow grey song that never slows.',
  ),
  'poems/snow.txt': lines(
    'Snow on the roof, snow on the hill,',
    'the morning stands completely still.',
    '',
    'A bird, a branch, a little snow,',
    'and nothing else that I could know.',
    '',
    'Then noon arrives and lets it go.',
  ),
  'poems/harbour.txt': lines(
    'Ropes and gulls and rusted chains,',
    'the harbour hums in winter rains,',
    'the ferry waits, the ferry goes.',
  ),
  'subs/film.srt': lines(
    '1',
    '00:00:01,000 --> 00:00:03,500',
    'Where have you been?',
    '',
    '2',
    '00:00:04,000 --> 00:00:06,000',
    'At the station, waiting.',
    '',
    '3',
    '00:00:07,250 --> 00:00:09,000',
    'For whom?',
  ),
  'subs/trailer.srt': lines(
    '1',
    '00:00:00,500 --> 00:00:02,000',
    'This summer.',
    '',
    '2',
    '00:00:02,500 --> 00:00:05,000',
    'Nobody waits.',
  ),
  'mail/renewal.eml': lines(
    'From: Ines Duarte <ines@lumen.test>',
    'To: Tomas Reyes <tomas@nordlys.test>',
    'Subject: Renewal of the licence',
    'Date: Tue, 3 Mar 2026 09:15:00 +0000',
    '',
    'Dear Tomas,',
    'the licence LX-204 ends on 2026-04-30. The new price is EUR 480.00.',
    'Ines',
  ),
  'mail/parcel.eml': lines(
    'From: Depot <depot@kurier.test>',
    'To: Nadia Berg <nadia@nordlys.test>',
    'Subject: Your parcel is here',
    'Date: Fri, 6 Mar 2026 17:40:00 +0000',
    '',
    'Parcel KR-8841 waits for you until 2026-03-20. Storage costs EUR 3.50.',
  ),
  'mail/dinner.eml': lines(
    'From: Nadia Berg <nadia@nordlys.test>',
    'To: Ines Duarte <ines@lumen.test>',
    'Subject: Dinner on Saturday?',
    'Date: Sat, 7 Mar 2026 08:00:00 +0000',
    '',
    'Shall we meet at 19:30? I bring the crepes.',
  ),
  'access/front.log': lines(
    '10.0.0.7 GET /home 200 35',
    '10.0.0.9 GET /cart 200 120',
    '10.0.0.7 POST /login 401 80',
    '10.0.0.7 POST /login 200 95',
    '10.0.0.4 GET /old 404 12',
    '10.0.0.9 POST /order 500 730',
    '10.0.0.9 GET /home 200 30',
  ),
  'access/api.log': lines(
    '10.0.1.2 GET /v1/items 200 15',
    '10.0.1.2 DELETE /v1/items/4 403 22',
    '10.0.1.5 GET /v1/items 200 18',
    '10.0.1.5 PUT /v1/items/9 500 410',
    '10.0.1.8 GET /v1/none 404 9',
    '10.0.1.8 GET /v1/nil 404 8',
  ),
  'access/night.log': lines('10.0.2.1 GET /ping 200 2', '10.0.2.1 GET /ping 200 3', '10.0.2.6 GET /metrics 403 5'),
  'ini/app.ini': lines('[window]', 'width = 1280', 'height = 720', 'theme = dusk', '', '[cache]', 'size = 64', 'ttl = 300'),
  'ini/db.ini': lines('[pool]', 'size = 10', 'timeout = 30', '', '[cache]', 'size = 128', 'ttl = 60'),
  'ini/mail.ini': lines('[smtp]', 'host = mx.lumen.test', 'port = 2525', '', '[queue]', 'size = 40', 'ttl = 900'),
  'releases/kite.md': lines(
    '# Kite',
    '',
    '## 2.1.0 (2026-02-10)',
    '',
    '- Added: export to PDF',
    '- Fixed: crash on empty table',
    '',
    '## 2.0.0 (2025-11-02)',
    '',
    '- Removed: old importer',
    '- Added: plugins',
    '- Added: dark colours',
  ),
  'releases/otter.md': lines(
    '# Otter',
    '',
    '## 0.9.1 (2026-01-20)',
    '',
    '- Fixed: slow start',
    '- Fixed: wrong time zone',
    '',
    '## 0.9.0 (2025-12-01)',
    '',
    '- Added: search',
  ),
  'vocab/animals.tsv': 'chat\tcat\nchien\tdog\ncheval\thorse\noiseau\tbird\n',
  'vocab/kitchen.tsv': 'couteau\tknife\ncuillère\tspoon\nassiette\tplate\n',
  'minutes/board.md': lines(
    '# Board',
    'Present: Nadia, Tomas, Ines',
    'DECISION: rent the second floor',
    'ACTION Nadia: sign the lease',
    'ACTION Tomas: order desks',
    'DECISION: no travel in May',
    'ACTION Nadia: tell the team',
  ),
  'minutes/design.md': lines(
    '# Design',
    'Present: Ines, Karl',
    'ACTION Karl: draw the icons',
    'DECISION: one typeface',
    'ACTION Ines: test with users',
    'ACTION Karl: clean the palette',
  ),
  'logs/build.txt': lines(
    'step compile took 41 s',
    'step test took 73 s',
    'warning: unused variable `x`',
    'step package took 9 s',
    'warning: deprecated call',
  ),
  'logs/nightly.txt': lines('step compile took 65 s', 'warning: slow link', 'step test took 180 s', 'step publish took 12 s'),
  'wiki/pumps.md': lines('---', 'owner: Karl', 'status: draft', 'review: 2026-05-01', '---', '# Pumps', '', 'See valves.'),
  'wiki/valves.md': lines('---', 'owner: Ines', 'status: final', 'review: 2026-09-15', '---', '# Valves', '', 'Closed by hand.'),
  'wiki/filters.md': lines('---', 'owner: Karl', 'status: final', 'review: 2026-06-30', '---', '# Filters', '', 'Change yearly.'),
  'shots/paris/p1.jpg': 'a'.repeat(120),
  'shots/paris/p2.jpg': 'b'.repeat(340),
  'shots/paris/p3.raw': 'c'.repeat(900),
  'shots/paris/notes.txt': 'old bridge\n',
  'shots/oslo/o1.jpg': 'd'.repeat(260),
  'shots/oslo/o2.png': 'e'.repeat(75),
  'shots/oslo/o3.raw': 'f'.repeat(640),
  'shots/oslo/o4.raw': 'g'.repeat(510),
  'lab/run1.txt': lines('sample=A7', 'mass=12.5', 'temp=301', 'ok=true'),
  'lab/run2.txt': lines('sample=B3', 'mass=9.75', 'temp=288', 'ok=false'),
  'lab/run3.txt': lines('sample=A9', 'mass=11', 'temp=295', 'ok=true'),
  'queue/monday.txt': lines('print badges', 'call the bank', 'order toner'),
  'queue/tuesday.txt': lines('water the ficus', 'test the alarm'),
  'queue/sunday.txt': lines('sleep'),
  'hosts.txt': lines('127.0.0.1 localhost', '10.1.0.5 db.lan', '10.1.0.6 cache.lan'),
  'lanhosts.txt': lines('10.2.0.5 mail.lan', '10.2.0.9 wiki.lan'),
  'style/site.css': lines(':root {', '  --accent: #336699;', '  --paper: #fdf6e3;', '}', 'h1 { color: #336699; }'),
  'style/print.css': lines(':root {', '  --accent: #000000;', '  --paper: #ffffff;', '}', 'h2 { color: #000000; }'),
  'trash/old1.log': 'x\n',
  'trash/old2.log': 'yy\n',
  'trash/keep.txt': 'keep\n',
  'letters/landlord.txt': lines('Dear Landlord,', '', 'The Boiler is broken again.', 'the boiler needs a new valve.', 'BOILER service costs 140 euros.', '', 'Regards'),
  'letters/bank.txt': lines('Dear bank,', '', 'My card expired. The Card number ends in 7.', 'Please send a new card.'),
  'drawers/top.txt': lines('pens', '', '  tape  ', 'stamps', ''),
  'drawers/low.txt': lines(' rope', 'glue', '', '', 'nails '),
  'scratch/one.log': '1\n',
  'scratch/two.log': '22\n',
  'scratch/three.txt': '333\n',
};

const TABLES = {
  'tickets/open.csv': lines(
    'id,title,owner,priority,hours,opened',
    'T1,Login fails,Nadia,high,5,2026-02-01',
    'T2,Typo in footer,Karl,low,1,2026-02-03',
    'T3,Slow report,Nadia,medium,8,2026-02-10',
    'T4,Broken export,Ines,high,13,2026-02-14',
    'T5,New icon,Karl,low,2,2026-02-20',
  ),
  'tickets/archive.csv': lines(
    'id,title,owner,priority,hours,opened',
    'T90,Wrong logo,Ines,low,3,2025-10-02',
    'T91,Data loss,Tomas,high,21,2025-11-11',
    'T92,Mail bounce,Tomas,medium,4,2025-12-24',
  ),
  'loans/spring.csv': lines(
    'book,reader,branch,days,fine',
    'Dune,Omar,north,12,0',
    'Emma,Pia,south,40,2.5',
    'Ulysses,Omar,north,61,6',
    'Beloved,Rui,north,33,1.5',
    'Hamlet,Pia,east,7,0',
  ),
  'loans/winter.csv': lines(
    'book,reader,branch,days,fine',
    'Faust,Sara,west,55,4',
    'Kim,Omar,south,18,0',
    'Persuasion,Sara,west,29,0.5',
    'Nostromo,Theo,south,90,11',
  ),
  'sensors/roof.csv': lines(
    'time,celsius,humidity',
    '06:00,4.5,81',
    '09:00,8,72',
    '12:00,14.5,55',
    '15:00,16,49',
    '18:00,11,60',
  ),
  'sensors/cellar.csv': lines('time,celsius,humidity', '06:00,12,66', '12:00,12.5,67', '18:00,12.25,70'),
  'flights/monday.csv': lines(
    'flight,from,to,minutes,seats,gate',
    'KX101,Lyon,Porto,135,12,A4',
    'KX205,Lyon,Oslo,150,0,B2',
    'KX333,Turin,Lyon,65,40,A1',
    'KX410,Porto,Oslo,215,7,C9',
  ),
  'flights/sunday.csv': lines(
    'flight,from,to,minutes,seats,gate',
    'KX102,Porto,Lyon,140,3,C1',
    'KX206,Oslo,Turin,170,22,D3',
    'KX340,Lyon,Turin,70,0,A2',
    'KX344,Oslo,Porto,210,9,D4',
  ),
  'ledger/april.csv': lines(
    'date,account,debit,credit',
    '2026-04-02,rent,800,0',
    '2026-04-05,sales,0,1250.5',
    '2026-04-11,fuel,64.2,0',
    '2026-04-20,sales,0,310',
    '2026-04-28,fuel,58.8,0',
  ),
  'ledger/may.csv': lines(
    'date,account,debit,credit',
    '2026-05-02,rent,800,0',
    '2026-05-09,repairs,143.75,0',
    '2026-05-16,sales,0,990',
  ),
  'scores/chess.csv': lines(
    'player,club,rating,wins,losses',
    'Abel,Rook,2050,14,3',
    'Britt,Pawn,1820,9,8',
    'Cora,Rook,1975,11,5',
    'Dov,King,2210,17,2',
  ),
  'scores/go.csv': lines('player,club,rating,wins,losses', 'Edo,Stone,1900,7,7', 'Fumi,Stone,2300,20,1', 'Gil,Moon,1650,3,12'),
  'calendar/june.csv': lines(
    'date,start,end,title,room',
    '2026-06-01,09:00,10:30,Kickoff,Blue',
    '2026-06-01,13:00,13:45,Budget,Green',
    '2026-06-08,09:00,09:30,Standup,Blue',
    '2026-06-15,14:00,16:00,Review,Red',
  ),
  'calendar/july.csv': lines(
    'date,start,end,title,room',
    '2026-07-06,10:00,11:00,Retro,Green',
    '2026-07-06,15:00,15:20,Demo,Blue',
    '2026-07-20,09:30,12:00,Workshop,Red',
  ),
  'parcels/north.csv': lines('code,city,kg,state', 'N1,Lille,2.5,sent', 'N2,Gent,0.8,lost', 'N3,Lille,12,sent', 'N4,Breda,7.25,held'),
  'parcels/south.csv': lines('code,city,kg,state', 'S1,Nice,3,held', 'S2,Genoa,18.5,sent', 'S3,Nice,1.2,lost'),
  'survey/may.csv': lines('respondent,age,city,answer', '1,34,Graz,yes', '2,19,Linz,no', '3,52,Graz,yes', '4,28,Graz,no', '5,45,Linz,yes'),
  'survey/june.csv': lines('respondent,age,city,answer', '6,61,Ulm,no', '7,23,Graz,yes', '8,37,Ulm,no'),
  'rates.csv': lines('currency,perEuro', 'USD,1.1', 'GBP,0.85', 'CHF,0.95', 'JPY,160'),
  'semis/garage.csv': lines('item;shelf;count', 'bolt;A;40', 'hinge;B;6', 'screw;A;200'),
  'semis/attic.csv': lines('item;shelf;count', 'lamp;C;2', 'rug;D;1'),
  'energy/january.csv': lines('day,meter,kwh,cost', '2026-01-05,kitchen,4.5,1.35', '2026-01-05,heating,18,5.4', '2026-01-06,kitchen,3.25,0.98', '2026-01-06,heating,21.5,6.45', '2026-01-07,office,2,0.6'),
  'energy/february.csv': lines('day,meter,kwh,cost', '2026-02-02,kitchen,5,1.5', '2026-02-02,heating,15.5,4.65', '2026-02-03,office,2.75,0.83', '2026-02-03,kitchen,4,1.2'),
  'school/maths.csv': lines('pupil,class,mark,absences', 'Lena,7b,14,2', 'Marc,7a,9,0', 'Noor,7b,17,5', 'Odile,7a,12,1', 'Pavel,7b,8,3'),
  'school/history.csv': lines('pupil,class,mark,absences', 'Lena,7b,11,1', 'Marc,7a,15,4', 'Noor,7b,13,0', 'Odile,7a,16,2'),
  'runs/spring.csv': lines('date,runner,km,minutes,heart', '2026-03-02,Aiko,8,44,151', '2026-03-04,Bram,5,31,160', '2026-03-09,Aiko,12.5,70,148', '2026-04-01,Bram,10,58,157'),
  'runs/summer.csv': lines('date,runner,km,minutes,heart', '2026-06-03,Aiko,10,52,150', '2026-06-10,Cleo,6,40,166', '2026-07-01,Bram,7.5,43,155'),
  'staff/hours.csv': lines('name,team,week,hours,rate', 'Yara,design,12,38,41', 'Zeno,build,12,42,37', 'Yara,design,13,30,41', 'Wim,build,13,40,35', 'Zeno,build,13,36,37'),
  'staff/spring.csv': lines('name,team,week,hours,rate', 'Yara,design,20,35,42', 'Wim,build,20,39,36', 'Uma,sales,20,28,33', 'Uma,sales,21,31,33'),
  'raw/probes.csv': lines('7,low', '9,high', '12,high'),
  'raw/valves.csv': lines('code,level', '3,low', '8,low', '5,high'),
};

const DOCUMENTS = {
  'plants/garden.json': json([
    { name: 'rose', height: 120, water: 3, sun: 'full' },
    { name: 'fern', height: 45, water: 2, sun: 'shade' },
    { name: 'sage', height: 60, water: 7, sun: 'full' },
    { name: 'hosta', height: 50, water: 4, sun: 'shade' },
  ]),
  'plants/balcony.json': json([
    { name: 'basil', height: 30, water: 1, sun: 'full' },
    { name: 'ivy', height: 200, water: 5, sun: 'half' },
    { name: 'mint', height: 40, water: 2, sun: 'half' },
  ]),
  'hosts/eu.json': json({
    'web-1': { ip: '10.1.1.1', cpu: 4, memory: 16, tags: ['web', 'public'] },
    'db-1': { ip: '10.1.1.9', cpu: 16, memory: 128, tags: ['db'] },
    'job-1': { ip: '10.1.1.20', cpu: 8, memory: 32, tags: ['batch'] },
  }),
  'hosts/us.json': json({
    'web-7': { ip: '10.7.1.1', cpu: 8, memory: 32, tags: ['web'] },
    'web-8': { ip: '10.7.1.2', cpu: 8, memory: 64, tags: ['web', 'public'] },
    'db-7': { ip: '10.7.1.9', cpu: 32, memory: 256, tags: ['db', 'backup'] },
  }),
  'flags/mobile.json': json({
    darkMode: { enabled: true, rollout: 100 },
    newCart: { enabled: false, rollout: 0 },
    voice: { enabled: true, rollout: 25 },
  }),
  'flags/desktop.json': json({
    darkMode: { enabled: true, rollout: 50 },
    newCart: { enabled: true, rollout: 10 },
    tabs: { enabled: false, rollout: 0 },
  }),
  'i18n/en.json': json({ greeting: 'Hello', farewell: 'Goodbye', thanks: 'Thank you', help: 'Help' }),
  'i18n/fr.json': json({ greeting: 'Bonjour', farewell: 'Au revoir', thanks: 'Merci' }),
  'i18n/de.json': json({ greeting: 'Hallo', thanks: 'Danke', help: 'Hilfe' }),
  'menus/lunch.json': json([
    { dish: 'soup', price: 6.5, kcal: 220, tags: ['vegan'] },
    { dish: 'omelette', price: 9, kcal: 480, tags: ['vegetarian'] },
    { dish: 'burger', price: 13, kcal: 890, tags: [] },
  ]),
  'menus/dinner.json': json([
    { dish: 'curry', price: 15, kcal: 640, tags: ['vegan', 'spicy'] },
    { dish: 'steak', price: 27.5, kcal: 760, tags: [] },
    { dish: 'risotto', price: 16, kcal: 590, tags: ['vegetarian'] },
  ]),
  'playlists/run.json': json({
    title: 'Run',
    tracks: [
      { title: 'Up', artist: 'Kara', seconds: 185 },
      { title: 'Faster', artist: 'The Tins', seconds: 240 },
      { title: 'Hill', artist: 'Kara', seconds: 320 },
    ],
  }),
  'playlists/calm.json': json({
    title: 'Calm',
    tracks: [
      { title: 'Moss', artist: 'Lowe', seconds: 410 },
      { title: 'Tide', artist: 'Mirabel', seconds: 275 },
    ],
  }),
  'pkg/web.json': json({
    name: 'web',
    version: '3.4.1',
    scripts: { build: 'vite build', test: 'vitest run' },
    dependencies: { react: '^19.0.0', zod: '^4.1.0' },
  }),
  'pkg/cli.json': json({
    name: 'cli',
    version: '0.12.0',
    scripts: { build: 'tsc', lint: 'biome check' },
    dependencies: { yargs: '^18.0.0', zod: '^3.9.2' },
  }),
  'orders/1001.json': json({ id: 1001, customer: 'Berg', lines: [{ sku: 'P4', qty: 3, price: 12.5 }, { sku: 'Q1', qty: 1, price: 80 }] }),
  'orders/1002.json': json({ id: 1002, customer: 'Reyes', lines: [{ sku: 'P4', qty: 10, price: 11 }] }),
  'orders/1003.json': json({ id: 1003, customer: 'Duarte', lines: [{ sku: 'Z9', qty: 2, price: 7.25 }, { sku: 'Q1', qty: 2, price: 80 }] }),
  'books/fiction.json': json([
    { title: 'Dune', year: 1965, pages: 612, author: 'Herbert' },
    { title: 'Emma', year: 1815, pages: 474, author: 'Austen' },
    { title: 'Kim', year: 1901, pages: 366, author: 'Kipling' },
    { title: 'Persuasion', year: 1817, pages: 249, author: 'Austen' },
  ]),
  'books/science.json': json([
    { title: 'Cosmos', year: 1980, pages: 396, author: 'Sagan' },
    { title: 'Contact', year: 1985, pages: 430, author: 'Sagan' },
    { title: 'Chaos', year: 1987, pages: 352, author: 'Gleick' },
  ]),
  'limits/free.json': json({ users: 5, storage: 10, regions: ['eu'], support: 'mail' }),
  'limits/team.json': json({ users: 50, storage: 500, regions: ['eu', 'us'], support: 'chat' }),
  'zoo/mammals.json': json({ lynx: { legs: 4, kg: 22 }, whale: { legs: 0, kg: 120000 }, hare: { legs: 4, kg: 4 } }),
  'stock/tools.json': json([
    { sku: 'H-10', name: 'hammer', bin: 'R1', stock: 12, price: 14.9, supplier: 'Ferro' },
    { sku: 'S-22', name: 'saw', bin: 'R2', stock: 0, price: 22, supplier: 'Lignum' },
    { sku: 'D-07', name: 'drill', bin: 'R1', stock: 3, price: 89, supplier: 'Ferro' },
  ]),
  'stock/paints.json': json([
    { sku: 'W-01', name: 'white', bin: 'P4', stock: 30, price: 18, supplier: 'Chroma' },
    { sku: 'B-05', name: 'blue', bin: 'P5', stock: 2, price: 21.5, supplier: 'Chroma' },
    { sku: 'V-90', name: 'varnish', bin: 'P4', stock: 0, price: 33, supplier: 'Lignum' },
  ]),
  'people/friends.json': json([
    { name: 'Sofia Marin', phone: '+33 1 44 55 66 77', email: 'sofia@marin.test', town: 'Nantes', born: '1988-05-17' },
    { name: 'Tariq Aziz', phone: '+44 20 7946 0018', email: 'tariq@aziz.test', town: 'Leeds', born: '1991-11-02' },
    { name: 'Greta Holm', phone: '+46 8 505 100 20', email: 'greta@holm.test', town: 'Malmo', born: '1975-01-30' },
  ]),
  'people/clients.json': json([
    { name: 'Hugo Prat', phone: '+34 91 000 11 22', email: 'hugo@prat.test', town: 'Cadiz', born: '1969-08-08' },
    { name: 'Mina Sato', phone: '+81 3 1234 5678', email: 'mina@sato.test', town: 'Nagoya', born: '1993-03-21' },
  ]),
  'trips/alps.json': json({ days: [{ day: 1, stop: 'Grenoble', km: 0, hotel: 95 }, { day: 2, stop: 'Briançon', km: 118, hotel: 80 }, { day: 3, stop: 'Turin', km: 108, hotel: 120 }] }),
  'trips/coast.json': json({ days: [{ day: 1, stop: 'Brest', km: 0, hotel: 70 }, { day: 2, stop: 'Lorient', km: 135, hotel: 88 }] }),
  'films/shelf.json': json([
    { title: 'Tides', director: 'Okafor', minutes: 104, rating: 7.4, genres: ['drama', 'sea'] },
    { title: 'Northbound', director: 'Lindt', minutes: 131, rating: 8.1, genres: ['thriller'] },
    { title: 'Paper Moon Hotel', director: 'Okafor', minutes: 92, rating: 6.6, genres: ['comedy', 'drama'] },
  ]),
  'films/loaned.json': json([
    { title: 'Cinder', director: 'Ruiz', minutes: 118, rating: 7.9, genres: ['thriller', 'sea'] },
    { title: 'Soft Rain', director: 'Lindt', minutes: 87, rating: 5.8, genres: ['comedy'] },
  ]),
  'zoo/birds.json': json({ heron: { legs: 2, kg: 1.8 }, owl: { legs: 2, kg: 0.9 } }),
};

/** Every file by its path. */
export const FILES = { ...TEXTS, ...TABLES, ...DOCUMENTS };

const entity = (name, entityType, ...observations) => ({ type: 'entity', name, entityType, observations });
const relation = (from, relationType, to) => ({ type: 'relation', from, to, relationType });

/** The knowledge graph, as `server-memory` keeps it. */
export const GRAPH = [
  entity('Orion', 'ship', 'built 1998', 'carries grain'),
  entity('Vega', 'ship', 'built 2007', 'carries cars'),
  entity('Lyra', 'ship', 'built 2015', 'carries grain'),
  entity('Brest', 'port', 'has 6 cranes'),
  entity('Gdansk', 'port', 'has 14 cranes', 'freezes rarely'),
  entity('Captain Moreau', 'captain', 'speaks Polish'),
  entity('Captain Lind', 'captain', 'speaks Greek', 'retires 2029'),
  entity('Baltic Line', 'carrier', 'founded 1961'),
  relation('Orion', 'docked_at', 'Brest'),
  relation('Vega', 'docked_at', 'Gdansk'),
  relation('Lyra', 'docked_at', 'Gdansk'),
  relation('Captain Moreau', 'commands', 'Orion'),
  relation('Captain Lind', 'commands', 'Lyra'),
  relation('Baltic Line', 'owns', 'Vega'),
  relation('Baltic Line', 'owns', 'Lyra'),
];

/** Commits as `[author, file, text added, message]`, and branches beside `main`, which stands at the last commit. */
const REPOSITORIES = {
  'repos/lighthouse': {
    commits: [
      ['Nadia', 'lamp.txt', 'on\n', 'light the lamp'],
      ['Karl', 'horn.txt', 'hoot\n', 'add a fog horn'],
      ['Nadia', 'lamp.txt', 'brighter\n', 'brighter lamp'],
      ['Ines', 'log.txt', 'calm\n', 'keep a log'],
      ['Karl', 'horn.txt', 'louder\n', 'louder horn'],
    ],
    branches: ['beacon', 'winter'],
  },
  'repos/tide': {
    commits: [
      ['Tomas', 'table.txt', 'high 06:12\n', 'first tide table'],
      ['Tomas', 'table.txt', 'low 12:30\n', 'add low water'],
      ['Ines', 'moon.txt', 'full\n', 'add the moon'],
    ],
    branches: ['spring'],
  },
};

/** Makes the world in `root`, which must not exist yet. */
export function makeWorld(root) {
  for (const [path, content] of Object.entries(FILES)) put(join(root, path), content);
  for (const [path, repository] of Object.entries(REPOSITORIES)) makeRepository(join(root, path), repository);
  put(join(root, 'memory.jsonl'), GRAPH.map((item) => `${JSON.stringify(item)}\n`).join('').trimEnd());
  return { root, original: snapshot(root) };
}

function makeRepository(path, { commits, branches }) {
  mkdirSync(path, { recursive: true });
  git(path, ['init', '--quiet', '--initial-branch=main']);
  commits.forEach(([author, file, text, message], day) => {
    writeFileSync(join(path, file), text, { flag: 'a' });
    git(path, ['add', file]);
    git(path, ['commit', '--quiet', '--message', message], author, `2026-01-0${day + 1}T10:00:00Z`);
  });
  for (const branch of branches) git(path, ['branch', branch]);
}

// Names and dates come from here and no configuration is read, so commits have the same ids on every machine.
function git(path, args, author = 'Nadia', date = '2026-01-01T10:00:00Z') {
  const email = `${author.toLowerCase()}@nordlys.test`;
  const env = {
    PATH: process.env.PATH,
    HOME: path,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_AUTHOR_NAME: author,
    GIT_AUTHOR_EMAIL: email,
    GIT_AUTHOR_DATE: date,
    GIT_COMMITTER_NAME: author,
    GIT_COMMITTER_EMAIL: email,
    GIT_COMMITTER_DATE: date,
  };
  execFileSync('git', ['-C', path, ...args], { env, stdio: 'ignore' });
}

/** All files of the world as they are now. Of git's own, only what says where the branches stand. */
export function snapshot(root) {
  const files = new Map();
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = relative(root, join(entry.parentPath, entry.name));
    if (path.includes('.git/') && !/\.git\/(HEAD|index|refs\/heads\/.+)$/.test(path)) continue;
    files.set(path, readFileSync(join(root, path), path.endsWith('/index') ? 'latin1' : 'utf8'));
  }
  return files;
}

/** Puts back what was changed since the world was made. */
export function restore({ root, original }) {
  const now = snapshot(root);
  for (const path of now.keys()) if (!original.has(path)) removeUpwards(root, path);
  for (const [path, content] of original) {
    if (now.get(path) !== content) put(join(root, path), content, path.endsWith('/index') ? 'latin1' : 'utf8');
  }
}

function removeUpwards(root, path) {
  rmSync(join(root, path));
  for (let folder = dirname(path); folder !== '.'; folder = dirname(folder)) {
    if (readdirSync(join(root, folder)).length > 0) return;
    rmSync(join(root, folder), { recursive: true });
  }
}

function put(file, content, encoding = 'utf8') {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content, encoding);
}

/**
 * What a run changed, as checks of a task: the content of a file (null where it is gone), or for the knowledge graph
 * `~file~regex` with whether a line of it matches.
 */
export function changes({ root, original }) {
  const now = snapshot(root);
  const checks = {};
  for (const path of new Set([...original.keys(), ...now.keys()])) {
    const [before, after] = [original.get(path), now.get(path)];
    if (before === after || path.endsWith('.git/index')) continue;
    if (path === 'memory.jsonl') Object.assign(checks, lineChecks(path, before, after));
    else checks[path] = after ?? null;
  }
  return checks;
}

function lineChecks(path, before, after) {
  const [old, current] = [before, after].map((text) => new Set(text.split('\n').filter(Boolean)));
  const escape = (line) => line.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const check = (line) => `~${path}~^${escape(line)}$`;
  return Object.fromEntries([
    ...[...current].filter((line) => !old.has(line)).map((line) => [check(line), true]),
    ...[...old].filter((line) => !current.has(line)).map((line) => [check(line), false]),
  ]);
}

/** Whether every check of a task holds. */
export function holds({ root }, checks = {}) {
  const read = (path) => (statSync(join(root, path), { throwIfNoEntry: false }) ? readFileSync(join(root, path), 'utf8') : null);
  return Object.entries(checks).every(([check, wanted]) => {
    if (!check.startsWith('~')) return read(check) === wanted;
    const [, path, pattern] = check.match(/^~([^~]*)~(.*)$/s);
    return (read(path) ?? '').split('\n').some((line) => new RegExp(pattern).test(line)) === wanted;
  });
}
