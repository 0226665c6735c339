// Reading text files: poems, recipes, logs, mails, minutes.

const lines = (path) => `const { content } = await mcp.fs.read({ path: "${path}" });\nconst lines = content.trimEnd().split("\\n");\n`;

export const TEXTS = [
  {
    id: 'ingredient-amount',
    first: ['how much flour does recipes/pancakes.txt need', { item: 'flour', path: 'recipes/pancakes.txt' }],
    code: ({ item, path }) => `${lines(path)}const line = lines.find((l) => l.endsWith(" ${item}"));
return line ? line.slice(0, -" ${item}".length) : null;`,
    seconds: [
      ['close', 'how much milk does recipes/crepes.txt need', { item: 'milk', path: 'recipes/crepes.txt' }],
      ['medium', 'what quantity of beans goes into recipes/chili.txt', { item: 'beans', path: 'recipes/chili.txt' }],
      ['free fr', 'il faut combien de butter pour recipes/crepes.txt', { item: 'butter', path: 'recipes/crepes.txt' }],
    ],
    distractors: [
      ['constraint', 'how much flour does recipes/crepes.txt need for 10 people'],
      ['operation', 'how much does the flour for recipes/crepes.txt cost'],
    ],
  },
  {
    id: 'scale-recipe',
    first: ['scale recipes/pancakes.txt to 8 servings', { path: 'recipes/pancakes.txt', servings: 8 }],
    code: ({ path, servings }) => `const { content } = await mcp.fs.read({ path: "${path}" });
const [, serves, ...items] = content.trim().split("\\n");
const factor = ${servings} / Number(serves.split(": ")[1]);
return items.map((line) => line.replace(/^\\d+/, (n) => String(Number(n) * factor)));`,
    seconds: [
      ['close', 'scale recipes/crepes.txt to 6 servings', { path: 'recipes/crepes.txt', servings: 6 }],
      ['medium', 'give me the ingredients of recipes/chili.txt for 12 people', { path: 'recipes/chili.txt', servings: 12 }],
      ['medium fr', 'adapte recipes/crepes.txt pour 9 personnes', { path: 'recipes/crepes.txt', servings: 9 }],
    ],
    distractors: [
      ['missing', 'scale recipes/crepes.txt'],
      ['operation', 'how long does recipes/crepes.txt take for 6 servings'],
    ],
    again: [['scale recipes/chili.txt to 3 servings', { path: 'recipes/chili.txt', servings: 3 }]],
  },
  {
    id: 'stanza',
    first: ['give me stanza 2 of poems/snow.txt', { number: 2, path: 'poems/snow.txt' }],
    code: ({ number, path }) => `const file = await mcp.fs.read({ path: "${path}" });
const stanzas = file.content.trim().split("\\n\\n");
return stanzas[${number} - 1];`,
    seconds: [
      ['close', 'give me stanza 1 of poems/river.txt', { number: 1, path: 'poems/river.txt' }],
      ['medium', 'read me poems/snow.txt, stanza 3', { number: 3 }, { note: 'order of values changed' }],
      ['medium fr', 'donne-moi la strophe 2 de poems/river.txt', { path: 'poems/river.txt' }],
    ],
    distractors: [
      ['operation', 'give me line 2 of poems/river.txt'],
      ['operation', 'delete stanza 2 of poems/river.txt'],
    ],
  },
  {
    id: 'lines-with',
    first: ['which lines of poems/river.txt contain "river"', { path: 'poems/river.txt', word: 'river' }],
    code: ({ path, word }) => `${lines(path)}return lines.filter((line) => line.includes("${word}"));`,
    seconds: [
      ['close', 'which lines of poems/snow.txt contain "snow"', { path: 'poems/snow.txt', word: 'snow' }],
      ['medium', 'show the lines with "ferry" in poems/harbour.txt', { path: 'poems/harbour.txt', word: 'ferry' }],
      ['medium fr', 'quelles lignes de poems/harbour.txt contiennent "rains"', { path: 'poems/harbour.txt', word: 'rains' }],
    ],
    distractors: [
      ['contradiction', 'which lines of poems/snow.txt do not contain "snow"'],
      ['operation', 'how many lines of poems/snow.txt contain "snow"'],
    ],
  },
  {
    id: 'longest-line',
    first: ['what is the longest line of poems/snow.txt', { path: 'poems/snow.txt' }],
    code: ({ path }) => `${lines(path)}return lines.reduce((best, line) => (line.length > best.length ? line : best), "");`,
    seconds: [
      ['close', 'what is the longest line of poems/harbour.txt', { path: 'poems/harbour.txt' }],
      ['medium', 'show me the longest line in poems/river.txt', { path: 'poems/river.txt' }],
      ['medium fr', 'quelle est la ligne la plus longue de mail/dinner.eml', { path: 'mail/dinner.eml' }],
    ],
    distractors: [
      ['contradiction', 'what is the shortest line of poems/harbour.txt'],
      ['operation', 'how long is the longest line of poems/harbour.txt'],
    ],
  },
  {
    id: 'last-lines',
    first: ['show the last 2 lines of poems/harbour.txt', { count: 2, path: 'poems/harbour.txt' }],
    code: ({ count, path }) => `${lines(path)}return lines.slice(-${count});`,
    seconds: [
      ['close', 'show the last 3 lines of queue/monday.txt', { count: 3, path: 'queue/monday.txt' }],
      ['medium', 'what do the last 4 lines of lab/run2.txt say?', { count: 4, path: 'lab/run2.txt' }],
      ['medium fr', 'montre les 2 dernières lignes de logs/build.txt', { path: 'logs/build.txt' }],
    ],
    distractors: [
      ['contradiction', 'skip the last 2 lines of queue/monday.txt'],
      ['operation', 'delete the last 2 lines of queue/monday.txt'],
    ],
    again: [['show the last 1 lines of poems/river.txt', { count: 1, path: 'poems/river.txt' }]],
  },
  {
    id: 'paths-by-status',
    first: ['list the paths that answered 404 in access/front.log', { status: 404, path: 'access/front.log' }],
    code: ({ status, path }) => `${lines(path)}return lines.map((l) => l.split(" ")).filter((p) => p[3] === "${status}").map((p) => p[2]);`,
    seconds: [
      ['close', 'list the paths that answered 500 in access/api.log', { status: 500, path: 'access/api.log' }],
      ['medium', 'which paths gave a 403 in access/night.log', { status: 403, path: 'access/night.log' }],
      ['medium fr', 'liste les chemins qui ont répondu 200 dans access/front.log', { status: 200 }],
    ],
    distractors: [
      ['contradiction', 'list the paths that did not answer 200 in access/api.log'],
      ['operation', 'list the clients that got 404 in access/api.log'],
    ],
  },
  {
    id: 'slow-requests',
    first: ['which requests in access/front.log took longer than 100 ms', { path: 'access/front.log', ms: 100 }],
    code: ({ path, ms }) => `${lines(path)}return lines.filter((l) => Number(l.split(" ").pop()) > ${ms}).map((l) => l.split(" ")[2]);`,
    seconds: [
      ['close', 'which requests in access/api.log took longer than 20 ms', { path: 'access/api.log', ms: 20 }],
      ['medium', 'requests slower than 90 ms in access/front.log', { ms: 90 }, { note: 'order of values changed' }],
      ['medium fr', 'quelles requêtes de access/night.log ont duré plus de 2 ms', { path: 'access/night.log', ms: 2 }],
    ],
    distractors: [
      ['contradiction', 'which requests in access/api.log took less than 20 ms'],
      ['operation', 'which requests in access/api.log took longer than 20 seconds'],
    ],
  },
  {
    id: 'requests-by-method',
    first: ['how many POST requests are in access/front.log', { method: 'POST', path: 'access/front.log' }],
    code: ({ method, path }) => `${lines(path)}return lines.filter((line) => line.includes(" ${method} ")).length;`,
    seconds: [
      ['close', 'how many GET requests are in access/api.log', { method: 'GET', path: 'access/api.log' }],
      ['medium', 'number of DELETE requests in access/api.log', { method: 'DELETE', path: 'access/api.log' }],
      ['medium fr', 'combien de requêtes PUT dans access/api.log', { method: 'PUT', path: 'access/api.log' }],
    ],
    distractors: [
      ['constraint', 'how many GET requests are in access/api.log from 10.0.1.5'],
      ['missing', 'how many requests are in access/api.log'],
    ],
  },
  {
    id: 'ini-value',
    first: ['what is ttl in the cache section of ini/app.ini', { key: 'ttl', section: 'cache', path: 'ini/app.ini' }],
    code: ({ key, section, path }) => `const { content } = await mcp.fs.read({ path: "${path}" });
let inside = false;
for (const line of content.split("\\n")) {
  if (line.startsWith("[")) inside = line === "[${section}]";
  else if (inside && line.startsWith("${key} = ")) return line.slice("${key} = ".length);
}
return null;`,
    seconds: [
      ['close', 'what is size in the pool section of ini/db.ini', { key: 'size', section: 'pool', path: 'ini/db.ini' }],
      ['medium', 'read host from the smtp section of ini/mail.ini', { key: 'host', section: 'smtp', path: 'ini/mail.ini' }],
      ['medium fr', 'que vaut ttl dans la section queue de ini/mail.ini', { section: 'queue', path: 'ini/mail.ini' }],
    ],
    distractors: [
      ['operation', 'remove ttl from the cache section of ini/db.ini'],
      ['missing', 'what is in the cache section of ini/db.ini'],
    ],
  },
  {
    id: 'subtitle-start',
    first: ['at what time does subtitle 2 of subs/film.srt start', { number: 2, path: 'subs/film.srt' }],
    code: ({ number, path }) => `const srt = (await mcp.fs.read({ path: "${path}" })).content;
const block = srt.split("\\n\\n").find((b) => b.startsWith("${number}\\n"));
return block.split("\\n")[1].split(" --> ")[0];`,
    seconds: [
      ['close', 'at what time does subtitle 3 of subs/film.srt start', { number: 3 }],
      ['medium', 'when does subtitle 1 start in subs/trailer.srt', { number: 1, path: 'subs/trailer.srt' }],
      ['medium fr', 'à quel moment commence le sous-titre 2 de subs/trailer.srt', { path: 'subs/trailer.srt' }],
    ],
    distractors: [
      ['contradiction', 'at what time does subtitle 2 of subs/trailer.srt end'],
      ['operation', 'what does subtitle 2 of subs/trailer.srt say'],
    ],
  },
  {
    id: 'mail-sender',
    first: ['who sent mail/renewal.eml', { path: 'mail/renewal.eml' }],
    code: ({ path }) => `const mail = await mcp.fs.read({ path: "${path}" });
return mail.content.match(/^From: (.*) <.*>$/m)[1];`,
    seconds: [
      ['close', 'who sent mail/parcel.eml', { path: 'mail/parcel.eml' }],
      ['medium', 'who is the sender of mail/dinner.eml?', { path: 'mail/dinner.eml' }],
      ['medium fr', 'qui a envoyé mail/dinner.eml', { path: 'mail/dinner.eml' }],
    ],
    distractors: [
      ['operation', 'who was copied on mail/parcel.eml'],
      ['operation', 'send mail/parcel.eml again'],
    ],
  },
  {
    id: 'mail-header',
    first: ['give me the Subject header of mail/parcel.eml', { header: 'Subject', path: 'mail/parcel.eml' }],
    code: ({ header, path }) => `${lines(path)}return lines.find((line) => line.startsWith("${header}: ")).replace("${header}: ", "");`,
    seconds: [
      ['close', 'give me the Date header of mail/dinner.eml', { header: 'Date', path: 'mail/dinner.eml' }],
      ['medium', 'what stands in the To header of mail/renewal.eml', { header: 'To', path: 'mail/renewal.eml' }],
      ['medium fr', "donne-moi l'en-tête Subject de mail/dinner.eml", { path: 'mail/dinner.eml' }],
    ],
    distractors: [
      ['operation', 'remove the Subject header of mail/dinner.eml'],
      ['missing', 'give me the headers of mail/dinner.eml'],
    ],
  },
  {
    id: 'actions-of',
    first: ['list the actions of Nadia in minutes/board.md', { person: 'Nadia', path: 'minutes/board.md' }],
    code: ({ person, path }) => `const { content } = await mcp.fs.read({ path: "${path}" });
return [...content.matchAll(/^ACTION ${person}: (.*)$/gm)].map((m) => m[1]);`,
    seconds: [
      ['close', 'list the actions of Karl in minutes/design.md', { person: 'Karl', path: 'minutes/design.md' }],
      ['medium', 'what does Tomas have to do according to minutes/board.md', { person: 'Tomas' }],
      ['medium fr', 'liste les actions de Ines dans minutes/design.md', { person: 'Ines', path: 'minutes/design.md' }],
    ],
    distractors: [
      ['contradiction', 'list the actions of everybody but Karl in minutes/design.md'],
      ['operation', 'mark the actions of Karl in minutes/design.md as done'],
    ],
  },
  {
    id: 'decisions',
    first: ['which decisions were taken in minutes/board.md', { path: 'minutes/board.md' }],
    code: ({ path }) => `${lines(path)}return lines.filter((l) => l.startsWith("DECISION: ")).map((l) => l.slice(10));`,
    seconds: [
      ['close', 'which decisions were taken in minutes/design.md', { path: 'minutes/design.md' }],
      ['medium', 'list the decisions of minutes/design.md', { path: 'minutes/design.md' }],
      ['medium fr', 'quelles décisions ont été prises dans minutes/design.md', { path: 'minutes/design.md' }],
    ],
    distractors: [
      ['contradiction', 'which decisions were postponed in minutes/design.md'],
      ['operation', 'who took the decisions in minutes/design.md'],
    ],
  },
  {
    id: 'step-duration',
    first: ['how long did the test step take in logs/build.txt', { step: 'test', path: 'logs/build.txt' }],
    code: ({ step, path }) => `${lines(path)}const line = lines.find((l) => l.startsWith("step ${step} took "));
return Number(line.split(" ")[3]);`,
    seconds: [
      ['close', 'how long did the compile step take in logs/nightly.txt', { step: 'compile', path: 'logs/nightly.txt' }],
      ['medium', 'duration of the publish step in logs/nightly.txt', { step: 'publish', path: 'logs/nightly.txt' }],
      ['medium fr', "combien de temps a duré l'étape package dans logs/build.txt", { step: 'package' }],
    ],
    distractors: [
      ['operation', 'how often did the test step fail in logs/nightly.txt'],
      ['missing', 'how long did the steps take in logs/nightly.txt'],
    ],
  },
  {
    id: 'wiki-owner',
    first: ['who owns wiki/pumps.md', { path: 'wiki/pumps.md' }],
    code: ({ path }) => `const page = await mcp.fs.read({ path: "${path}" });
const { matches } = await mcp.text.match({ text: page.content, pattern: "(?m)^owner: (.+)$" });
return matches[0].groups[0];`,
    seconds: [
      ['close', 'who owns wiki/valves.md', { path: 'wiki/valves.md' }],
      ['medium', 'who is the owner of wiki/filters.md', { path: 'wiki/filters.md' }],
      ['medium fr', 'à qui appartient wiki/valves.md', { path: 'wiki/valves.md' }],
    ],
    distractors: [
      ['operation', 'who reviews wiki/valves.md'],
      ['operation', 'which pages does the owner of wiki/valves.md have'],
    ],
  },
  {
    id: 'css-colour',
    first: ['what is the accent colour in style/site.css', { name: 'accent', path: 'style/site.css' }],
    code: ({ name, path }) => `const css = await mcp.fs.read({ path: "${path}" });
const found = await mcp.text.match({ text: css.content, pattern: "--${name}: (#[0-9a-f]+)", limit: 1 });
return found.matches[0].groups[0];`,
    seconds: [
      ['close', 'what is the paper colour in style/print.css', { name: 'paper', path: 'style/print.css' }],
      ['medium', 'which colour is paper in style/site.css', { name: 'paper' }],
      ['medium fr', 'quelle est la couleur accent dans style/print.css', { path: 'style/print.css' }],
    ],
    distractors: [
      ['operation', 'change the accent colour in style/print.css to #ff0000'],
      ['operation', 'where is the accent colour used in style/print.css'],
    ],
  },
  {
    id: 'vocabulary',
    first: ['translate "chien" with vocab/animals.tsv', { word: 'chien', path: 'vocab/animals.tsv' }],
    code: ({ word, path }) => `const file = await mcp.fs.read({ path: "${path}" });
const { rows } = await mcp.csv.parse({ csv: file.content, header: false, delimiter: "\\t" });
return rows.find((row) => row[0] === "${word}")[1];`,
    seconds: [
      ['close', 'translate "cheval" with vocab/animals.tsv', { word: 'cheval' }],
      ['medium', 'what does "assiette" mean according to vocab/kitchen.tsv', { word: 'assiette', path: 'vocab/kitchen.tsv' }],
      ['medium fr', 'traduis "couteau" avec vocab/kitchen.tsv', { word: 'couteau', path: 'vocab/kitchen.tsv' }],
    ],
    distractors: [
      ['operation', 'translate all words with vocab/kitchen.tsv'],
      ['contradiction', 'is "couteau" missing in vocab/kitchen.tsv'],
    ],
  },
  {
    id: 'release-fixes',
    first: ['what was fixed in version 0.9.1 of releases/otter.md', { version: '0.9.1', path: 'releases/otter.md' }],
    code: ({ version, path }) => `const { content } = await mcp.fs.read({ path: "${path}" });
const section = content.split("## ").find((part) => part.startsWith("${version} "));
return section.split("\\n").filter((l) => l.startsWith("- Fixed: ")).map((l) => l.slice("- Fixed: ".length));`,
    seconds: [
      ['close', 'what was fixed in version 2.1.0 of releases/kite.md', { version: '2.1.0', path: 'releases/kite.md' }],
      ['medium', 'list what releases/kite.md fixed in version 2.1.0', { version: '2.1.0', path: 'releases/kite.md' }, { note: 'order of values changed' }],
    ],
    distractors: [
      ['operation', 'what was added in version 2.1.0 of releases/kite.md'],
      ['contradiction', 'what was broken in version 2.1.0 of releases/kite.md'],
    ],
  },
  {
    id: 'release-date',
    first: ['on which date was version 2.0.0 of releases/kite.md released', { version: '2.0.0', path: 'releases/kite.md' }],
    code: ({ version, path }) => `${lines(path)}const heading = lines.find((line) => line.startsWith("## ${version} ("));
return heading.slice(heading.indexOf("(") + 1, -1);`,
    seconds: [
      ['close', 'on which date was version 0.9.0 of releases/otter.md released', { version: '0.9.0', path: 'releases/otter.md' }],
      ['medium', 'release date of version 2.1.0 in releases/kite.md', { version: '2.1.0' }],
      ['free fr', 'quand est sortie la version 0.9.1 selon releases/otter.md', { version: '0.9.1', path: 'releases/otter.md' }],
    ],
    distractors: [
      ['operation', 'which version came after 0.9.0 in releases/otter.md'],
      ['operation', 'release version 0.9.2 of releases/otter.md'],
    ],
  },
  {
    id: 'backwards',
    first: ['spell "harbour" backwards', { word: 'harbour' }],
    code: ({ word }) => `const { parts } = await mcp.text.split({ text: "${word}", separator: "" });
return parts.reverse().join("");`,
    seconds: [
      ['close', 'spell "lantern" backwards', { word: 'lantern' }],
      ['medium', 'write "compass" backwards', { word: 'compass' }],
      ['medium fr', 'épelle "bateau" à l\'envers', { word: 'bateau' }],
    ],
    distractors: [
      ['operation', 'spell "lantern" in morse code'],
      ['missing', 'spell it backwards'],
    ],
  },
  {
    id: 'letter-case',
    first: ['write "max retry count" in snake case', { text: 'max retry count', form: 'snake' }],
    code: ({ text, form }) => `return (await mcp.text.case({ text: "${text}", to: "${form}" })).text;`,
    seconds: [
      ['close', 'write "open new window" in camel case', { text: 'open new window', form: 'camel' }],
      ['medium', 'put "user profile page" into snake case', { text: 'user profile page' }],
      ['medium fr', 'écris "jour de marché" en upper case', { text: 'jour de marché', form: 'upper' }],
    ],
    distractors: [
      ['contradiction', 'is "open_new_window" written in snake case'],
      ['missing', 'write "open new window" in another case'],
    ],
    again: [['write "least recently used" in camel case', { text: 'least recently used', form: 'camel' }]],
  },
  {
    id: 'lines-added',
    first: ['how many lines were added from lab/run1.txt to lab/run2.txt', { old: 'lab/run1.txt', new: 'lab/run2.txt' }],
    code: (v) => `const before = (await mcp.fs.read({ path: "${v.old}" })).content;
const after = (await mcp.fs.read({ path: "${v.new}" })).content;
return (await mcp.text.diff({ before, after })).added;`,
    seconds: [
      ['close', 'how many lines were added from ini/app.ini to ini/mail.ini', { old: 'ini/app.ini', new: 'ini/mail.ini' }],
      ['medium fr', 'combien de lignes ont été ajoutées de queue/sunday.txt à queue/monday.txt', { old: 'queue/sunday.txt', new: 'queue/monday.txt' }],
      ['medium', 'to queue/tuesday.txt from queue/monday.txt, how many lines were added?', { old: 'queue/monday.txt', new: 'queue/tuesday.txt' }, { note: 'order of values changed' }],
    ],
    distractors: [
      ['contradiction', 'how many lines were removed from queue/monday.txt to queue/tuesday.txt'],
      ['missing', 'how many lines were added to queue/tuesday.txt'],
    ],
  },
  {
    id: 'occurrences',
    first: ['how often does "ferry" occur in poems/harbour.txt', { word: 'ferry', path: 'poems/harbour.txt' }],
    code: ({ word, path }) => `const poem = await mcp.fs.read({ path: "${path}" });
const hits = await mcp.text.match({ text: poem.content, pattern: "${word}" });
return hits.matches.length;`,
    seconds: [
      ['close', 'how often does "river" occur in poems/river.txt', { word: 'river', path: 'poems/river.txt' }],
      ['medium', 'how many times is "warning" in logs/build.txt', { word: 'warning', path: 'logs/build.txt' }],
      ['medium fr', 'combien de fois "knows" apparaît dans poems/river.txt', { word: 'knows', path: 'poems/river.txt' }],
    ],
    distractors: [
      ['operation', 'where does "river" occur first in poems/river.txt'],
      ['constraint', 'how often does "river" occur in poems/river.txt at the start of a line'],
    ],
  },
  {
    id: 'lab-value',
    first: ['what is the mass in lab/run1.txt', { key: 'mass', path: 'lab/run1.txt' }],
    args: { key: 'key', path: 'file' },
    code: () => `const { content } = await mcp.fs.read({ path: args.file });
const line = content.split("\\n").find((l) => l.startsWith(args.key + "="));
return line.split("=")[1];`,
    seconds: [
      ['close', 'what is the temp in lab/run2.txt', { key: 'temp', path: 'lab/run2.txt' }],
      ['medium', 'look up sample in lab/run3.txt', { key: 'sample', path: 'lab/run3.txt' }],
      ['close', 'what is the mass in lab/run3.txt', { path: 'lab/run3.txt' }, { context: { key: 'mass', file: 'lab/run3.txt' } }],
    ],
    distractors: [
      ['operation', 'is the mass in lab/run2.txt plausible'],
      ['operation', 'set the mass in lab/run2.txt to 10'],
    ],
  },
  {
    id: 'host-address',
    first: ['which address has db.lan in hosts.txt', { host: 'db.lan', path: 'hosts.txt' }],
    args: { host: 'host', path: 'path' },
    code: () => `const { content } = await mcp.fs.read({ path: args.path });
const line = content.split("\\n").find((l) => l.endsWith(" " + args.host));
return line ? line.split(" ")[0] : null;`,
    seconds: [
      ['close', 'which address has wiki.lan in lanhosts.txt', { host: 'wiki.lan', path: 'lanhosts.txt' }],
      ['medium', 'look up the address of cache.lan in hosts.txt', { host: 'cache.lan' }],
      ['medium fr', 'quelle adresse a mail.lan dans lanhosts.txt', { host: 'mail.lan', path: 'lanhosts.txt' }],
    ],
    distractors: [
      ['contradiction', 'which host has the address 10.2.0.9 in lanhosts.txt'],
      ['operation', 'give mail.lan another address in lanhosts.txt'],
    ],
  },
  {
    id: 'censor',
    first: ['black out the given words in a text', { text: 'meet Anton at pier 9', words: ['Anton', 'pier'] }],
    given: { text: 'text', words: 'words' },
    code: () => `let text = args.text;
for (const word of args.words) {
  text = (await mcp.text.replace({ text, find: word, with: "█".repeat(word.length) })).text;
}
return text;`,
    seconds: [
      ['close', 'black out the given words in this text', { text: 'the key is under the mat', words: ['key', 'mat'] }],
      ['medium', 'black out these words in the text', { text: 'call Mira on 555', words: ['Mira', '555'] }],
      ['medium fr', 'noircis les mots donnés dans un texte', { text: 'rendez-vous à Lyon', words: ['Lyon'] }],
    ],
    distractors: [
      ['operation', 'count the given words in a text', { context: { text: 'the key is under the mat', words: ['key'] } }],
      ['contradiction', 'black out all but the given words in a text', { context: { text: 'the key is under the mat', words: ['key'] } }],
    ],
  },
];
