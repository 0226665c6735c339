// Measures the pages of a `pml serve` in a real Chromium and prints the times in milliseconds as one JSON object; `pml bench
// dashboard` fills a database, starts the gateway and runs this. Usage: measure.mjs JSON, where JSON has `link` (which opens
// the dashboard), `run` (a run with many calls) and `calls` (how many).
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const LOADS = 5;
const given = JSON.parse(process.argv[2]);
const { origin } = new URL(given.link);
const browser = await chromium.launch({
  executablePath: process.env.PATH.split(':').map((folder) => join(folder, 'chromium')).find(existsSync),
  // Whoever runs this may be root, where Chromium's own sandbox does not start.
  args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
});

const median = (times) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)];

/** Opens an address and gives the time from the begin of the navigation until `selector` is shown. */
async function timed(page, path, selector) {
  await page.goto('about:blank');
  await page.goto(origin + path, { waitUntil: 'commit' });
  const shown = await page.waitForFunction((wanted) => document.querySelector(wanted) && performance.now(), selector, { polling: 'raf' });
  return shown.jsonValue();
}

async function ready(page, path, selector) {
  const times = [];
  for (let load = 0; load < LOADS; load += 1) times.push(await timed(page, path, selector));
  return median(times);
}

/** The longest task of the page while all rows go by: by the wheel, then by the scroll bar. */
async function longestTask(page) {
  await page.locator('.row-call').nth(5).hover();
  await page.evaluate(() => {
    globalThis.tasks = [];
    new PerformanceObserver((list) => { for (const { duration } of list.getEntries()) globalThis.tasks.push(duration); }).observe({ type: 'longtask' });
  });
  for (let step = 0; step < 100; step += 1) await page.mouse.wheel(0, step % 10 === 9 ? 40_000 : 900);
  await page.evaluate(async () => {
    const box = document.querySelector('.table');
    for (let step = 0; step <= 100; step += 1) {
      box.scrollTop = (box.scrollHeight * step) / 100;
      await new Promise(requestAnimationFrame);
    }
  });
  await page.getByText(String(given.calls), { exact: true }).first().waitFor();
  // Entries are told some time after their task.
  await page.waitForTimeout(300);
  return page.evaluate(() => Math.max(0, ...globalThis.tasks));
}

try {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  page.setDefaultTimeout(60_000);
  const files = new Set();
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.startsWith('/assets/')) files.add(pathname);
  });
  await page.goto(given.link);
  await page.waitForSelector('main h1');
  const reply = (path) => page.evaluate((wanted) => fetch(wanted).then((response) => response.json()), path);
  const { capabilities } = await reply('/api/capabilities?recent=true&limit=1');
  const capability = `/capabilities/${encodeURIComponent(capabilities[0].name)}`;
  const pages = [
    ['/runs', '/runs', '.trow'],
    ['/runs/{id}', `/runs/${given.run}`, '.row-call'],
    ['/capabilities', '/capabilities', '[role="row"][data-index]'],
    ['/capabilities/{name}', `${capability}?view=both`, '.invocation .call'],
    ['/graph', '/graph', '.map[data-drawn]'],
    ['/inbox', '/inbox', 'main .empty, main article'],
    ['/discover', `/discover?q=${encodeURIComponent('compare the invoices of a customer')}`, '.result'],
    ['/test', `/test?capability=${encodeURIComponent(capabilities[0].name)}`, 'main form button'],
    ['/servers', '/servers', '.master-list a'],
    ['/savings', '/savings', 'main svg'],
  ];
  const seen = { ready: [] };
  for (const [name, path, selector] of pages) seen.ready.push([name, await ready(page, path, selector)]);
  seen.firstRows = await ready(page, `/runs/${given.run}`, '.row-call ~ .row-call ~ .row-call ~ .row-call ~ .row-call');
  await page.getByText('calls read').waitFor({ state: 'detached' });
  seen.longestTask = await longestTask(page);
  seen.graphClosed = await ready(page, '/graph', '.map[data-drawn]');
  seen.graphOpen = await ready(page, '/graph?expand=all', '.map[data-drawn]');
  seen.nodes = (await reply('/api/graph/layout?expand=all')).nodes.length;
  const sizes = await page.evaluate((all) => Promise.all(all.map((file) => fetch(file).then((response) => response.arrayBuffer()).then((bytes) => bytes.byteLength))), [...files]);
  seen.bundle = sizes.reduce((total, bytes) => total + bytes, 0);
  console.log(JSON.stringify(seen));
} finally {
  await browser.close();
}
