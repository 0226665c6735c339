// Looks at the pages Capabilities, Capability and Graph in a real Chromium, as a person would, and prints what was seen as one
// JSON object. Usage: views-browser.mjs JSON, where JSON has `url`, `passphrase` and `capability`.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { PAYLOADS } from './payloads.mjs';

const given = JSON.parse(process.argv[2]);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = await chromium.launch({
  executablePath: process.env.PATH.split(':').map((folder) => join(folder, 'chromium')).find(existsSync),
  // Tests may run as root, where Chromium's own sandbox does not start.
  args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
const page = await context.newPage();
page.setDefaultTimeout(30_000);
const wrong = [];
page.on('dialog', async (dialog) => {
  wrong.push(`dialog: ${dialog.message()}`);
  await dialog.dismiss();
});
page.on('pageerror', (error) => wrong.push(`error: ${error.message}`));
page.on('console', (message) => {
  if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) wrong.push(`console: ${message.text()}`);
});

/** What axe finds that is serious, in both themes. It is evaluated by the driver, which the page's policy does not concern. */
async function findings() {
  const found = [];
  for (const theme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
    for (const { id, impact, nodes } of violations) {
      if (impact === 'serious' || impact === 'critical') found.push(`${theme} ${new URL(page.url()).pathname} ${id}: ${nodes.slice(0, 3).map((node) => node.html).join(' ')}`);
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
  return found;
}
const texts = (selector) => page.locator(selector).evaluateAll((nodes) => nodes.map((node) => node.getAttribute('data-call') ?? node.getAttribute('data-node') ?? node.textContent));
const marked = async () => ({ nodes: await texts('.definition .node.marked'), calls: await texts('.invocation .call.marked'), source: (await texts('.source .marked')).join('') });
const focused = () => page.evaluate(() => document.activeElement.getAttribute('data-node') ?? document.activeElement.getAttribute('data-call'));

/** Goes to an element by Tab alone. */
async function reach(locator) {
  for (let press = 0; press < 120; press += 1) {
    if (await locator.evaluate((node) => node === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`not reached by Tab: ${locator}`);
}
async function keys(locator, ...pressed) {
  await reach(locator);
  for (const key of pressed) await page.keyboard.press(key);
}

/** Where a text stands whose value decides what is drawn, so that another one would draw something else. */
const OURS = new Set(['state', 'status', 'origin', 'direction', 'language', 'kind', 'type', 'role', 'principal', 'version', 'hash']);
/** Ids refer to one another, so the same one becomes the same text; so do names of tools and nodes. */
const swapped = new Map();
let used = 0;
let seed = 0;
function foreign(text) {
  if (!swapped.has(text)) swapped.set(text, `${PAYLOADS[(seed + used++) % PAYLOADS.length]}\u202e${swapped.size}`);
  return swapped.get(text);
}
/** Every text of a reply, and every name of a property of a schema, is one that somebody else wrote. */
function poisoned(value, key = '', inSchema = false) {
  if (typeof value === 'string') return OURS.has(key) ? value : foreign(value);
  if (Array.isArray(value)) return value.map((item) => poisoned(item, key, inSchema));
  if (value === null || typeof value !== 'object') return value;
  const named = key === 'properties' || key === 'labels';
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [named ? foreign(name) : name, poisoned(inner, named ? '' : name, inSchema || named)]));
}

const seen = { wrong, axe: [] };
try {
  await page.goto(`${given.url}/capabilities`);
  await page.fill('#passphrase', given.passphrase);
  await page.keyboard.press('Enter');
  await page.waitForSelector('[role="row"][data-index]');
  seen.axe.push(...await findings());
  await page.keyboard.press('/');
  await page.keyboard.type('no such thing');
  await page.waitForSelector('text=No capability matches');
  await page.keyboard.press('Escape');
  await page.locator('[data-index="0"]').focus();
  await page.keyboard.press('Enter');
  await page.waitForSelector('.definition .node');
  seen.opened = decodeURIComponent(new URL(page.url()).pathname);

  // The toggle, by keys.
  seen.definition = { nodes: await texts('.definition .node.tool'), calls: await texts('.invocation .call') };
  seen.axe.push(...await findings());
  await page.locator('[data-tab="definition"]').focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForSelector('.invocation .call');
  seen.invocation = { nodes: await texts('.definition .node.tool'), calls: await texts('.invocation .call') };
  seen.axe.push(...await findings());
  await page.keyboard.press('ArrowRight');
  await page.waitForSelector('.definition .node');

  // Pointing at one thing marks it everywhere.
  await page.hover('.definition .node.tool');
  seen.overNode = await marked();
  await page.hover('.invocation .call >> nth=1');
  seen.overCall = await marked();
  await page.locator('.source [data-point]').first().hover();
  seen.overSource = await marked();
  await page.hover('h1');
  seen.overNothing = await marked();

  // Nodes and calls by keys.
  await page.locator('.definition [tabindex="0"]').focus();
  const first = await focused();
  await page.keyboard.press('End');
  const last = await focused();
  await page.keyboard.press('ArrowUp');
  seen.arrows = { first, last, up: await focused() };
  await page.keyboard.press('Enter');
  seen.selected = await page.locator('.selection h2').innerText();
  await page.locator('.invocation [tabindex="0"]').first().focus();
  await page.keyboard.press('ArrowRight');
  seen.nextCall = await focused();

  // Several runs on one page.
  for (const shown of [2, 3]) {
    await keys(page.locator('.run-choice input:not(:checked)').first(), 'Space');
    await page.waitForFunction((number) => document.querySelectorAll('section.run').length === number, shown);
  }
  seen.runs = await page.locator('section.run').count();
  seen.axe.push(...await findings());

  // A run with a form from the schema. What the server makes of it is a matter of `/api/execute`.
  await page.route('**/api/execute', async (route) => {
    seen.executed = route.request().postDataJSON();
    await route.fulfill({ status: 422, contentType: 'application/json', body: JSON.stringify({ error: { code: 'TEST', message: 'stopped by the test' } }) });
  });
  await keys(page.getByRole('button', { name: 'Run…' }), 'Enter');
  await page.waitForSelector('dialog form');
  seen.axe.push(...await findings());
  const field = page.locator('dialog .form-field', { has: page.locator('code', { hasText: /^n$/ }) });
  await keys(field.locator('input, textarea'), 'Control+a', 'Delete');
  await keys(page.locator('dialog button[type="submit"]'), 'Enter');
  seen.invalid = await field.locator('.field-error').innerText();
  await keys(field.locator('input, textarea'), '7');
  await keys(page.locator('dialog button[type="submit"]'), 'Enter');
  await page.waitForSelector('dialog .problem');
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog', { state: 'detached' });

  await keys(page.getByRole('button', { name: 'Rename…' }), 'Enter');
  await page.waitForSelector('dialog input:focus');
  await page.keyboard.type('renamedHere');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/capabilities/renamedHere**');
  await page.waitForSelector('h1:has-text("renamedHere")');

  // Narrow: nothing wider than the page.
  await page.setViewportSize({ width: 400, height: 800 });
  seen.wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
  await page.setViewportSize({ width: 1280, height: 900 });

  // The map.
  await page.locator('h1').click();
  for (const key of 'gc') await page.keyboard.press(key);
  await page.waitForSelector('h1:has-text("Capabilities")');
  for (const key of 'gg') await page.keyboard.press(key);
  await page.waitForSelector('.map[data-drawn]');
  seen.axe.push(...await findings());
  await page.locator('.map').focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => document.querySelector('.map-box [role="status"]').textContent !== '');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.node-panel');
  seen.byKeys = await page.locator('.node-panel h2').innerText();
  // From a button: on the map itself, keys move the map.
  const find = async (name) => {
    await page.locator('.node-panel header button').focus();
    await page.keyboard.press('/');
    await page.keyboard.type(name);
    await keys(page.locator('[aria-label="Found"] button').first(), 'Enter');
  };
  await find('csv:parse');
  await page.waitForSelector('.node-panel h2:has-text("csv:parse")');
  seen.neighbours = await page.locator('.node-panel .neighbours li').count();
  await keys(page.getByRole('button', { name: 'Ways from here…' }), 'Enter');
  await find('csv:stringify');
  await page.waitForSelector('.node-panel h2:has-text("csv:stringify")');
  await keys(page.getByRole('button', { name: 'Ways to here' }), 'Enter');
  await page.waitForSelector('.graph-ways > li');
  seen.way = (await page.locator('.graph-ways .way').first().innerText()).replace(/\s+/g, ' ');
  seen.schemas = await page.locator('.ways-panel .schema').count();
  seen.axe.push(...await findings());

  // Text of others in every field: it is shown, and nothing of it becomes part of the page.
  await page.route('**/api/**', async (route) => {
    const reply = await route.fetch();
    if (!(reply.headers()['content-type'] ?? '').includes('json')) return route.fulfill({ response: reply });
    const whole = await reply.json();
    const session = new URL(route.request().url()).pathname === '/api/session';
    return route.fulfill({ response: reply, body: JSON.stringify(session ? whole : poisoned(whole)) });
  });
  const here = '/capabilities/renamedHere?view=both';
  const places = [['/capabilities', '[role="row"][data-index]'], [here, '.definition .node'], ['/graph?id=csv:parse', '.node-panel'], ['/graph?from=csv:parse&to=csv:stringify', '.graph-ways > li']];
  for (let round = 0; round < 3; round += 1) {
    // Another payload for every text than in the round before.
    seed += 21;
    swapped.clear();
    for (const [path, selector] of places) {
      await page.goto(given.url + path);
      await page.waitForSelector(selector);
      await page.evaluate(() => document.querySelectorAll('details').forEach((details) => { details.open = true; }));
      seen.hidden = (seen.hidden ?? 0) + await page.evaluate(() => Number(/[\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText + document.title)));
      seen.injected = (seen.injected ?? 0) + await page.locator('main img, main script, main iframe, main object, main a[href^="javascript"], main [onload], main [onerror], main [onclick]').count() + await page.evaluate(() => Number('pwned' in globalThis));
    }
  }
  seen.poisons = used;
  await page.unroute('**/api/**');

  await page.goto(`${given.url}/capabilities/nobody`);
  await page.waitForSelector('h1:has-text("Not found")');
  await page.goto(`${given.url}/capabilities/renamedHere`);
  await page.waitForSelector('.definition .node');
  await keys(page.getByRole('button', { name: 'Forget…' }), 'Enter');
  await page.getByRole('dialog', { name: 'Forget this capability?' }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL('**/capabilities');
  await page.waitForSelector('text=Nothing has been learned yet');
} catch (error) {
  wrong.push(String(error), page.url(), await page.evaluate(() => document.body.innerText.slice(0, 600)));
} finally {
  console.log(JSON.stringify(seen));
  await browser.close();
}
