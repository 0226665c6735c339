// More folders and texts: comments in code, empty files, contents, logs, letters.

import { deepEqual } from 'node:assert/strict';
import { each, prose, random } from '../data.mjs';

const numbered = (folder, name, ending, count) =>
  Array.from({ length: count }, (_, i) => `${folder}/${name}${i + 1}.${ending}`);
const inside = (files, folder) =>
  Object.keys(files)
    .filter((path) => path.startsWith(`${folder}/`))
    .sort();
const lines = (text) => text.split('\n').filter(Boolean);

const modules = each([...numbered('code/api', 'part', 'txt', 6), ...numbered('code/worker', 'part', 'txt', 7)], (i) =>
  Array.from({ length: 25 }, (_, line) => ((line * 7 + i) % 19 === 3 ? `// REVIEW item ${i}-${line}` : `step(${line});`)).join('\n'),
);
const marked = (files, folder, marker) =>
  inside(files, folder).flatMap((path) =>
    files[path].split('\n').flatMap((text, i) => (text.includes(marker) ? [`${path}:${i + 1}`] : [])),
  );

const markers = {
  id: 'review-markers',
  files: modules,
  first: { intent: 'where are the "REVIEW" comments in code/api?', folder: 'code/api', marker: 'REVIEW' },
  second: { intent: 'where are the "REVIEW" comments in code/worker?', folder: 'code/worker', marker: 'REVIEW' },
  plain: async (tool, { folder, marker }) => {
    const { matches } = await tool('fs__search', { path: folder, contains: marker });
    return matches.map(({ path, line }) => `${path}:${line}`).sort();
  },
  code: ({ folder, marker }) => `const { matches } = await mcp.fs.search({ path: "${folder}", contains: "${marker}" });
return matches.map((m) => m.path + ":" + m.line).sort();`,
  check: (answer, { folder, marker }) => deepEqual(answer, marked(modules, folder, marker).sort()),
};

const uploads = each([...numbered('uploads/monday', 'scan', 'txt', 14), ...numbered('uploads/friday', 'scan', 'txt', 12)], (i) =>
  i % 4 === 1 ? '' : prose(i + 300, 20),
);

const empty = {
  id: 'empty-files',
  files: uploads,
  first: { intent: 'which files in uploads/monday are empty?', folder: 'uploads/monday' },
  second: { intent: 'list the empty files in uploads/friday', folder: 'uploads/friday' },
  plain: async (tool, { folder }) => {
    const { entries } = await tool('fs__list', { path: folder });
    return entries.filter(({ size }) => size === 0).map(({ path }) => path);
  },
  code: ({ folder }) => `const { entries } = await mcp.fs.list({ path: "${folder}" });
return entries.filter((entry) => entry.type === "file" && entry.size === 0).map((entry) => entry.path);`,
  check: (answer, { folder }) => deepEqual([...answer].sort(), inside(uploads, folder).filter((path) => uploads[path] === '')),
};

const manuals = each(['handbook/setup.md', 'handbook/travel.md'], (i) =>
  Array.from({ length: 9 }, (_, n) => `${n % 3 ? '##' : '#'} Section ${i + 1}.${n + 1}\n\n${prose(i * 20 + n + 330, 40)}`).join('\n'),
);

const contents = {
  id: 'table-of-contents',
  files: manuals,
  first: { intent: 'give me the table of contents of handbook/setup.md', path: 'handbook/setup.md' },
  second: { intent: 'give me the table of contents of handbook/travel.md', path: 'handbook/travel.md' },
  plain: async (tool, { path }) => {
    const { content } = await tool('fs__read', { path });
    return [...content.matchAll(/^#+ (.*)$/gm)].map(([, title]) => title);
  },
  code: ({ path }) => `const { content } = await mcp.fs.read({ path: "${path}" });
const { matches } = await mcp.text.match({ text: content, pattern: "(?m)^#+ (.*)$" });
return matches.map((m) => m.groups[0]);`,
  check: (answer, { path }) => deepEqual(answer, [...manuals[path].matchAll(/^#+ (.*)$/gm)].map(([, title]) => title)),
};

const requests = (seed) => {
  const next = random(seed);
  const statuses = [200, 200, 200, 301, 404, 500, 503];
  return Array.from(
    { length: 80 },
    (_, i) => `10.0.0.${i % 9} GET /page/${Math.floor(next() * 40)} ${statuses[Math.floor(next() * statuses.length)]}\n`,
  ).join('');
};
const servers = each(['web/access-1.log', 'web/access-2.log'], (i) => requests(i + 5));
const withStatus = (text, status) => lines(text).filter((line) => line.endsWith(` ${status}`)).length;

const statuses = {
  id: 'requests-with-status',
  files: servers,
  first: { intent: 'how many requests in web/access-1.log have status 500?', path: 'web/access-1.log', status: 500 },
  second: { intent: 'how many requests in web/access-2.log have status 404?', path: 'web/access-2.log', status: 404 },
  plain: async (tool, { path, status }) => withStatus((await tool('fs__read', { path })).content, status),
  code: ({ path, status }) => `const { content } = await mcp.fs.read({ path: "${path}" });
return content.split("\\n").filter((line) => line.endsWith(" ${status}")).length;`,
  check: (answer, { path, status }) => deepEqual(answer, withStatus(servers[path], status)),
};

const diaries = each(['diary/2025.txt', 'diary/2026.txt'], (i) =>
  Array.from({ length: 40 }, (_, day) => `day ${day + 1}: ${prose(i * 60 + day + 400, 9).trim()}\n`).join(''),
);

const latest = {
  id: 'last-entries',
  files: diaries,
  first: { intent: 'show the last 5 entries of diary/2025.txt', count: 5, path: 'diary/2025.txt' },
  second: { intent: 'show the last 3 entries of diary/2026.txt', count: 3, path: 'diary/2026.txt' },
  plain: async (tool, { count, path }) => lines((await tool('fs__read', { path })).content).slice(-count),
  code: ({ count, path }) => `const { content } = await mcp.fs.read({ path: "${path}" });
return content.trimEnd().split("\\n").slice(-${count});`,
  check: (answer, { count, path }) => deepEqual(answer, lines(diaries[path]).slice(-count)),
};

const endings = ['pdf', 'txt', 'png'];
const archive = each(
  ['archive/left', 'archive/right'].flatMap((folder, n) =>
    Array.from({ length: 13 + n }, (_, i) => `${folder}/item${i}.${endings[(i * (n + 2)) % 3]}`),
  ),
  (i) => `content ${i}`,
);
const byEnding = (paths) => {
  const counts = {};
  for (const path of paths) counts[path.split('.').pop()] = (counts[path.split('.').pop()] ?? 0) + 1;
  return counts;
};

const extensions = {
  id: 'files-by-extension',
  files: archive,
  first: { intent: 'count the files in archive/left by extension', folder: 'archive/left' },
  second: { intent: 'count the files in archive/right by extension', folder: 'archive/right' },
  plain: async (tool, { folder }) => byEnding((await tool('fs__list', { path: folder })).entries.map(({ path }) => path)),
  code: ({ folder }) => `const { entries } = await mcp.fs.list({ path: "${folder}" });
const counts: Record<string, number> = {};
for (const { path } of entries) {
  const ending = path.split(".").pop() ?? "";
  counts[ending] = (counts[ending] ?? 0) + 1;
}
return counts;`,
  check: (answer, { folder }) => deepEqual(answer, byEnding(inside(archive, folder))),
};

const letters = each([...numbered('letters/sent', 'letter', 'txt', 9), ...numbered('letters/drafted', 'letter', 'txt', 8)], (i) =>
  `Dear reader,\n\n${prose(i + 500, 70)}${i % 3 ? 'Please find the invoice enclosed.\n' : i % 2 ? 'The deposit is due.\n' : ''}`,
);

const unmentioned = {
  id: 'without-mention',
  files: letters,
  first: { intent: 'which letters in letters/sent do not mention "invoice"?', folder: 'letters/sent', word: 'invoice' },
  second: { intent: 'which letters in letters/drafted do not mention "deposit"?', folder: 'letters/drafted', word: 'deposit' },
  plain: async (tool, { folder, word }) => {
    const { entries } = await tool('fs__list', { path: folder });
    const { matches } = await tool('fs__search', { path: folder, contains: word });
    return entries.map(({ path }) => path).filter((path) => !matches.some((match) => match.path === path));
  },
  code: ({ folder, word }) => `const { entries } = await mcp.fs.list({ path: "${folder}" });
const found: string[] = [];
for (const { path } of entries) {
  const { content } = await mcp.fs.read({ path });
  if (!content.includes("${word}")) found.push(path);
}
return found;`,
  check: (answer, { folder, word }) =>
    deepEqual([...answer].sort(), inside(letters, folder).filter((path) => !letters[path].includes(word))),
};

const glossaries = each(['glossaires/droit.txt', 'glossaires/banque.txt'], (i) =>
  [...new Set(prose(i + 540, 200).split(/\s+/).filter(Boolean))].sort().join('\n'),
);
const startingWith = (text, prefix) => lines(text).filter((term) => term.startsWith(prefix));

const terms = {
  id: 'termes-par-prefixe',
  files: glossaries,
  first: { intent: 'quels termes de glossaires/droit.txt commencent par "re" ?', path: 'glossaires/droit.txt', prefix: 're' },
  second: { intent: 'quels termes de glossaires/banque.txt commencent par "cu" ?', path: 'glossaires/banque.txt', prefix: 'cu' },
  plain: async (tool, { path, prefix }) => startingWith((await tool('fs__read', { path })).content, prefix),
  code: ({ path, prefix }) => `const { content } = await mcp.fs.read({ path: "${path}" });
return content.split("\\n").filter((terme) => terme.startsWith("${prefix}"));`,
  check: (answer, { path, prefix }) => deepEqual(answer, startingWith(glossaries[path], prefix)),
};

export const FOLDERS = [markers, empty, contents, statuses, latest, extensions, unmentioned, terms];
