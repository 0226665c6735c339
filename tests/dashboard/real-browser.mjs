// Looks at the pages Runs, one run, Discover, Test, Servers and Savings of a real gateway in a real Chromium, as a person would,
// and prints what was seen as one JSON object. Usage: real-browser.mjs JSON; crates/pml/tests/dashboard/real.rs says what is given.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { PAYLOADS } from './payloads.mjs';

const given = JSON.parse(process.argv[2]);
const { origin } = new URL(given.link);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = await chromium.launch({
  executablePath: process.env.PATH.split(':').map((folder) => join(folder, 'chromium')).find(existsSync),
  // Tests may run as root, where Chromium's own sandbox does not start.
  args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
});
const seen = { wrong: [], axe: [], wide: [], pages: [] };

async function tab() {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' })).newPage();
  page.setDefaultTimeout(30_000);
  page.on('dialog', async (dialog) => {
    seen.wrong.push(`dialog: ${dialog.message()}`);
    await dialog.dismiss();
  });
  page.on('pageerror', (error) => seen.wrong.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) seen.wrong.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => { if (!/^http:\/\/127\.0\.0\.1:/.test(request.url())) seen.wrong.push(`request: ${request.url()}`); });
  return page;
}

/** What every page has to be: without serious findings of axe in both themes, no wider than a phone, and without elements that others wrote. */
async function check(page, name) {
  for (const theme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
    for (const { id, impact, nodes } of violations) {
      if (impact === 'serious' || impact === 'critical') seen.axe.push(`${theme} ${name} ${id}: ${nodes.slice(0, 2).map((node) => node.html.slice(0, 200)).join(' ')}`);
    }
  }
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await page.setViewportSize({ width: 390, height: 800 });
  await page.evaluate(() => new Promise(requestAnimationFrame));
  if (await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)) seen.wide.push(name);
  await page.setViewportSize({ width: 1280, height: 800 });
  seen.injected = (seen.injected ?? 0) + await page.evaluate(() => {
    const foreign = 'img, script, iframe, object, embed, base, meta, link, style, video, audio, marquee, math, template, frameset, [onload], [onerror], [onclick], [onfocus], [srcdoc], a[href^="javascript" i], a[href^="data:" i]';
    return document.querySelectorAll(['main', '[role="dialog"]'].map((box) => foreign.split(', ').map((one) => `${box} ${one}`)).flat().join(', ')).length + Number('pwned' in globalThis);
  });
  seen.pages.push(name);
}

const rows = (page) => page.locator('.trow').allInnerTexts();

/** The list of runs, live: a run of another process appears and ends while the list is open. */
async function runs(page) {
  await page.goto(`${origin}/runs`);
  await page.locator('.trow').first().waitFor();
  await check(page, 'runs');
  writeFileSync(given.begin, '');
  const live = page.locator('.trow', { hasText: 'seen live' });
  await live.getByText('running').waitFor();
  writeFileSync(given.finish, '');
  await live.getByText('done').waitFor();
  seen.live = true;
  await page.keyboard.press('/');
  await page.keyboard.type('killed and resumed');
  await page.waitForFunction(() => document.querySelectorAll('.trow').length === 1);
  seen.resumedRows = await rows(page);
  await page.getByLabel('Filter by text').fill('');
  await page.getByLabel('Filter by tool').fill('fs:read');
  await page.waitForFunction(() => document.querySelector('.trow')?.innerText.includes('at once') && document.querySelectorAll('.trow').length === 1);
  seen.byTool = await rows(page);
  await page.getByLabel('Filter by tool').fill('');
  await page.getByLabel('Status').selectOption('failed');
  await page.waitForFunction(() => [...document.querySelectorAll('.trow')].length > 0 && [...document.querySelectorAll('.trow')].every((row) => row.innerText.includes('failed')));
  seen.failed = await rows(page);
  // Every intent is there as it was written.
  await page.getByLabel('Status').selectOption('');
  const reached = new Set();
  await page.locator('.trow').nth(15).waitFor();
  for (let at = 0; at < 12; at += 1) {
    for (const text of await page.locator('.trow').evaluateAll((all) => all.map((row) => row.textContent))) PAYLOADS.filter((payload) => text.includes(payload)).forEach((payload) => reached.add(payload));
    await page.locator('.table').evaluate((box) => { box.scrollTop += 500; });
    await page.evaluate(() => new Promise(requestAnimationFrame));
    await page.waitForTimeout(50);
  }
  seen.intents = reached.size;
  await check(page, 'runs');
}

/** One run: its calls on an axis of time, arguments and results on demand, and the other tabs. */
async function run(page) {
  await page.goto(`${origin}/runs/${given.run}`);
  await page.locator('.row-call').nth(3).waitFor();
  seen.calls = await page.locator('.row-call').count();
  await page.locator('.row-call').first().focus();
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  const panel = page.getByRole('region', { name: /^Call \d+/ });
  await panel.waitFor();
  await check(page, 'run, a call');
  await page.keyboard.press('Escape');
  for (const [name, told] of [['Program', 'Promise.all'], ['Decisions', 'args.large'], ['Console', 'read the files'], ['Arguments and result', 'large']]) {
    const found = page.getByRole('tab', { name: new RegExp(`^${name}`) });
    if (await found.count() === 0) { seen.wrong.push(`no tab ${name}: ${await page.getByRole('tab').allInnerTexts()}`); continue; }
    await found.click();
    await page.locator('main').getByText(told).first().waitFor();
    await check(page, `run, ${name}`);
  }
  // A result of nearly 4 MB is read in parts and drawn in part.
  await page.goto(`${origin}/runs/${given.run}?call=4`);
  await panel.getByText('Result').first().waitFor();
  await panel.locator('.line').nth(10).waitFor();
  seen.lines = await panel.locator('.line').count();
  await page.goto(`${origin}/runs/${given.resumed}`);
  await page.locator('.row-call').first().waitFor();
  await page.locator('main').getByText('done', { exact: true }).first().waitFor();
  seen.resumed = await page.locator('main').innerText();
  // The rows are those of the calls in order; the interruption stands somewhere between.
  const gap = page.locator('.row-gap .tree-label');
  for (let step = 0; step <= 60 && await gap.count() === 0; step += 1) {
    await page.locator('.table').evaluate((box, part) => { box.scrollTop = box.scrollHeight * part; }, step / 60);
    await page.evaluate(() => new Promise(requestAnimationFrame));
    await page.waitForTimeout(50);
  }
  seen.gaps = await gap.allInnerTexts();
  const texts = [];
  for (const id of ['run_00000000000000000000000000000000', given.foreign]) {
    await page.goto(`${origin}/runs/${id}`);
    await page.getByText('There is nothing here for you').waitFor();
    texts.push((await page.locator('main').innerText()).replaceAll(id, 'ID'));
  }
  seen.unknown = texts;
  await page.goto(`${origin}/runs/${given.poisoned}`);
  await page.locator('.row-call').first().waitFor();
  await page.locator('.row-call').first().click();
  await panel.getByText('onerror').first().waitFor();
  await check(page, 'run, of others');
  await page.getByRole('tab', { name: /^Console/ }).click();
  await page.locator('main').getByText('onerror').first().waitFor();
  await check(page, 'run, console of others');
}

/** A run that goes on: what it prints and decides comes while it does. That of another process says that it comes at the end. */
async function watched(page) {
  const main = page.locator('main');
  const part = async (run, name) => {
    await page.goto(`${origin}/runs/${run}?tab=${name}`);
    await main.getByRole('tab', { selected: true }).waitFor();
  };
  for (const name of ['console', 'decisions']) {
    await part(given.elsewhere, name);
    await main.getByText('Shown at the end').waitFor();
  }
  await check(page, 'run, elsewhere');
  seen.elsewhere = true;
  await part(given.run, 'decisions');
  await main.getByText('args.live').waitFor();
  await part(given.run, 'console');
  await main.getByText('seen while it runs').waitFor();
  await main.getByText('the branch was taken').waitFor();
  await main.getByText('running', { exact: true }).waitFor();
  writeFileSync(given.more, '');
  await main.getByText('and more is said').waitFor();
  await main.getByText('running', { exact: true }).waitFor();
  writeFileSync(given.end, '');
  await main.getByText('it is over').waitFor();
  await main.getByText('done', { exact: true }).waitFor();
  seen.live = true;
}

async function discover(page) {
  await page.goto(`${origin}/discover`);
  await page.locator('main input').first().fill('count up by three');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.result');
  seen.found = await page.locator('.result').first().innerText();
  seen.wouldRun = await page.locator('main').innerText();
  await check(page, 'discover');
  await page.goto(`${origin}/discover?q=${encodeURIComponent(PAYLOADS.slice(0, 10).join(' '))}`);
  await page.waitForSelector('.result, .empty');
  await check(page, 'discover, of others');
}

/** A dry run by a form, and the ways to serve an intent; only a person who signed in may ask for either. */
async function test(page) {
  await page.goto(`${origin}/test?capability=${encodeURIComponent(given.capability)}`);
  await page.getByLabel(/^n\b/).fill('4');
  await page.getByRole('button', { name: 'Run dry' }).click();
  const dialog = page.getByRole('dialog', { name: 'Sign in' });
  await dialog.waitFor();
  await check(page, 'signing in');
  await dialog.getByLabel('Passphrase').fill(given.passphrase);
  await page.keyboard.press('Enter');
  await page.locator('.report .trow').nth(2).waitFor();
  seen.report = await page.locator('.report').innerText();
  await check(page, 'test');
  await page.getByRole('button', { name: 'Run for real…' }).click();
  await page.getByRole('dialog', { name: 'Run it for real?' }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/runs\/run_/);
  await page.locator('main').getByText('done').first().waitFor();
  await page.locator('.row-call').nth(2).waitFor();
  seen.ranForReal = await page.locator('.row-call').count();
  await page.goto(`${origin}/test?mode=intent`);
  await page.getByLabel('Intent').last().fill('how many days are between 2026-01-01 and 2026-03-01');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.side-by-side article');
  seen.ways = await page.locator('.side-by-side article').first().innerText();
  await check(page, 'test, ways');
}

async function servers(page) {
  await page.goto(`${origin}/servers?server=notes`);
  await page.getByText('server.mjs').first().waitFor();
  await check(page, 'servers');
  await page.getByRole('button', { name: /^(Start|Restart)/ }).click();
  await page.locator('.trow', { hasText: 'notes:add' }).waitFor();
  await page.locator('.trow', { hasText: 'notes:add' }).click();
  await page.getByRole('region', { name: /Policy for/ }).getByText('approval_mode').first().waitFor();
  seen.policy = await page.getByRole('region', { name: /Policy for/ }).innerText();
  await check(page, 'servers, a tool');
}

async function savings(page) {
  await page.goto(`${origin}/savings`);
  await page.waitForSelector('main svg');
  seen.savings = await page.locator('main').innerText();
  await check(page, 'savings');
}

/** Capabilities out of the ordinary: very large, and with a trace of which nothing is known any more. */
async function capabilities(page) {
  await page.goto(`${origin}/capabilities/${encodeURIComponent(given.large)}`);
  await page.locator('.definition .node').nth(499).waitFor({ state: 'attached' });
  seen.nodes = await page.locator('.definition .node').count();
  await page.goto(`${origin}/capabilities/${encodeURIComponent(given.orphan)}?view=both`);
  await page.locator('.invocation .call').first().waitFor();
  seen.orphanCalls = await page.locator('.invocation .call').count();
  await check(page, 'a trace without its structure');
}

/** Pages of a gateway that has done nothing say what to do. */
async function empty(page) {
  await page.goto(given.empty);
  for (const [path, told] of [['/runs', 'pml_execute'], ['/capabilities', 'Nothing has been learned yet'], ['/inbox', 'Nothing waits for you'], ['/discover', 'Type an intent'], ['/test', 'No capability yet'], ['/servers', 'fs'], ['/savings', 'Nothing to count yet'], ['/graph', 'tools']]) {
    await page.goto(new URL(path, given.empty).href);
    await page.locator('main').getByText(told).first().waitFor();
    seen.empty = (seen.empty ?? 0) + 1;
    if (path === '/runs') seen.tryIt = await page.locator('main pre').innerText();
  }
}

const page = await tab();
try {
  await page.goto(given.link);
  if (given.part === 'watched') await watched(page);
  else {
    for (const part of [runs, run, discover, capabilities, test, servers, savings]) await part(page);
    await empty(await tab());
  }
} catch (error) {
  seen.wrong.push(String(error), page.url(), await page.evaluate(() => document.body.innerText.slice(0, 800)).catch(() => ''));
} finally {
  console.log(JSON.stringify(seen));
  await browser.close();
}
