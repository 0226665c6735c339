// Questions to JSON files.

const data = (path) => `const file = await mcp.fs.read({ path: "${path}" });\nconst { data } = await mcp.json.parse({ json: file.content });\n`;

export const DOCUMENTS = [
  {
    id: 'plants-by-sun',
    first: ['which plants in plants/garden.json like full sun', { path: 'plants/garden.json', sun: 'full' }],
    code: ({ path, sun }) => `${data(path)}return data.filter((p) => p.sun === "${sun}").map((p) => p.name);`,
    seconds: [
      ['close', 'which plants in plants/balcony.json like half sun', { path: 'plants/balcony.json', sun: 'half' }],
      ['medium', 'plants that like full sun in plants/balcony.json', { path: 'plants/balcony.json' }],
    ],
    distractors: [
      ['contradiction', 'which plants in plants/garden.json do not like full sun'],
      ['operation', 'which plants in plants/balcony.json need most water'],
    ],
  },
  {
    id: 'taller-than',
    first: ['which plants in plants/garden.json are taller than 50 cm', { path: 'plants/garden.json', cm: 50 }],
    code: ({ path, cm }) => `${data(path)}const tall = [];
for (const plant of data) {
  if (plant.height > ${cm}) tall.push(plant.name);
}
return tall;`,
    seconds: [
      ['close', 'which plants in plants/balcony.json are taller than 35 cm', { path: 'plants/balcony.json', cm: 35 }],
      ['medium', 'plants over 100 cm tall in plants/garden.json', { cm: 100 }, { note: 'order of values changed' }],
      ['medium fr', 'quelles plantes de plants/balcony.json dépassent 150 cm', { path: 'plants/balcony.json', cm: 150 }],
    ],
    distractors: [
      ['contradiction', 'which plants in plants/balcony.json are smaller than 35 cm'],
      ['operation', 'which plants in plants/garden.json are taller than 1 m', { ok: ['rose'] }],
    ],
  },
  {
    id: 'host-ip',
    first: ['what is the IP address of db-1 in hosts/eu.json', { host: 'db-1', path: 'hosts/eu.json' }],
    code: ({ host, path }) => `${data(path)}return data["${host}"].ip;`,
    seconds: [
      ['close', 'what is the IP address of web-8 in hosts/us.json', { host: 'web-8', path: 'hosts/us.json' }],
      ['medium', 'give me the IP address of job-1 from hosts/eu.json', { host: 'job-1' }],
      ['medium fr', "quelle est l'adresse IP de db-7 dans hosts/us.json", { host: 'db-7', path: 'hosts/us.json' }],
    ],
    distractors: [
      ['operation', 'how much memory has web-8 in hosts/us.json'],
      ['operation', 'change the IP address of web-8 in hosts/us.json'],
    ],
  },
  {
    id: 'hosts-with-tag',
    first: ['which hosts in hosts/eu.json have the tag public', { path: 'hosts/eu.json', tag: 'public' }],
    code: ({ path, tag }) => `${data(path)}return Object.entries(data).filter(([, h]) => h.tags.includes("${tag}")).map(([name]) => name);`,
    seconds: [
      ['close', 'which hosts in hosts/us.json have the tag backup', { path: 'hosts/us.json', tag: 'backup' }],
      ['medium', 'hosts tagged batch in hosts/eu.json', { tag: 'batch' }],
      ['medium fr', 'quels hôtes de hosts/us.json ont le tag web', { path: 'hosts/us.json', tag: 'web' }],
    ],
    distractors: [
      ['contradiction', 'which hosts in hosts/us.json lack the tag public'],
      ['operation', 'how many tags has the host web-8 in hosts/us.json'],
    ],
  },
  {
    id: 'hosts-by-memory',
    first: ['hosts with at least 32 GB of memory in hosts/eu.json', { gigabytes: 32, path: 'hosts/eu.json' }],
    code: ({ gigabytes, path }) => `${data(path)}return Object.keys(data).filter((name) => data[name].memory >= ${gigabytes});`,
    seconds: [
      ['close', 'hosts with at least 64 GB of memory in hosts/us.json', { gigabytes: 64, path: 'hosts/us.json' }],
      ['medium', 'which hosts in hosts/eu.json have 128 GB of memory or more', { gigabytes: 128 }, { note: 'order of values changed' }],
      ['medium fr', 'hôtes avec au moins 16 GB de mémoire dans hosts/eu.json', { gigabytes: 16 }],
    ],
    distractors: [
      ['operation', 'hosts with at least 8 cores in hosts/us.json'],
      ['contradiction', 'hosts with at most 64 GB of memory in hosts/us.json'],
    ],
  },
  {
    id: 'flag-enabled',
    first: ['is darkMode enabled in flags/mobile.json', { flag: 'darkMode', path: 'flags/mobile.json' }],
    code: ({ flag, path }) => `${data(path)}return data["${flag}"].enabled === true;`,
    seconds: [
      ['close', 'is newCart enabled in flags/mobile.json', { flag: 'newCart' }],
      ['medium', 'check in flags/desktop.json whether tabs is enabled', { flag: 'tabs', path: 'flags/desktop.json' }, { note: 'order of values changed' }],
      ['medium fr', 'est-ce que newCart est activé dans flags/desktop.json', { flag: 'newCart', path: 'flags/desktop.json' }],
    ],
    distractors: [
      ['contradiction', 'is newCart disabled in flags/mobile.json'],
      ['operation', 'since when is newCart enabled in flags/desktop.json'],
    ],
  },
  {
    id: 'flag-rollout',
    first: ['what is the rollout of voice in flags/mobile.json', { flag: 'voice', path: 'flags/mobile.json' }],
    code: ({ flag, path }) => `${data(path)}const { rollout } = data.${flag};
return rollout;`,
    seconds: [
      ['close', 'what is the rollout of darkMode in flags/desktop.json', { flag: 'darkMode', path: 'flags/desktop.json' }],
      ['medium', 'how far is the rollout of newCart in flags/desktop.json', { flag: 'newCart', path: 'flags/desktop.json' }],
      ['medium fr', 'quel est le rollout de darkMode dans flags/mobile.json', { flag: 'darkMode' }],
    ],
    distractors: [
      ['operation', 'stop the rollout of newCart in flags/desktop.json'],
      ['operation', 'who started the rollout of newCart in flags/desktop.json'],
    ],
  },
  {
    id: 'enabled-flags',
    first: ['list the enabled flags of flags/mobile.json', { path: 'flags/mobile.json' }],
    code: ({ path }) => `${data(path)}return Object.keys(data).filter((key) => data[key].enabled);`,
    seconds: [
      ['close', 'list the enabled flags of flags/desktop.json', { path: 'flags/desktop.json' }],
      ['medium', 'which flags are enabled in flags/desktop.json', { path: 'flags/desktop.json' }],
      ['medium fr', 'liste les flags activés de flags/desktop.json', { path: 'flags/desktop.json' }],
    ],
    distractors: [
      ['contradiction', 'list the disabled flags of flags/desktop.json'],
      ['operation', 'remove the enabled flags of flags/desktop.json'],
    ],
  },
  {
    id: 'missing-keys',
    first: ['which keys of i18n/en.json are missing in i18n/fr.json', { all: 'i18n/en.json', some: 'i18n/fr.json' }],
    code: ({ all, some }) => `const load = async (path) => JSON.parse((await mcp.fs.read({ path })).content);
const source = await load("${all}");
const target = await load("${some}");
return Object.keys(source).filter((key) => !(key in target));`,
    seconds: [
      ['close', 'which keys of i18n/en.json are missing in i18n/de.json', { some: 'i18n/de.json' }],
      ['medium', 'what is missing in i18n/de.json of the keys of i18n/fr.json', { all: 'i18n/fr.json', some: 'i18n/de.json' }, { note: 'order of values changed' }],
      ['medium fr', 'quelles clés de i18n/de.json manquent dans i18n/fr.json', { all: 'i18n/de.json' }],
    ],
    distractors: [
      ['contradiction', 'which keys of i18n/fr.json are also in i18n/de.json'],
      ['operation', 'add the keys of i18n/en.json that are missing in i18n/de.json'],
    ],
  },
  {
    id: 'translation-of',
    first: ['look up farewell in i18n/fr.json', { key: 'farewell', path: 'i18n/fr.json' }],
    code: ({ key, path }) => `${data(path)}const found = await mcp.json.query({ data, path: "/${key}" });
return found.matches[0];`,
    seconds: [
      ['close', 'look up greeting in i18n/de.json', { key: 'greeting', path: 'i18n/de.json' }],
      ['medium', 'what is the text for thanks in i18n/de.json', { key: 'thanks', path: 'i18n/de.json' }],
      ['medium fr', 'cherche help dans i18n/en.json', { key: 'help', path: 'i18n/en.json' }],
    ],
    distractors: [
      ['operation', 'correct farewell in i18n/fr.json'],
      ['operation', 'which key has the text Merci in i18n/fr.json'],
    ],
  },
  {
    id: 'cheaper-dishes',
    first: ['which dishes in menus/lunch.json cost less than 10 euros', { path: 'menus/lunch.json', euros: 10 }],
    code: ({ path, euros }) => `${data(path)}return data.filter((d) => d.price < ${euros}).map((d) => d.dish);`,
    seconds: [
      ['close', 'which dishes in menus/dinner.json cost less than 20 euros', { path: 'menus/dinner.json', euros: 20 }],
      ['medium', 'dishes under 8 euros in menus/lunch.json', { euros: 8 }, { note: 'order of values changed' }],
      ['medium fr', 'quels plats de menus/dinner.json coûtent moins de 16 euros', { path: 'menus/dinner.json', euros: 16 }],
    ],
    distractors: [
      ['contradiction', 'which dishes in menus/dinner.json cost more than 20 euros'],
      ['operation', 'which dishes in menus/dinner.json have less than 600 calories'],
    ],
  },
  {
    id: 'dishes-by-tag',
    first: ['list the vegan dishes of menus/lunch.json', { tag: 'vegan', path: 'menus/lunch.json' }],
    code: ({ tag, path }) => `${data(path)}return data.filter((d) => d.tags.indexOf("${tag}") >= 0).map((d) => d.dish);`,
    seconds: [
      ['close', 'list the spicy dishes of menus/dinner.json', { tag: 'spicy', path: 'menus/dinner.json' }],
      ['medium', 'which dishes of menus/lunch.json are vegetarian', { tag: 'vegetarian' }, { note: 'order of values changed' }],
      ['medium fr', 'liste les plats vegan de menus/dinner.json', { path: 'menus/dinner.json' }],
    ],
    distractors: [
      ['contradiction', 'list the dishes of menus/dinner.json that are not vegan'],
      ['constraint', 'list the vegan dishes of menus/dinner.json without nuts'],
    ],
  },
  {
    id: 'calories',
    first: ['how many calories has the burger in menus/lunch.json', { dish: 'burger', path: 'menus/lunch.json' }],
    code: ({ dish, path }) => `${data(path)}return data.find(({ dish }) => dish === "${dish}").kcal;`,
    seconds: [
      ['close', 'how many calories has the curry in menus/dinner.json', { dish: 'curry', path: 'menus/dinner.json' }],
      ['medium', 'calories of the soup in menus/lunch.json', { dish: 'soup' }],
      ['medium fr', 'combien de calories a le risotto dans menus/dinner.json', { dish: 'risotto', path: 'menus/dinner.json' }],
    ],
    distractors: [
      ['operation', 'how many euros does the curry cost in menus/dinner.json'],
      ['constraint', 'how many calories has half of the curry in menus/dinner.json'],
    ],
  },
  {
    id: 'playlist-minutes',
    first: ['how many minutes does playlists/run.json last', { path: 'playlists/run.json' }],
    code: ({ path }) => `${data(path)}const seconds = data.tracks.reduce((sum, t) => sum + t.seconds, 0);
return (await mcp.math.round({ value: seconds / 60, digits: 1 })).value;`,
    seconds: [
      ['close', 'how many minutes does playlists/calm.json last', { path: 'playlists/calm.json' }],
      ['medium', 'length of playlists/calm.json in minutes', { path: 'playlists/calm.json' }],
      ['medium fr', 'combien de minutes dure playlists/calm.json', { path: 'playlists/calm.json' }],
    ],
    distractors: [
      ['operation', 'how many hours does playlists/calm.json last'],
      ['constraint', 'how many minutes does playlists/calm.json last without the first track'],
    ],
  },
  {
    id: 'tracks-by',
    first: ['which tracks in playlists/run.json are by "The Tins"', { path: 'playlists/run.json', artist: 'The Tins' }],
    code: ({ path, artist }) => `${data(path)}return data.tracks.filter((t) => t.artist === "${artist}").map((t) => t.title);`,
    seconds: [
      ['close', 'which tracks in playlists/calm.json are by "Mirabel"', { path: 'playlists/calm.json', artist: 'Mirabel' }],
      ['medium', 'titles by "Kara" in playlists/run.json', { artist: 'Kara' }, { note: 'order of values changed' }],
      ['medium fr', 'quels morceaux de playlists/calm.json sont de "Lowe"', { path: 'playlists/calm.json', artist: 'Lowe' }],
    ],
    distractors: [
      ['contradiction', 'which tracks in playlists/run.json are not by "Kara"'],
      ['operation', 'remove the tracks by "Kara" from playlists/run.json'],
    ],
  },
  {
    id: 'dependency-version',
    first: ['which version of zod does pkg/web.json depend on', { name: 'zod', path: 'pkg/web.json' }],
    code: ({ name, path }) => `const manifest = JSON.parse((await mcp.fs.read({ path: "${path}" })).content);
return manifest.dependencies["${name}"].replace("^", "");`,
    seconds: [
      ['close', 'which version of yargs does pkg/cli.json depend on', { name: 'yargs', path: 'pkg/cli.json' }],
      ['medium', 'on which version of react does pkg/web.json depend', { name: 'react' }],
      ['medium fr', 'de quelle version de zod dépend pkg/cli.json', { path: 'pkg/cli.json' }],
    ],
    distractors: [
      ['operation', 'upgrade the version of zod that pkg/cli.json depends on'],
      ['contradiction', 'which version of zod does pkg/cli.json forbid'],
    ],
  },
  {
    id: 'package-script',
    first: ['what does the build script of pkg/web.json run', { script: 'build', path: 'pkg/web.json' }],
    args: { script: 'script', path: 'manifest' },
    code: () => `const file = await mcp.fs.read({ path: args.manifest });
const { data } = await mcp.json.parse({ json: file.content });
return data.scripts[args.script];`,
    seconds: [
      ['close', 'what does the lint script of pkg/cli.json run', { script: 'lint', path: 'pkg/cli.json' }],
      ['medium', 'show the test script of pkg/web.json', { script: 'test' }],
      ['medium fr', 'que lance le script build de pkg/cli.json', { path: 'pkg/cli.json' }],
    ],
    distractors: [
      ['operation', 'run the build script of pkg/cli.json'],
      ['operation', 'which scripts has pkg/cli.json'],
    ],
  },
  {
    id: 'next-minor',
    first: ['what is the next minor version of pkg/web.json', { path: 'pkg/web.json' }],
    code: ({ path }) => `${data(path)}const [major, minor] = data.version.split(".").map(Number);
return \`\${major}.\${minor + 1}.0\`;`,
    seconds: [
      ['close', 'what is the next minor version of pkg/cli.json', { path: 'pkg/cli.json' }],
      ['medium fr', 'quelle est la prochaine version mineure de pkg/cli.json', { path: 'pkg/cli.json' }],
    ],
    distractors: [
      ['operation', 'what is the next major version of pkg/cli.json'],
      ['operation', 'publish the next minor version of pkg/cli.json'],
    ],
  },
  {
    id: 'order-total',
    first: ['what does order 1001 cost', { order: 1001 }],
    code: ({ order }) => `const { content } = await mcp.fs.read({ path: "orders/${order}.json" });
const parsed = JSON.parse(content);
return parsed.lines.reduce((sum, line) => sum + line.qty * line.price, 0);`,
    seconds: [
      ['close', 'what does order 1003 cost', { order: 1003 }],
      ['medium', 'total cost of order 1002', { order: 1002 }],
      ['medium fr', 'combien coûte la commande 1003', { order: 1003 }],
    ],
    distractors: [
      ['operation', 'cancel order 1002'],
      ['constraint', 'what does order 1002 cost with shipping'],
    ],
    again: [['what does order 1002 cost', { order: 1002 }]],
  },
  {
    id: 'order-quantity',
    first: ['how many P4 are in order 1001', { sku: 'P4', order: 1001 }],
    code: ({ sku, order }) => `const file = await mcp.fs.read({ path: "orders/" + ${order} + ".json" });
const lines = JSON.parse(file.content).lines;
return lines.filter((l) => l.sku === "${sku}").reduce((n, l) => n + l.qty, 0);`,
    seconds: [
      ['close', 'how many Q1 are in order 1003', { sku: 'Q1', order: 1003 }],
      ['medium', 'how many Z9 does order 1003 contain', { sku: 'Z9', order: 1003 }],
      ['medium fr', 'combien de P4 dans la commande 1002', { order: 1002 }],
    ],
    distractors: [
      ['operation', 'how much do the Q1 in order 1003 cost'],
      ['operation', 'add another Q1 to order 1003'],
    ],
  },
  {
    id: 'books-by',
    first: ['books by Austen in books/fiction.json', { author: 'Austen', path: 'books/fiction.json' }],
    code: ({ author, path }) => `${data(path)}const hits = await mcp.json.query({ data, path: "$[?@.author == '${author}'].title" });
return hits.matches;`,
    seconds: [
      ['close', 'books by Sagan in books/science.json', { author: 'Sagan', path: 'books/science.json' }],
      ['medium', 'which books by Kipling are in books/fiction.json', { author: 'Kipling' }],
      ['medium fr', 'livres de Gleick dans books/science.json', { author: 'Gleick', path: 'books/science.json' }],
    ],
    distractors: [
      ['operation', 'books about Austen in books/fiction.json'],
      ['constraint', 'books by Austen in books/fiction.json with more than 300 pages'],
    ],
  },
  {
    id: 'published-before',
    first: ['books in books/fiction.json published before 1900', { path: 'books/fiction.json', year: 1900 }],
    code: ({ path, year }) => `${data(path)}return data.filter((b) => b.year < ${year}).map((b) => b.title).sort();`,
    seconds: [
      ['close', 'books in books/science.json published before 1986', { path: 'books/science.json', year: 1986 }],
      ['medium', 'which books in books/fiction.json were published before 1816', { year: 1816 }],
      ['medium fr', 'livres de books/science.json publiés avant 1985', { path: 'books/science.json', year: 1985 }],
    ],
    distractors: [
      ['contradiction', 'books in books/science.json published after 1986'],
      ['constraint', 'books by Sagan in books/science.json published before 1986'],
    ],
  },
  {
    id: 'longest-book',
    first: ['which book in books/fiction.json has the most pages', { path: 'books/fiction.json' }],
    code: ({ path }) => `${data(path)}data.sort((a, b) => b.pages - a.pages);
return data[0].title;`,
    seconds: [
      ['close', 'which book in books/science.json has the most pages', { path: 'books/science.json' }],
      ['medium fr', 'quel livre de books/science.json a le plus de pages', { path: 'books/science.json' }],
    ],
    distractors: [
      ['contradiction', 'which book in books/science.json has the fewest pages'],
      ['operation', 'which book in books/science.json is the most recent'],
    ],
  },
  {
    id: 'plan-users',
    first: ['how many users does the team plan allow', { plan: 'team' }],
    code: ({ plan }) => `const { content } = await mcp.fs.read({ path: "limits/${plan}.json" });
return JSON.parse(content).users;`,
    seconds: [
      ['close', 'how many users does the free plan allow', { plan: 'free' }],
      ['medium', 'number of users allowed by the free plan', { plan: 'free' }],
      ['medium fr', "combien d'utilisateurs autorise le plan free", { plan: 'free' }],
    ],
    distractors: [
      ['operation', 'how much storage does the free plan allow'],
      ['operation', 'how many users does the free plan have now'],
    ],
  },
  {
    id: 'plan-region',
    first: ['does the team plan cover the region us', { plan: 'team', region: 'us' }],
    args: { plan: 'plan', region: 'region' },
    code: () => `const { content } = await mcp.fs.read({ path: \`limits/\${args.plan}.json\` });
return JSON.parse(content).regions.includes(args.region);`,
    seconds: [
      ['close', 'does the free plan cover the region us', { plan: 'free' }],
      ['medium', 'is the region eu covered by the free plan', { plan: 'free', region: 'eu' }, { note: 'order of values changed' }],
      ['close', 'does the free plan cover the region eu', { plan: 'free', region: 'eu' }, { context: { plan: 'free', region: 'eu' } }],
    ],
    distractors: [
      ['operation', 'let the free plan cover the region us'],
      ['missing', 'does the free plan cover a region'],
    ],
  },
  {
    id: 'animal-legs',
    first: ['how many legs has the lynx according to zoo/mammals.json', { animal: 'lynx', path: 'zoo/mammals.json' }],
    code: ({ animal, path }) => `${data(path)}const animal = data["${animal}"];
return animal?.legs ?? null;`,
    seconds: [
      ['close', 'how many legs has the heron according to zoo/birds.json', { animal: 'heron', path: 'zoo/birds.json' }],
      ['medium', 'according to zoo/mammals.json, how many legs has the whale', { animal: 'whale' }, { note: 'order of values changed' }],
      ['medium fr', "combien de pattes a le hare d'après zoo/mammals.json", { animal: 'hare' }],
    ],
    distractors: [
      ['operation', 'how many kilos has the owl according to zoo/birds.json'],
      ['contradiction', 'which animal has no legs according to zoo/mammals.json'],
    ],
  },
  {
    id: 'json-path',
    first: ['what does the path $..kg find in zoo/birds.json', { query: '$..kg', path: 'zoo/birds.json' }],
    args: { query: 'query', path: 'file' },
    code: () => `const { content } = await mcp.fs.read({ path: args.file });
const { data } = await mcp.json.parse({ json: content });
return (await mcp.json.query({ data, path: args.query })).matches;`,
    seconds: [
      ['close', 'what does the path $.whale.legs find in zoo/mammals.json', { query: '$.whale.legs', path: 'zoo/mammals.json' }],
      ['close', 'what does the path find in the file', { query: '$[0].dish', path: 'menus/lunch.json' }, { context: { query: '$[0].dish', file: 'menus/lunch.json' } }],
    ],
    distractors: [
      ['operation', 'what does the path $..kg delete in zoo/mammals.json'],
      ['missing', 'what does the path find in zoo/mammals.json'],
    ],
  },
  {
    id: 'merge-documents',
    first: ['merge two JSON files, the second one wins', { base: 'i18n/en.json', over: 'i18n/fr.json' }],
    given: { base: 'base', over: 'override' },
    code: () => `const [base, over] = await Promise.all([args.base, args.override].map((path) => mcp.fs.read({ path })));
return { ...JSON.parse(base.content), ...JSON.parse(over.content) };`,
    seconds: [
      ['close', 'merge these two JSON files, the second one wins', { base: 'i18n/de.json', over: 'i18n/fr.json' }],
      ['medium fr', 'fusionne deux fichiers JSON, le second gagne', { base: 'limits/free.json', over: 'limits/team.json' }],
    ],
    distractors: [
      ['contradiction', 'merge two JSON files, the first one wins', { context: { base: 'i18n/de.json', override: 'i18n/fr.json' } }],
      ['operation', 'compare two JSON files', { context: { base: 'i18n/de.json', override: 'i18n/fr.json' } }],
    ],
  },
];
