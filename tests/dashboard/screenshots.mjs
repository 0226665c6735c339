// Makes the pictures of the documentation: starts the real `pml` in a home of its own, lets an agent run programs on real
// servers, and photographs the pages in both themes. Usage: screenshots.mjs [PML [FOLDER [PAGE…]]]
//
// PML is the binary (target/debug/pml), FOLDER where the pictures go (docs/images). Without a PAGE those of the documentation are
// photographed; `all` photographs every page. With PHONE=1 they are photographed as on a phone, for looking at only.

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { chromium } from 'playwright-core';

const HERE = dirname(fileURLToPath(import.meta.url));
const [binary = join(HERE, '../../target/debug/pml'), folder = join(HERE, '../../docs/images'), ...only] = process.argv.slice(2);
const PML = resolve(binary);
const OUT = resolve(folder);
const PACKAGES = join(HERE, '../node_modules/@modelcontextprotocol');
/** The pages that the documentation shows. */
const SHOWN = ['runs', 'definition', 'invocation', 'graph', 'inbox', 'discover'];
/** What a network would add to each call, in milliseconds: without it all bars would be equally short. */
const LATENCY_MS = 60;

const REPORT = `// Adds up the sales of a quarter and keeps the result.
const files = await Promise.all([
  mcp.files.read_text_file({ path: \`\${args.quarter}/first.csv\` }),
  mcp.files.read_text_file({ path: \`\${args.quarter}/second.csv\` }),
  mcp.files.read_text_file({ path: \`\${args.quarter}/third.csv\` }),
]);
let total = 0;
for (const file of files) {
  const table = await mcp.csv.parse({ csv: file.content });
  for (const row of table.rows) total += Number(row.amount);
}
if (total >= 500) {
  await mcp.memory.create_entities({ entities: [{ name: args.quarter, entityType: 'report', observations: ['target met'] }] });
} else {
  const known = await mcp.memory.search_nodes({ query: 'report' });
  await mcp.memory.create_entities({ entities: [{ name: args.quarter, entityType: 'report', observations: [\`short, like \${known.entities.length} others\`] }] });
}
return { total };`;

const LETTER = `const notes = await mcp.memory.search_nodes({ query: args.about });
const names = notes.entities.map((entity) => entity.name).join(', ');
await mcp.files.write_file({ path: 'letter.txt', content: \`Quarters that were noted: \${names}\` });
return 'written';`;

const AGE = `const days = await mcp.time.diff({ from: args.since, to: '2026-06-30' });
return await mcp.math.evaluate({ expression: \`\${days.days} / 7\` });`;

const QUARTERS = { '2025-q3': [120, 80, 90], '2025-q4': [200, 210, 190], '2026-q1': [180, 190, 260], '2026-q2': [90, 300, 240] };

const home = realpathSync(mkdtempSync(join(tmpdir(), 'pml-pictures-')));
const children = [];

function prepare() {
  const work = join(home, 'work');
  for (const [quarter, months] of Object.entries(QUARTERS)) {
    mkdirSync(join(work, quarter), { recursive: true });
    months.forEach((amount, index) => writeFileSync(join(work, quarter, `${['first', 'second', 'third'][index]}.csv`), `region,amount\nnorth,${amount / 2}\nsouth,${amount / 2}\n`));
  }
  const server = (name, script, args, env = '') => `[servers.${name}]\ncommand = ${JSON.stringify(process.execPath)}
args = ${JSON.stringify([join(HERE, '../headline/delay.mjs'), String(LATENCY_MS), join(PACKAGES, script, 'dist/index.js'), ...args])}
cwd = ${JSON.stringify(work)}\nstart = "eager"\n${env}`;
  writeFileSync(join(home, 'pml.toml'), `[builtin.fs]\nroot = ${JSON.stringify(work)}\n
${server('files', 'server-filesystem', [work])}
${server('memory', 'server-memory', [], `env = { MEMORY_FILE_PATH = ${JSON.stringify(join(home, 'memory.jsonl'))} }`)}
[permissions]
"memory" = { approval_mode = "auto" }
"files:read_*" = { approval_mode = "auto", read_only = true }
"files:list_*" = { approval_mode = "auto", read_only = true }
"memory:search_nodes" = { approval_mode = "auto", read_only = true }
"memory:read_graph" = { approval_mode = "auto", read_only = true }
[approvals]
by = "human"
`);
}

const environment = { PATH: process.env.PATH, HOME: home, PML_HOME: home };

/** The runs that the pictures show. */
async function work() {
  const agent = new Client({ name: 'agent', version: '1.0.0' });
  await agent.connect(new StdioClientTransport({ command: PML, args: ['stdio'], env: environment, cwd: home, stderr: 'ignore' }));
  const execute = async (intent, code, context) => {
    const told = await agent.callTool({ name: 'pml_execute', arguments: { intent, implementation: { type: 'code', code }, context, options: { cache: false } } });
    return told.structuredContent;
  };
  for (const quarter of [...Object.keys(QUARTERS), '2027-q1']) {
    const { status, error } = await execute('add up the sales of a quarter', REPORT, { quarter });
    if (status !== 'success' && quarter !== '2027-q1') throw new Error(`${quarter}: ${status} ${JSON.stringify(error)}`);
  }
  for (const since of ['2026-01-01', '2026-03-01']) {
    const { status, error } = await execute('weeks since a day', AGE, { since });
    if (status !== 'success') throw new Error(`${since}: ${status} ${JSON.stringify(error)}`);
  }
  const asked = await execute('write a letter about the noted quarters', LETTER, { about: 'report' });
  if (asked.status !== 'approval_required') throw new Error(JSON.stringify(asked));
  await agent.close();
}

/** Serves the pages and gives the link that opens them. */
async function serve() {
  const child = spawn(PML, ['serve', '--listen', '127.0.0.1:0'], { env: environment, cwd: home, stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  for await (const line of createInterface({ input: child.stdout })) {
    const link = line.match(/http:\S+\/open\/\S+/);
    if (link) return link[0];
  }
  throw new Error('pml serve ended');
}

/** The capability that was learned from the report. */
async function learned(page) {
  for (let tries = 0; tries < 100; tries += 1) {
    const { capabilities } = await page.evaluate(() => fetch('/api/capabilities').then((reply) => reply.json()));
    const found = capabilities.find((capability) => capability.intents.some((intent) => intent.text.startsWith('add up')) && capability.usageCount >= 4);
    if (found) return found.name;
    await page.waitForTimeout(100);
  }
  throw new Error('nothing was learned');
}

function pages(capability, run) {
  const path = `/capabilities/${encodeURIComponent(capability)}`;
  return {
    runs: ['/runs', '[role="row"][data-index]'],
    discoverFirst: ['/discover', 'main .panel'],
    definition: [path, '.definition .node', async (page) => {
      // High enough that the branch and its shares are in the picture.
      if (!process.env.PHONE) await page.setViewportSize({ width: 1280, height: 1180 });
      for (let step = 0; step < 2; step += 1) await page.click('[aria-label="Smaller"]');
      if (!process.env.PHONE) await page.hover('[data-node="files:read_text_file"]');
    }],
    invocation: [`${path}?view=invocation`, '.invocation .call', async (page) => {
      await page.locator('.run-choice input:not(:checked)').nth(1).check();
      await page.waitForFunction(() => document.querySelectorAll('section.run').length === 2);
      if (!process.env.PHONE) await page.locator('.invocation .call').nth(2).hover();
    }],
    graph: [`/graph?id=${encodeURIComponent(capability)}`, '.map[data-drawn]', (page) => page.waitForSelector('.node-panel')],
    inbox: ['/inbox', 'article'],
    discover: [`/discover?q=${encodeURIComponent('add up the sales of a quarter')}`, 'main ol, main table, main [role="row"]'],
    run: [`/runs/${run}`, '.row-call', async (page) => {
      await page.locator('.row-call').nth(1).click();
      await page.getByRole('region', { name: /^Call/ }).getByText('Result').waitFor();
    }],
    capabilities: ['/capabilities', '[role="row"][data-index]'],
    test: [`/test?capability=${encodeURIComponent(capability)}`, 'main form button'],
    servers: ['/servers?server=files', '.trow', async (page) => {
      await page.locator('.trow').first().click();
      await page.waitForSelector('.plain td');
    }],
    savings: ['/savings', 'main svg'],
  };
}

async function photograph(link) {
  const browser = await chromium.launch({
    executablePath: process.env.PATH.split(':').map((one) => join(one, 'chromium')).find(existsSync),
    // Whoever runs this may be root, where Chromium's own sandbox does not start.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  });
  try {
    const viewport = process.env.PHONE ? { width: 390, height: 844 } : { width: 1280, height: 900 };
    const page = await (await browser.newContext({ viewport, reducedMotion: 'reduce' })).newPage();
    page.on('pageerror', (error) => { throw error; });
    await page.goto(link);
    const capability = await learned(page);
    mkdirSync(OUT, { recursive: true });
    const { items } = await page.evaluate(() => fetch('/api/runs?status=done').then((reply) => reply.json()));
    for (const [name, [path, selector, act]] of Object.entries(pages(capability, items.at(-1).id))) {
      if (!only.includes('all') && !(only.length > 0 ? only : SHOWN).includes(name)) continue;
      await page.goto(new URL(path, link).href);
      await page.waitForSelector(selector);
      await act?.(page);
      for (const theme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme: theme });
        await page.waitForTimeout(300);
        await page.screenshot({ path: join(OUT, `${name}-${theme}.png`), fullPage: Boolean(process.env.PHONE) });
      }
      await page.emulateMedia({ colorScheme: 'light' });
      await page.setViewportSize(viewport);
    }
  } finally {
    await browser.close();
  }
}

try {
  prepare();
  await work();
  await photograph(await serve());
} finally {
  for (const child of children) child.kill();
  rmSync(home, { recursive: true, force: true });
}
