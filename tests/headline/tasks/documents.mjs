// Reading folders of texts, logs and JSON files.

import { deepEqual } from 'node:assert/strict';
import { each, prose, random } from '../data.mjs';

const numbered = (folder, name, ending, count) =>
  Array.from({ length: count }, (_, i) => `${folder}/${name}-${String(i + 1).padStart(2, '0')}.${ending}`);

const below = (place, files, folder) =>
  Object.keys(files)
    .filter((path) => path.startsWith(`${folder}/`))
    .sort()
    .map((path) => [path, place.read(path)]);

const words = (text) => text.split(/\s+/).filter(Boolean);

const notes = each(
  [...numbered('notes/week-1', 'note', 'txt', 12), ...numbered('notes/week-2', 'note', 'txt', 11)],
  (i) => prose(i + 1, 60 + i * 7),
);

const wordCounts = {
  id: 'word-counts',
  files: notes,
  first: { intent: 'count the words of every file in notes/week-1', folder: 'notes/week-1' },
  second: { intent: 'count the words of every file in notes/week-2', folder: 'notes/week-2' },
  plain: async (tool, { folder }) => {
    const counts = {};
    for (const { path } of (await tool('fs__list', { path: folder })).entries) {
      const { content } = await tool('fs__read', { path });
      counts[path] = (await tool('text__count', { text: content })).words;
    }
    return counts;
  },
  code: ({ folder }) => `const { entries } = await mcp.fs.list({ path: "${folder}" });
const counts: Record<string, number> = {};
for (const entry of entries.filter((e) => e.type === "file")) {
  const { content } = await mcp.fs.read({ path: entry.path });
  counts[entry.path] = (await mcp.text.count({ text: content })).words;
}
return counts;`,
  check: (answer, { folder }, place) =>
    deepEqual(
      answer,
      Object.fromEntries(below(place, notes, folder).map(([path, text]) => [path, words(text).length])),
    ),
};

const manuals = each(
  [...numbered('docs/api', 'page', 'md', 9), ...numbered('docs/guide', 'page', 'md', 8)],
  (i, path) => {
    const word = path.startsWith('docs/api') ? 'deprecated' : 'experimental';
    return `# Page ${i + 1}\n\n${prose(i + 40, 90)}${i % 3 ? '' : `\nThis option is ${word} since version ${i}.\n`}`;
  },
);

const mentions = {
  id: 'mentions',
  files: manuals,
  first: { intent: 'which files in docs/api mention "deprecated"?', folder: 'docs/api', word: 'deprecated' },
  second: { intent: 'which files in docs/guide mention "experimental"?', folder: 'docs/guide', word: 'experimental' },
  plain: async (tool, { folder, word }) => {
    const { matches } = await tool('fs__search', { path: folder, contains: word });
    return [...new Set(matches.map(({ path }) => path))].sort();
  },
  code: ({ folder, word }) => `const { matches } = await mcp.fs.search({ path: "${folder}", contains: "${word}" });
return [...new Set(matches.map((m) => m.path))].sort();`,
  check: (answer, { folder, word }, place) =>
    deepEqual(
      answer,
      below(place, manuals, folder)
        .filter(([, text]) => text.includes(word))
        .map(([path]) => path),
    ),
};

const handbooks = each(
  [...numbered('site/manual', 'chapter', 'md', 8), ...numbered('site/handbook', 'chapter', 'md', 9)],
  (i, path) => {
    const links = [1, 2].map((n) => `[source ${n}](https://example.com/${path.split('/')[1]}/${i}-${n})`);
    return `# Chapter ${i + 1}\n\n${prose(i + 80, 80)}\nSee ${links[0]} and ${links[1]}.\n`;
  },
);

const links = {
  id: 'markdown-links',
  files: handbooks,
  first: { intent: 'extract all links from the markdown files in site/manual', folder: 'site/manual' },
  second: { intent: 'extract all links from the markdown files in site/handbook', folder: 'site/handbook' },
  plain: async (tool, { folder }) => {
    const found = [];
    const { content } = await tool('files__list_directory', { path: folder });
    for (const [, name] of content.matchAll(/\[FILE\] (\S+\.md)/g)) {
      const page = await tool('files__read_text_file', { path: `${folder}/${name}` });
      found.push(...[...page.content.matchAll(/\]\((https?:[^)]+)\)/g)].map(([, url]) => url));
    }
    return found.sort();
  },
  context: ({ folder }) => ({ folder }),
  code: () => `const { content } = await mcp.files.list_directory({ path: args.folder });
const names = [...content.matchAll(/\\[FILE\\] (\\S+\\.md)/g)].map((m) => m[1]);
const pages = await Promise.all(names.map((name) => mcp.files.read_text_file({ path: args.folder + "/" + name })));
return pages.flatMap((page) => [...page.content.matchAll(/\\]\\((https?:[^)]+)\\)/g)].map((m) => m[1])).sort();`,
  check: (answer, { folder }, place) =>
    deepEqual(
      answer,
      below(place, handbooks, folder)
        .flatMap(([, text]) => [...text.matchAll(/\]\((https?:[^)]+)\)/g)].map(([, url]) => url))
        .sort(),
    ),
};

const parcels = each(
  [...numbered('data/incoming', 'parcel', 'json', 14), ...numbered('data/outgoing', 'parcel', 'json', 13)],
  (i) => {
    const text = JSON.stringify(
      { parcel: 7000 + i, weight: 1.5 * i, stops: ['Lyon', 'Turin', 'Graz'].slice(i % 3) },
      null,
      2,
    );
    return i % 5 === 2 ? text.replace('"stops"', 'stops') : text;
  },
);

const valid = (text) => {
  try {
    return JSON.parse(text) !== undefined;
  } catch {
    return false;
  }
};

const invalidJson = {
  id: 'invalid-json',
  files: parcels,
  first: { intent: 'which JSON files in data/incoming are not valid JSON?', folder: 'data/incoming' },
  second: { intent: 'which JSON files in data/outgoing are not valid JSON?', folder: 'data/outgoing' },
  plain: async (tool, { folder }) => {
    const bad = [];
    for (const { path } of (await tool('fs__list', { path: folder })).entries) {
      const { content } = await tool('fs__read', { path });
      if (!valid(content)) bad.push(path);
    }
    return bad;
  },
  code: ({ folder }) => `const bad: string[] = [];
for (const entry of (await mcp.fs.list({ path: "${folder}" })).entries) {
  const { content } = await mcp.fs.read({ path: entry.path });
  try {
    await mcp.json.parse({ json: content });
  } catch {
    bad.push(entry.path);
  }
}
return bad;`,
  check: (answer, { folder }, place) =>
    deepEqual(
      answer,
      below(place, parcels, folder)
        .filter(([, text]) => !valid(text))
        .map(([path]) => path),
    ),
};

const media = each([...numbered('media/2025', 'clip', 'txt', 16), ...numbered('media/2026', 'clip', 'txt', 15)], (i) =>
  'x'.repeat(200 + ((i * 7919) % 1500)),
);

const largest = {
  id: 'largest-files',
  files: media,
  first: { intent: 'list the 5 largest files in media/2025', folder: 'media/2025', count: 5 },
  second: { intent: 'list the 3 largest files in media/2026', folder: 'media/2026', count: 3 },
  plain: async (tool, { folder, count }) => {
    const { entries } = await tool('fs__list', { path: folder });
    return entries
      .sort((a, b) => b.size - a.size)
      .slice(0, count)
      .map(({ path, size }) => ({ path, size }));
  },
  code: ({ folder, count }) => `const { entries } = await mcp.fs.list({ path: "${folder}" });
return entries.sort((a, b) => b.size - a.size).slice(0, ${count}).map(({ path, size }) => ({ path, size }));`,
  check: (answer, { folder, count }, place) =>
    deepEqual(
      answer,
      below(place, media, folder)
        .map(([path, text]) => ({ path, size: text.length }))
        .sort((a, b) => b.size - a.size)
        .slice(0, count),
    ),
};

const log = (seed) => {
  const next = random(seed);
  return Array.from({ length: 90 }, (_, i) => {
    const hour = String(Math.floor((i / 90) * 24)).padStart(2, '0');
    const level = next() < 0.3 ? 'ERROR' : 'INFO';
    return `${hour}:${String(i % 60).padStart(2, '0')}:00 ${level} request ${Math.floor(next() * 90000)} to /orders took ${Math.floor(next() * 900)} ms\n`;
  }).join('');
};
const logs = each(['logs/app-2026-03-01.log', 'logs/app-2026-03-02.log'], (i) => log(i + 3));

const perHour = (lines) => {
  const hours = {};
  for (const line of lines) hours[line.slice(0, 2)] = (hours[line.slice(0, 2)] ?? 0) + 1;
  return hours;
};

const errorsByHour = {
  id: 'errors-by-hour',
  files: logs,
  first: { intent: 'count the ERROR lines of logs/app-2026-03-01.log by hour', path: 'logs/app-2026-03-01.log' },
  second: { intent: 'count the ERROR lines of logs/app-2026-03-02.log by hour', path: 'logs/app-2026-03-02.log' },
  plain: async (tool, { path }) => {
    const { content } = await tool('fs__read', { path });
    return perHour(content.split('\n').filter((line) => line.includes(' ERROR ')));
  },
  code: ({ path }) => `const { content } = await mcp.fs.read({ path: "${path}" });
const hours: Record<string, number> = {};
for (const line of content.split("\\n")) {
  if (line.includes(" ERROR ")) hours[line.slice(0, 2)] = (hours[line.slice(0, 2)] ?? 0) + 1;
}
return hours;`,
  check: (answer, { path }, place) =>
    deepEqual(
      answer,
      perHour(
        place
          .read(path)
          .split('\n')
          .filter((line) => line.includes(' ERROR ')),
      ),
    ),
};

const journals = each(
  [...numbered('journaux/serveur-a', 'jour', 'log', 7), ...numbered('journaux/serveur-b', 'jour', 'log', 8)],
  (i) => prose(i + 120, 100 + 12 * i),
);

const frenchLines = {
  id: 'lignes-par-fichier',
  files: journals,
  first: { intent: 'compte les lignes de chaque fichier de journaux/serveur-a', folder: 'journaux/serveur-a' },
  second: { intent: 'compte les lignes de chaque fichier de journaux/serveur-b', folder: 'journaux/serveur-b' },
  plain: async (tool, { folder }) => {
    const counts = {};
    for (const { path } of (await tool('fs__list', { path: folder })).entries) {
      const { content } = await tool('fs__read', { path });
      counts[path] = content.split('\n').length - 1;
    }
    return counts;
  },
  code: ({ folder }) => `const lignes: Record<string, number> = {};
for (const fichier of (await mcp.fs.list({ path: "${folder}" })).entries) {
  const { content } = await mcp.fs.read({ path: fichier.path });
  lignes[fichier.path] = content.split("\\n").length - 1;
}
return lignes;`,
  check: (answer, { folder }, place) =>
    deepEqual(
      answer,
      Object.fromEntries(below(place, journals, folder).map(([path, text]) => [path, text.split('\n').length - 1])),
    ),
};

const chapters = each(['drafts/chapter-1.md', 'drafts/chapter-2.md'], (i) => prose(i + 150, 320));
const long = (text, letters) => words(text).filter((word) => word.length > letters).length;

/** The second time the user does not say how long a long word is. */
const longWords = {
  id: 'long-words',
  files: chapters,
  first: {
    intent: 'how many words longer than 7 letters are in drafts/chapter-1.md?',
    path: 'drafts/chapter-1.md',
    letters: 7,
  },
  second: { intent: 'how many long words are in drafts/chapter-2.md?', path: 'drafts/chapter-2.md', letters: 8 },
  plain: async (tool, { path, letters }) => long((await tool('fs__read', { path })).content, letters),
  context: ({ path, letters }) => ({ path, letters }),
  code: () => `const { content } = await mcp.fs.read({ path: args.path });
return content.split(/\\s+/).filter((word) => word.length > args.letters).length;`,
  check: (answer, { path, letters }, place) => deepEqual(answer, long(place.read(path), letters)),
};

export const DOCUMENTS = [wordCounts, mentions, links, invalidJson, largest, errorsByHour, frenchLines, longWords];
