// Copies the libraries of the dashboard from `tests/node_modules` into the page, as the packages built them. Bare names
// become paths, because a page needs an import map to resolve names and the content security policy forbids inline ones.
// Usage: npm --prefix tests run vendor (or with --check: only compares).
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const packages = join(here, '../node_modules');
const target = join(here, '../../crates/pml/src/dashboard/page/vendor');

/** Name in an import → file in its package → file here. */
const MODULES = [
  ['preact', 'preact/dist/preact.mjs', 'preact.js'],
  ['preact/hooks', 'preact/hooks/dist/hooks.mjs', 'hooks.js'],
  ['htm', 'htm/dist/htm.mjs', 'htm.js'],
  ['@preact/signals-core', '@preact/signals-core/dist/signals-core.mjs', 'signals-core.js'],
  ['@preact/signals', '@preact/signals/dist/signals.mjs', 'signals.js'],
];

const paths = new Map(MODULES.map(([name, , file]) => [name, `./${file}`]));
const made = new Map();
for (const [, source, file] of MODULES) {
  const text = readFileSync(join(packages, source), 'utf8').replace(/^\/\/# sourceMappingURL=.*\n?/m, '');
  made.set(file, text.replace(/(from|import)\s*"([^".][^"]*)"/g, (_, word, name) => {
    if (!paths.has(name)) throw new Error(`${source} imports ${name}, which is not vendored`);
    return `${word}"${paths.get(name)}"`;
  }));
}

const licences = [...new Set(MODULES.map(([name]) => name.split('/').slice(0, name[0] === '@' ? 2 : 1).join('/')))].map((name) => {
  const folder = join(packages, name);
  const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const text = readFileSync(join(folder, 'LICENSE'), 'utf8').trim();
  return `${name} ${version} (${license})\n\n${text}\n`;
});
made.set('LICENSES.txt', licences.join(`\n${'-'.repeat(80)}\n\n`));

const check = process.argv.includes('--check');
mkdirSync(target, { recursive: true });
let differs = false;
for (const [file, text] of made) {
  const path = join(target, file);
  if (existsSync(path) && readFileSync(path, 'utf8') === text) continue;
  differs = true;
  if (check) console.error(`${path} is not what the packages hold: run npm run vendor`);
  else writeFileSync(path, text);
}
if (check && differs) process.exit(1);
