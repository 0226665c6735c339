// Plays a scenario on the dashboard in a real Chromium, as a person would, and prints what was seen as one JSON
// object. Usage: browse.mjs SCENARIO JSON, where JSON has `url`, `passphrase` and what else the scenario needs.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const given = JSON.parse(process.argv[3]);
const browser = await chromium.launch({
  executablePath: process.env.PATH.split(':').map((folder) => join(folder, 'chromium')).find(existsSync),
  // Tests may run as root, where Chromium's own sandbox does not start.
  args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });

/** A tab that notes whatever should not happen. */
async function tab(of = context) {
  const page = await of.newPage();
  // Longer than anything takes, on however busy a machine.
  page.setDefaultTimeout(60_000);
  page.wrong = [];
  page.on('dialog', async (dialog) => {
    page.wrong.push(`dialog: ${dialog.message()}`);
    await dialog.dismiss();
  });
  page.on('pageerror', (error) => page.wrong.push(`error: ${error.message}`));
  page.on('console', (message) => {
    // A refusal is a line in the console as well as an answer.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) page.wrong.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(given.url)) page.wrong.push(`request: ${request.url()}`);
  });
  return page;
}

/** Signs in and waits for the cards of the inbox. */
async function signIn(page) {
  await page.goto(`${given.url}/inbox`);
  await page.fill('#passphrase', given.passphrase);
  await page.keyboard.press('Enter');
  await page.waitForSelector('article');
  await still(page);
}

/** Waits until cards have come to rest: before, clicks are not taken. */
async function still(page) {
  await page.waitForSelector('#list[data-settled="true"]');
}

async function press(page, text) {
  await page.getByRole('button', { name: text, exact: true }).first().click();
}

const outcome = (page) => page.waitForSelector('.outcome').then((node) => node.evaluate((line) => line.textContent));

const scenarios = {
  async signing_in() {
    const page = await tab();
    await page.goto(`${given.url}/#${given.run}`);
    const redirected = page.url();
    await page.fill('#passphrase', 'not this one');
    await page.keyboard.press('Enter');
    const problem = await page.waitForSelector('#problem:not([hidden])').then((node) => node.evaluate((line) => line.textContent));
    const before = await context.cookies();
    await page.fill('#passphrase', given.passphrase);
    await page.keyboard.press('Enter');
    await page.waitForSelector('article');
    const cookies = (await context.cookies()).map((cookie) => ({ ...cookie, session: cookie.expires === -1 }));
    const focused = await page.evaluate(() => document.activeElement.dataset.run);
    const readable = await page.evaluate(() => document.cookie);
    const inbox = page.url();
    await still(page);
    await press(page, 'Sign out');
    await page.waitForSelector('#passphrase');
    await page.goto(given.url);
    return { redirected, problem, before: before.length, cookies, focused, readable, inbox, after: page.url(), wrong: page.wrong };
  },

  async no_passphrase() {
    const page = await tab();
    await page.goto(given.url);
    return { url: page.url(), text: await page.evaluate(() => document.body.innerText), wrong: page.wrong };
  },

  async reading() {
    const page = await tab();
    await signIn(page);
    await page.evaluate(() => document.querySelectorAll('details').forEach((details) => { details.open = true; }));
    return {
      cards: await page.evaluate(() => [...document.querySelectorAll('article')].map((card) => card.innerText)),
      made: await page.evaluate(() => [...new Set([...document.querySelectorAll('article, article *')].map((node) => node.localName))].sort()),
      handlers: await page.evaluate(() => [...document.querySelectorAll('article *')].filter((node) => node.getAttributeNames().some((name) => name.startsWith('on') || name === 'href' || name === 'src' || name === 'style')).length),
      hidden: await page.evaluate(() => /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/.test(document.body.textContent)),
      ran: await page.evaluate(() => globalThis.pwned ?? false),
      wide: await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth),
      title: await page.title(),
      wrong: page.wrong,
    };
  },

  async narrow() {
    const page = await tab();
    await page.setViewportSize({ width: 400, height: 800 });
    await signIn(page);
    await page.evaluate(() => document.querySelectorAll('details').forEach((details) => { details.open = true; }));
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
    return { wide, wrong: page.wrong };
  },

  async approving() {
    const page = await tab();
    await signIn(page);
    const card = await page.$eval('article', (node) => node.innerText);
    await press(page, 'Approve');
    return { card, told: await outcome(page), wrong: page.wrong };
  },

  async accepting() {
    const page = await tab();
    await signIn(page);
    const card = await page.$eval('article', (node) => node.innerText);
    const marked = await page.$$eval('.added, .removed', (lines) => lines.map((line) => line.textContent.trim()));
    const title = await page.title();
    await press(page, 'Accept as shown');
    return { card, marked, title, told: await outcome(page), wrong: page.wrong };
  },

  async denying() {
    const page = await tab();
    await signIn(page);
    const card = await page.$eval('article', (node) => node.innerText);
    await press(page, 'Deny…');
    await press(page, 'Deny');
    return { card, told: await outcome(page), wrong: page.wrong };
  },

  async expired() {
    const page = await tab();
    await signIn(page);
    await press(page, 'Deny…');
    await page.getByLabel('Reason').fill('not on a Friday');
    await context.clearCookies();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Sign in' });
    await dialog.waitFor();
    await dialog.getByLabel('Passphrase').fill(given.passphrase);
    await page.keyboard.press('Enter');
    return { asked: true, told: await outcome(page), wrong: page.wrong };
  },

  async restarting() {
    const page = await tab();
    await signIn(page);
    await press(page, 'Deny…');
    await page.getByLabel('Reason').fill('not on a Friday');
    writeFileSync(given.typed, '');
    await page.getByText('PML does not answer').waitFor();
    writeFileSync(given.missed, '');
    await page.getByText('PML does not answer').waitFor({ state: 'hidden' });
    // Sessions outlive the process, so that nobody has to sign in again.
    const reason = await page.getByLabel('Reason').inputValue();
    await press(page, 'Deny');
    return { reason, told: await outcome(page), wrong: page.wrong };
  },

  async two_people() {
    // Each signs in in a browser of their own.
    const [first, second] = [await tab(), await tab(await browser.newContext({ viewport: { width: 1280, height: 800 } }))];
    await signIn(first);
    await signIn(second);
    // The second one hears no more of what is going on.
    await second.route('**', (route) => (route.request().method() === 'GET' ? route.abort() : route.continue()));
    await first.bringToFront();
    await press(first, 'Approve');
    const told = await outcome(first);
    await second.bringToFront();
    await press(second, 'Approve');
    return { told, late: await outcome(second), wrong: first.wrong };
  },

  async noticing() {
    const [first, second] = [await tab(), await tab()];
    await signIn(first);
    await second.goto(`${given.url}/inbox`);
    await second.waitForSelector('article');
    await first.bringToFront();
    await press(first, 'Approve');
    await outcome(first);
    await second.bringToFront();
    return { noticed: await outcome(second), wrong: [...first.wrong, ...second.wrong] };
  },

  async by_keyboard() {
    const page = await tab();
    await signIn(page);
    const [approved, denied] = await page.$$('article');
    await approved.focus();
    await page.keyboard.press('a');
    await page.waitForSelector('dialog[open]');
    const asked = await page.evaluate(() => document.querySelector('dialog').innerText);
    await page.keyboard.press('Escape');
    await page.waitForSelector('dialog', { state: 'detached' });
    const cancelled = await page.$('.outcome') === null;
    await approved.focus();
    await page.keyboard.press('a');
    await page.waitForSelector('dialog[open]');
    await page.keyboard.press('Enter');
    const first = await outcome(page);
    await still(page);
    await denied.focus();
    await page.keyboard.press('d');
    await page.keyboard.type('a and d: not on a Friday');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelectorAll('.outcome').length === 2);
    const second = await page.evaluate(() => document.querySelectorAll('.outcome')[1].textContent);
    return { asked, cancelled, first, second, wrong: page.wrong };
  },

  async more_ways() {
    const page = await tab();
    await signIn(page);
    const cards = await page.$$('article');
    for (const card of cards) await card.$eval('details.ways', (details) => { details.open = true; });
    await cards[0].$eval('input[aria-label="Most calls"]', (field) => { field.value = '5'; });
    await (await cards[0].$('button:text-is("Approve any arguments")')).click();
    await page.waitForFunction(() => document.querySelectorAll('.outcome').length === 1);
    await still(page);
    await cards[1].$eval('select', (field) => { field.value = 'tool'; });
    await cards[1].$eval('input[aria-label="Days"]', (field) => { field.value = '7'; });
    await (await cards[1].$('.ways input[type="checkbox"]')).click();
    await (await cards[1].$('button:text("Approve and")')).click();
    await page.waitForFunction(() => document.querySelectorAll('.outcome').length === 2);
    const told = await page.$$eval('.outcome', (lines) => lines.map((line) => line.textContent));
    return { told, wrong: page.wrong };
  },

  async large_values() {
    const page = await tab();
    await signIn(page);
    const able = () => page.$$eval('button.approve', (buttons) => buttons.map((button) => !button.disabled));
    const before = await able();
    const warned = await page.$eval('.large', (note) => note.innerText);
    await (await page.$('article')).focus();
    await page.keyboard.press('a');
    const refused = await page.$eval('.problem', (line) => line.textContent);
    await (await page.$('.large button')).click();
    await page.waitForSelector('.large', { state: 'detached' });
    const after = await able();
    const whole = await page.$eval('pre.value', (value) => value.textContent);
    const scrolls = await page.$eval('pre.value', (value) => value.scrollHeight > value.clientHeight);
    return { before, warned, refused, after, length: whole.length, end: whole.slice(-40), scrolls, wrong: page.wrong };
  },

  async marks() {
    const page = await tab();
    await page.goto(`${given.url}/inbox`);
    await page.fill('#passphrase', given.passphrase);
    await page.keyboard.press('Enter');
    await page.waitForSelector('#passphrase', { state: 'detached' });
    const rows = async (run) => {
      await page.goto(`${given.url}/runs/${run}`);
      await page.waitForSelector('.row-call');
      return page.$$eval('.row-call', (all) => all.map((row) => row.innerText));
    };
    const [again, ahead] = [await rows(given.again), await rows(given.ahead)];
    const marked = async (capability, mark) => {
      await page.goto(`${given.url}/capabilities/${encodeURIComponent(capability)}?view=invocation`);
      await page.waitForSelector('.invocation .call');
      return page.$$eval('.invocation .call', (all, wanted) => all.map((call) => call.classList.contains(wanted)), mark);
    };
    const bars = await marked(given.capability, 'speculated');
    const cached = await marked(given.confirmed, 'cached');
    await page.goto(`${given.url}/savings`);
    const savings = await page.waitForSelector('.ahead').then((section) => section.innerText());
    return { again, ahead, bars, cached, savings, wrong: page.wrong };
  },

  async other_questions() {
    const page = await tab();
    await signIn(page);
    const cards = await page.$$eval('article', (all) => all.map((card) => card.innerText));
    await press(page, 'Continue');
    await page.waitForFunction(() => document.querySelectorAll('.outcome').length === 1);
    await still(page);
    await press(page, 'Go on');
    const incomplete = await page.waitForSelector('.problem:not([hidden])').then((node) => node.evaluate((line) => line.textContent));
    await (await page.$('input[value="again"]')).click();
    await press(page, 'Go on');
    await page.waitForFunction(() => document.querySelectorAll('.outcome').length === 2);
    const told = await page.$$eval('.outcome', (lines) => lines.map((line) => line.textContent));
    return { cards, incomplete, told, wrong: page.wrong };
  },
};

try {
  console.log(JSON.stringify((await scenarios[process.argv[2]]()) ?? {}));
} finally {
  await browser.close();
}
