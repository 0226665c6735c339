// The pages in a real Chromium, on a gateway that is made up (fake.mjs). Run with `node --test`.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { PASSPHRASE, startFake } from './fake.mjs';
import { PAYLOADS } from './payloads.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Every page, and what makes it show all it has. */
const PAGES = [
  ['/runs'],
  ['/runs/run_big?call=4', async (page) => page.getByText('Result').or(page.getByText('TOOL_ERROR')).first().waitFor()],
  ['/runs/run_big?tab=program'], ['/runs/run_big?tab=values'], ['/runs/run_big?tab=decisions'], ['/runs/run_big?tab=questions'], ['/runs/run_big?tab=console'],
  ['/inbox', async (page) => page.waitForSelector('article')], ['/rules'],
  ['/discover'], ['/discover?q=convert', async (page) => page.waitForSelector('.result')],
  ['/test?capability=cap_1', async (page) => {
    await page.getByRole('button', { name: 'Run dry' }).click();
    await page.locator('.report .trow').nth(2).click();
  }],
  ['/test?mode=intent', async (page) => {
    await page.getByLabel('Intent').last().fill('convert');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.side-by-side article');
  }],
  ['/servers', async (page) => {
    await page.locator('.master-list a').last().click();
    await page.locator('.trow').first().click();
    await page.waitForSelector('.plain td');
  }], ['/servers?server=crm'], ['/savings'], ['/capabilities', async (page) => page.waitForSelector('[role="row"][data-index]')],
  ['/capabilities/cap_1?view=both&runs=trace_45,trace_1', async (page) => {
    await page.getByRole('button', { name: 'Compare version 3' }).click();
    await page.waitForSelector('.version-diff');
    await page.locator('.invocation .call').nth(1).click();
    await page.getByText('Given results of').waitFor();
  }],
  ['/capabilities/cap_1', async (page) => page.locator('.definition .node').nth(1).click()],
  ['/graph?id=fs:read&q=read', async (page) => page.waitForSelector('.node-panel')], ['/graph?from=fs:read&to=csv:parse', async (page) => page.waitForSelector('.graph-ways > li')], ['/runs/nothing'], ['/nowhere'],
];

let browser;
before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.PATH.split(':').map((folder) => join(folder, 'chromium')).find(existsSync),
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  });
});
after(() => browser?.close());

/** A tab on a gateway; `wrong` has whatever should not happen. */
async function open(t, { fake = {}, ...options } = {}) {
  const gateway = await startFake(fake);
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const wrong = [];
  page.on('pageerror', (error) => wrong.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => { wrong.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) wrong.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => { if (!request.url().startsWith('http://127.0.0.1')) wrong.push(`request: ${request.url()}`); });
  t.after(async () => {
    await context.close();
    await gateway.stop();
  });
  const visit = async (path, act) => {
    await page.goto(gateway.url + path);
    await page.locator('main h1').first().waitFor();
    await act?.(page);
  };
  return { page, gateway, wrong, visit };
}

test('the list of runs is live, and nothing moves under the pointer', async (t) => {
  const { page, gateway, wrong, visit } = await open(t);
  await visit('/runs');
  const first = () => page.locator('.trow').first().innerText();
  assert.match(await first(), /Convert the CSV/);
  const fresh = (id, number) => ({ ...gateway.state.runs[1], id, intent: `fresh ${number}`, startedAt: Date.now() + number, status: 'running' });
  gateway.state.runs.unshift(fresh('run_new0', 0));
  gateway.emit('run_start', { run: 'run_new0' });
  await page.getByText('fresh 0').waitFor();
  assert.match(await first(), /fresh 0/, 'shown at once where nobody points');
  await page.locator('.trow').nth(3).hover();
  const under = () => page.locator('.trow:hover').innerText();
  const before = await under();
  for (const number of [1, 2, 3]) gateway.state.runs.unshift(fresh(`run_new${number}`, number));
  gateway.emit('run_start', { run: 'run_new1' });
  const button = page.getByRole('button', { name: '3 new' });
  await button.waitFor();
  assert.equal(await under(), before);
  gateway.state.runs.find((run) => run.id === 'run_new0').status = 'failed';
  gateway.emit('run_end', { run: 'run_new0' });
  await page.locator('.trow', { hasText: 'fresh 0' }).getByText('failed').waitFor();
  await button.click();
  assert.match(await first(), /fresh 3/);
  assert.deepEqual(wrong, []);
});

test('the list of runs has what came while nobody looked, and follows runs far down', async (t) => {
  const { page, gateway, wrong, visit } = await open(t);
  await visit('/runs');
  const table = page.locator('.table');
  const count = (rows) => page.waitForFunction((wanted) => document.querySelector('.table')?.ariaRowCount === String(wanted + 1), rows);
  await page.locator('.trow').first().waitFor();
  const { runs } = gateway.state;
  const fresh = Array.from({ length: 250 }, (_, number) => ({ ...runs[0], id: `run_away${number}`, intent: `away ${number}`, startedAt: Date.now() + number })).reverse();
  runs.unshift(...fresh);
  gateway.emit('run_start', { run: 'run_away249' });
  await page.getByText('away 249').waitFor();
  // What was there before follows what is new without a gap.
  await table.evaluate((box) => { box.scrollTop = box.scrollHeight; });
  await count(runs.length);
  const last = runs.findLast((run) => run.status === 'running');
  last.intent = 'far down';
  await table.evaluate((box) => { box.scrollTop = box.scrollHeight; });
  Object.assign(last, { status: 'failed', endedAt: Date.now() });
  gateway.emit('run_end', { run: last.id });
  await table.evaluate((box, at) => { box.scrollTop = at * 32 - 200; }, runs.indexOf(last));
  await page.locator('.trow', { hasText: 'far down' }).getByText('failed').waitFor();
  assert.deepEqual(wrong, []);
});

test('a link to the inbox that is no address is told, and breaks nothing', async (t) => {
  const { page, wrong, visit } = await open(t);
  await visit('/inbox#%zz');
  await page.getByText('%zz').waitFor();
  await page.locator('article').first().waitFor();
  assert.deepEqual(wrong, []);
});

test('runs are filtered, in the address, and the filter survives', async (t) => {
  const { page, wrong, visit } = await open(t);
  await visit('/runs');
  await page.keyboard.press('/');
  await page.keyboard.type('weekly');
  await page.waitForURL(/q=weekly/);
  await page.waitForFunction(() => [...document.querySelectorAll('.trow')].every((row) => row.innerText.includes('weekly')));
  await page.getByLabel('Status').selectOption('failed');
  await page.waitForURL(/status=failed/);
  await page.reload();
  assert.equal(await page.getByLabel('Filter by text').inputValue(), 'weekly');
  await page.getByLabel('Filter by text').fill('no run has this');
  await page.getByText('No run fits the filter').waitFor();
  await page.getByRole('button', { name: 'Show all runs' }).click();
  await page.locator('.trow').first().waitFor();
  assert.deepEqual(wrong, []);
});

test('of a run of 20,000 calls only the rows in view exist, wherever one scrolls', async (t) => {
  // `pml bench dashboard` measures how long that takes on a real gateway.
  const { page, wrong, visit } = await open(t, { fake: { calls: 20_000 } });
  await visit('/runs');
  await page.locator('.trow', { hasText: '20' }).first().click();
  await page.locator('.row-call').nth(5).waitFor();
  await page.getByText('calls read').waitFor({ state: 'detached' });
  assert.ok(await page.locator('.trow').count() < 80);
  await page.locator('.row-call').nth(5).hover();
  for (let step = 0; step < 20; step += 1) await page.mouse.wheel(0, step % 10 === 9 ? 40_000 : 900);
  assert.ok(await page.locator('.trow').count() < 80);
  await page.locator('.table').evaluate((box) => { box.scrollTop = box.scrollHeight; });
  await page.getByText('20000', { exact: true }).waitFor();
  assert.ok(await page.locator('.trow').count() < 80);
  assert.deepEqual(wrong, []);
});

test('a live run of thousands of calls has all of them, whatever its stream missed', async (t) => {
  const { page, gateway, wrong, visit } = await open(t, { fake: { calls: 9_000 } });
  const run = gateway.state.runs[0];
  Object.assign(run, { status: 'running', calls: 2_500, endedAt: undefined });
  gateway.state.issued = 2_500;
  await visit('/runs/run_big');
  await page.getByRole('tab', { name: /2 ?500/ }).waitFor();
  // 3,500 calls of which no event tells, and one that only an event tells of.
  Object.assign(run, { calls: 6_000 });
  gateway.state.issued = 6_000;
  gateway.emit('task_start', { run: 'run_big', call: 6_001, tool: 'late:call' });
  gateway.emit('reset', { reason: 'too_slow' });
  const listed = (calls) => page.waitForFunction((least) => Number(document.querySelector('[role="grid"]').ariaRowCount) > least, calls);
  const shown = async (number) => {
    await page.locator('.table').evaluate((box) => { box.scrollTop = box.scrollHeight; });
    await page.locator('.call-number', { hasText: new RegExp(`^${number}$`) }).waitFor();
  };
  await listed(6_001);
  await shown(6_001);
  // The end of that call, and the rest of the run, which nobody tells of at all: the stream broke.
  Object.assign(run, { calls: 9_000, status: 'done', endedAt: Date.now() });
  gateway.state.issued = 9_000;
  for (const stream of gateway.state.streams) stream.destroy();
  await listed(9_000);
  await shown(9_000);
  await page.getByText('calls read').waitFor({ state: 'detached' });
  await page.getByText('late:call').waitFor({ state: 'detached' });
  assert.deepEqual(wrong, []);
});

test('a run is a tree with its calls, decisions, questions and console', async (t) => {
  const { page, gateway, wrong, visit } = await open(t);
  await visit('/runs/run_live');
  await page.locator('.row-call').first().focus();
  await page.keyboard.press('ArrowDown');
  await page.locator('.trow:focus', { hasText: 'csv_to_json' }).waitFor();
  await page.keyboard.press('ArrowLeft');
  await page.getByRole('button', { name: /Unfold/ }).waitFor();
  await page.keyboard.press('ArrowRight');
  await page.getByRole('button', { name: /^Fold/ }).first().waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForURL(/call=3/);
  const panel = page.getByRole('region', { name: 'Call 3' });
  await panel.getByText('"notes.md"').waitFor();
  await panel.getByText('"a line of text"').first().waitFor();
  assert.ok(await panel.locator('.line').count() < 200, 'a result of 4 MB is drawn in part');
  await panel.getByRole('button', { name: /Close/ }).focus();
  await page.keyboard.press('Escape');
  await panel.waitFor({ state: 'detached' });
  gateway.emit('task_start', { run: 'run_live', call: 41, tool: 'late:call' });
  await page.locator('.table').evaluate((box) => { box.scrollTop = 1e6; });
  await page.getByText('late:call').waitFor();
  const tab = (name) => page.getByRole('tab', { name });
  await tab(/^Calls/).focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForURL(/tab=program/);
  await page.getByText('mcp.fs.list').waitFor();
  await tab(/^Decisions/).click();
  await page.getByRole('button', { name: 'line 4' }).click();
  await page.locator('.line.marked', { hasText: 'endsWith' }).waitFor();
  await tab(/^Questions/).click();
  await page.getByText('after 7.00 s').waitFor();
  await tab(/^Console/).click();
  await page.getByText('orders.csv has an empty line').waitFor();
  assert.deepEqual(wrong, []);
});

test('a viewer is asked for the passphrase, and then the same request goes on', async (t) => {
  const { page, gateway, wrong, visit } = await open(t, { fake: { role: 'viewer' } });
  await visit('/inbox', async () => page.waitForSelector('#list[data-settled="true"]'));
  await page.getByText('read only').waitFor();
  await page.getByRole('button', { name: 'Deny…' }).click();
  await page.getByLabel('Reason').fill('not on a Friday');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Sign in' });
  await dialog.waitFor();
  await page.keyboard.type('wrong');
  await page.keyboard.press('Enter');
  await dialog.getByText('that is not the passphrase').waitFor();
  await page.getByLabel('Passphrase').fill(PASSPHRASE);
  await page.keyboard.press('Enter');
  await page.getByText('Denied.').waitFor();
  const sent = gateway.state.requests.filter((request) => request.method === 'POST' && request.path.startsWith('/api/approvals/'));
  assert.deepEqual(sent.map((request) => JSON.parse(request.body)), [{ approved: false, reason: 'not on a Friday' }, { approved: false, reason: 'not on a Friday' }]);
  assert.deepEqual(wrong, []);
});

test('nothing is sent for another person than the page was loaded for', async (t) => {
  const denials = (gateway) => gateway.state.requests.filter((request) => request.method === 'POST' && request.path.startsWith('/api/approvals/')).length;
  // The session of `ada` ends; the operator, `ada` herself or nobody else signs in over her half-written answer.
  for (const [principal, name, goesOn] of [['ada', '', false], ['local', 'ada', false], ['ada', 'ada', true], ['local', '', true]]) {
    const { page, gateway, wrong, visit } = await open(t, { fake: { principal } });
    await visit('/inbox', async () => page.waitForSelector('#list[data-settled="true"]'));
    gateway.state.expire = true;
    await page.getByRole('button', { name: 'Deny…' }).click();
    await page.getByLabel('Reason').fill('half a reason');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Sign in' }).waitFor();
    await page.getByLabel('Name').fill(name);
    await page.getByLabel('Passphrase').fill(PASSPHRASE);
    await page.keyboard.press('Enter');
    if (goesOn) await page.getByText('Denied.').waitFor();
    else await page.getByText(`The page showed what belongs to ${principal}, so nothing was sent`).waitFor();
    assert.equal(denials(gateway), goesOn ? 2 : 1, `${principal}, then ${name || 'the operator'}`);
    assert.deepEqual(wrong, []);
  }
});

test('a standing rule is seen and revoked', async (t) => {
  const { page, gateway, wrong, visit } = await open(t);
  await visit('/inbox');
  for (const key of 'gu') await page.keyboard.press(key);
  await page.locator('h1', { hasText: 'Rules' }).waitFor();
  const told = (await page.locator('.rules tbody tr').allInnerTexts()).map((text) => text.replace(/\s+/g, ' '));
  assert.match(told[0], /fs:write the same arguments in the same code in force for 25 days .* 3 times/);
  assert.match(told[1], /mail:send any arguments in the same code expired/);
  assert.match(told[2], /http:get any arguments in any code revoked .* never/);
  await page.getByRole('button', { name: 'Revoke the rule for fs:write' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Revoke this rule?' }).waitFor();
  await page.keyboard.press('Enter');
  await page.locator('.rules tbody tr', { hasText: 'fs:write' }).getByText('revoked').waitFor();
  assert.deepEqual([...gateway.state.revoked], ['3']);
  assert.deepEqual(wrong, []);
});

test('a capability goes on in another version, and its page shows what runs teach', async (t) => {
  const { page, gateway, wrong, visit } = await open(t);
  await visit('/capabilities/csv_to_json?view=invocation');
  const keys = async (locator, ...pressed) => {
    await locator.focus();
    for (const key of pressed) await page.keyboard.press(key);
  };
  const rows = async () => (await page.locator('.versions tbody tr').allInnerTexts()).map((text) => text.replace(/\s+/g, ' '));
  assert.match((await rows()).join('\n'), /^3 csv_to_json@3 offered: csv:parse changed its schema .*\n2 csv_to_json in force active 8 of 9/);
  await keys(page.getByRole('button', { name: 'Compare version 3' }), 'Enter');
  const diff = page.getByRole('region', { name: 'Version 2 compared with version 3' });
  assert.equal(await diff.locator('.removed').innerText(), '- const rows = await mcp.csv.parse({ text });\n');
  await diff.getByText('6 lines are the same').waitFor();
  await diff.getByText('writes, needs approval').waitFor();
  await keys(page.getByRole('button', { name: 'Put in force… Version 3' }), 'Enter');
  await page.getByRole('dialog', { name: 'Put version 3 in force?' }).getByText('It also calls: mail:send').waitFor();
  await page.keyboard.press('Enter');
  await page.locator('.versions tr', { hasText: 'in force' }).getByText('3', { exact: true }).waitFor();
  assert.equal(gateway.state.inForce, 3);

  // Older runs than those of the first page.
  const choices = page.locator('.run-choice');
  assert.equal(await choices.count(), 20);
  await page.getByRole('button', { name: 'Older…' }).click();
  await page.getByRole('button', { name: 'Older…' }).click();
  await page.getByRole('button', { name: 'Older…' }).waitFor({ state: 'detached' });
  assert.equal(await choices.count(), 45);

  // A run ends elsewhere: nothing changes while somebody looks, then it does.
  const again = (id) => gateway.state.traces.unshift({ ...gateway.state.traces[0], id });
  again('trace_90');
  await page.mouse.move(0, 0);
  await page.evaluate(() => document.activeElement.blur());
  gateway.emit('run_end', { run: 'run_x', capability: 'cap_1' });
  await page.waitForFunction(() => document.querySelectorAll('.run-choice').length === 46);
  again('trace_91');
  await page.locator('.run-picker').hover();
  gateway.emit('run_end', { run: 'run_x' });
  await page.getByRole('button', { name: 'It ran again, show' }).waitFor();
  assert.equal(await choices.count(), 46);
  await page.mouse.move(0, 0);
  await page.waitForFunction(() => document.querySelectorAll('.run-choice').length === 47);
  assert.deepEqual(wrong, []);
});

test('all capabilities are offered for a dry run, however many there are', async (t) => {
  const { page, gateway, wrong, visit } = await open(t);
  gateway.state.moreCapabilities = 450;
  await visit('/capabilities/csv_to_json');
  await page.getByRole('link', { name: 'Test', exact: true }).last().click();
  await page.waitForURL('**/test?capability=csv_to_json');
  await page.waitForFunction(() => document.querySelector('select')?.options.length === 454);
  await page.locator('select').first().selectOption('more_449');
  await page.waitForURL('**/test?capability=more_449**');
  assert.deepEqual(wrong, []);
});

test('what was passed on, retried, read ahead and cached is seen in an invocation', async (t) => {
  const { page, wrong, visit } = await open(t);
  await visit('/capabilities/cap_1?view=invocation', async () => page.waitForSelector('.invocation .call'));
  assert.equal(await page.locator('.relation.dependency').count(), 2);
  assert.ok(await page.locator('.relation.sequence').count() >= 2);
  await page.locator('.invocation .time', { hasText: '190 ms' }).waitFor();
  const legend = await page.getByLabel('Bars and lines').innerText();
  for (const word of ['error', 'retry', 'speculated', 'cached', 'result passed on', 'came after']) assert.ok(legend.includes(word), legend);
  const failed = page.locator('.invocation .call.error');
  const fill = () => failed.locator('.call-bar').evaluate((bar) => getComputedStyle(bar).fill);
  const before = await fill();
  await failed.locator('.call-bar').hover();
  await page.waitForSelector('.invocation .call.error.marked');
  assert.equal(await fill(), before, 'a failure is red while it is marked');
  assert.deepEqual(wrong, []);
});

test('who does not sign in sends nothing and loses nothing', async (t) => {
  const { page, gateway, visit } = await open(t);
  await visit('/inbox', async () => page.waitForSelector('#list[data-settled="true"]'));
  gateway.state.expire = true;
  await page.getByRole('button', { name: 'Deny…' }).click();
  await page.getByLabel('Reason').fill('half a reason');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Sign in' }).waitFor();
  await page.keyboard.press('Escape');
  await page.locator('article .problem:visible').first().waitFor();
  assert.equal(await page.getByLabel('Reason').inputValue(), 'half a reason');
  assert.equal(gateway.state.answered.size, 0);
});

test('a gateway that restarts is missed, found again, and nothing typed is lost', async (t) => {
  const { page, gateway, wrong, visit } = await open(t);
  await visit('/test?capability=cap_1');
  await page.getByLabel(/^folder/).fill('typed before');
  await gateway.stop();
  await page.getByText('PML does not answer').waitFor();
  await page.getByLabel(/^count/).fill('7');
  const again = await startFake({ port: gateway.port });
  t.after(() => again.stop());
  await page.getByText('PML does not answer').waitFor({ state: 'hidden' });
  assert.deepEqual([await page.getByLabel(/^folder/).inputValue(), await page.getByLabel(/^count/).inputValue()], ['typed before', '7']);
  await page.getByRole('button', { name: 'Run dry' }).click();
  await page.getByText('A real run would').waitFor();
  const sent = again.state.requests.find((request) => request.path === '/api/dry-run');
  assert.deepEqual(JSON.parse(sent.body).args, { folder: 'typed before', count: 7, strict: true });
  await page.getByRole('link', { name: 'Runs' }).first().click();
  await page.locator('.trow').first().waitFor();
  again.state.runs.unshift({ ...again.state.runs[1], id: 'run_after', intent: 'after the restart', startedAt: Date.now() });
  await page.waitForFunction(() => true);
  const heard = setInterval(() => again.emit('run_start', { run: 'run_after' }), 300);
  await page.getByText('after the restart').waitFor();
  clearInterval(heard);
  assert.deepEqual(wrong, []);
});

test('unknown and somebody else’s look the same', async (t) => {
  const { page, visit } = await open(t);
  const texts = [];
  for (const id of ['run_unknown', 'run_of_others']) {
    await visit(`/runs/${id}`);
    await page.getByText('There is nothing here for you').waitFor();
    texts.push(await page.locator('main').innerText());
  }
  assert.equal(texts[0], texts[1]);
  await visit('/no/such/page');
  await page.getByText('Nothing is at this address').waitFor();
});

test('empty pages say what to do', async (t) => {
  const { page, wrong, visit } = await open(t, { fake: { empty: true } });
  for (const [path, told] of [['/runs', 'pml_execute'], ['/inbox', 'Nothing waits for you'], ['/discover', 'Type an intent'], ['/discover?q=x', 'pml add'], ['/test', 'No capability yet'], ['/servers', 'pml setup'], ['/rules', 'No standing rules'], ['/savings', 'Nothing to count yet']]) {
    await visit(path);
    await page.locator('main').getByText(told).first().waitFor();
  }
  assert.deepEqual(wrong, []);
});

for (const colorScheme of ['light', 'dark']) {
  test(`axe has no serious finding on any page (${colorScheme})`, async (t) => {
    const { page, wrong, visit } = await open(t, { colorScheme, reducedMotion: 'reduce' });
    const findings = [];
    for (const [path, act] of PAGES) {
      await visit(path, act);
      await page.waitForTimeout(250);
      // The policy of the page forbids scripts from elsewhere; the debugger may run one.
      await page.evaluate(AXE);
      const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }));
      for (const { id, impact, nodes } of violations) {
        if (impact === 'serious' || impact === 'critical') findings.push(`${path}: ${id}: ${nodes[0].html.slice(0, 160)} ${nodes[0].any[0]?.message ?? ''}`);
      }
    }
    assert.deepEqual(findings, []);
    assert.deepEqual(wrong, []);
  });
}

test('every page fits a phone', async (t) => {
  const { page, visit } = await open(t, { viewport: { width: 375, height: 740 } });
  for (const [path, act] of PAGES) {
    await visit(path, act);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), path);
  }
});

test('whatever others write stays text, in every field of every page', async (t) => {
  const shapes = async (word) => {
    const { page, wrong, visit } = await open(t, { fake: { word, calls: 60 } });
    const seen = [];
    for (const [path, act] of PAGES) {
      await visit(path, act);
      await page.evaluate(() => document.querySelectorAll('details').forEach((details) => { details.open = true; }));
      seen.push(await page.evaluate(() => ({
        names: [...new Set([...document.querySelectorAll('main *')].map((node) => node.localName))].sort(),
        handlers: [...document.querySelectorAll('main *')].filter((node) => node.getAttributeNames().some((name) => name.startsWith('on') || ['srcdoc', 'action', 'formaction'].includes(name)) || /^\s*(javascript|data):/i.test(node.getAttribute('href') ?? node.getAttribute('src') ?? '')).length,
        hidden: /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/.test(document.body.innerText) || /[\u202a-\u202e\u2066-\u2069]/.test([...document.querySelectorAll('main *')].map((node) => ['title', 'aria-label', 'placeholder', 'alt'].map((name) => node.getAttribute(name)).join()).join() + document.title),
        text: document.querySelector('main').textContent,
        ran: globalThis.pwned ?? false,
      })));
    }
    assert.deepEqual(wrong, []);
    return seen;
  };
  const plain = await shapes((word) => word);
  // Each payload is in every field: several at a time, since fields do not care what stands in the others.
  for (let at = 0; at < PAYLOADS.length; at += 8) {
    const some = PAYLOADS.slice(at, at + 8).join(' ');
    const seen = await shapes((word, field) => (field === 'decision' || field === 'capability name' ? `${word}${some}` : `${word} ${some}\u202e`));
    seen.forEach((page, index) => {
      const [path] = PAGES[index];
      assert.equal(page.ran, false, path);
      assert.equal(page.handlers, 0, path);
      assert.equal(page.hidden, false, `${path}: hidden characters`);
      assert.deepEqual(page.names.filter((name) => !plain[index].names.includes(name) && name !== 'span' && name !== 'code'), [], path);
      if (!/nothing|nowhere|crm|cap_1|savings/.test(path)) assert.ok(page.text.includes(PAYLOADS[at].trim()), path);
    });
  }
});

test('every page is reached and worked without a mouse', async (t) => {
  const { page, gateway, wrong, visit } = await open(t);
  await visit('/runs');
  for (const [keys, heading] of [['gi', 'Inbox'], ['gd', 'Discover'], ['gt', 'Test a workflow'], ['gs', 'Servers'], ['gv', 'Savings'], ['gr', 'Runs']]) {
    for (const key of keys) await page.keyboard.press(key);
    await page.locator('h1', { hasText: heading }).waitFor();
    await page.evaluate(() => document.activeElement?.blur?.());
  }
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  await page.keyboard.press('Escape');
  // To the first row by Tab alone, then into the run, and abort it.
  await visit('/runs/run_live');
  const reach = async (locator) => {
    for (let press = 0; press < 60; press += 1) {
      if (await locator.evaluate((node) => node === document.activeElement)) return;
      await page.keyboard.press('Tab');
    }
    assert.fail(`not reached by Tab: ${await locator.innerText()}`);
  };
  await reach(page.getByRole('button', { name: 'Abort…' }));
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Abort this run?' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByText('aborted').first().waitFor();
  await visit('/test?capability=cap_1');
  await reach(page.getByRole('button', { name: 'Run for real…' }));
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Run it for real?' }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/runs\/run_live/);
  await visit('/servers?server=mail');
  await reach(page.locator('.trow').first());
  await page.keyboard.press('Enter');
  await page.getByRole('region', { name: /Policy for/ }).waitFor();
  await reach(page.getByRole('button', { name: 'Restart' }));
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => !document.querySelector('button:disabled'));
  await visit('/servers?server=crm');
  await reach(page.getByRole('button', { name: 'Accept…' }));
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await visit('/inbox', async () => page.waitForSelector('#list[data-settled="true"]'));
  await reach(page.locator('article').first());
  await page.keyboard.press('a');
  await page.getByRole('dialog', { name: 'Approve?' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByText('Approved.').waitFor();
  const posts = gateway.state.requests.filter((request) => request.method === 'POST').map((request) => request.path);
  for (const path of ['/api/runs/run_live/abort', '/api/execute', '/api/servers/mail/restart', '/api/servers/crm/accept', '/api/approvals/run_ask/q_1']) assert.ok(posts.includes(path), path);
  assert.deepEqual(wrong, []);
});

test('an explored path is run for real, with the values that nobody gave', async (t) => {
  const { page, gateway, wrong, visit } = await open(t);
  await visit('/test?mode=intent&intent=fetch%20the%20orders');
  await page.getByRole('button', { name: 'Try ways' }).click();
  const path = page.locator('article', { hasText: 'dry_3' });
  const run = path.getByRole('button', { name: 'Run for real…' });
  assert.equal(await run.isDisabled(), true);
  await path.getByLabel('url').fill('https://example.org');
  await run.click();
  await page.getByRole('dialog', { name: 'Run it for real?' }).getByRole('button', { name: 'Run' }).click();
  await page.waitForURL(/\/runs\/run_live/);
  const sent = gateway.state.requests.find((request) => request.path === '/api/execute');
  assert.deepEqual(JSON.parse(sent.body), { explorePath: 'dry_3', confirm: true, args: { url: 'https://example.org' } });
  assert.deepEqual(wrong, []);
});

test('every answer is given without a mouse, and so are theme and signing out', async (t) => {
  const { page, gateway, wrong, visit } = await open(t);
  const reach = async (locator) => {
    for (let press = 0; press < 80; press += 1) {
      if (await locator.evaluate((node) => node === document.activeElement)) return;
      await page.keyboard.press('Tab');
    }
    assert.fail(`not reached by Tab: ${locator}`);
  };
  const keys = async (locator, ...pressed) => {
    await page.waitForSelector('#list[data-settled="true"]');
    await reach(locator);
    for (const key of pressed) await page.keyboard.press(key);
  };
  await visit('/inbox', async () => page.waitForSelector('#list[data-settled="true"]'));
  const card = (run) => page.locator(`article[data-run="${run}"]`);
  const ask = card('run_ask');
  await keys(ask.locator('summary', { hasText: 'More ways to approve' }), 'Enter');
  await keys(ask.getByLabel('Where it counts'), 'ArrowDown');
  await keys(ask.getByLabel('Days'), 'Control+a', '7');
  await keys(ask.getByLabel('whatever the arguments'), 'Space');
  await keys(ask.getByRole('button', { name: /ask again/ }), 'Enter');
  await page.getByText('Approved, and not asked again.').waitFor();
  await keys(card('run_doubt').getByLabel('It had no effect: send it again'), 'Space');
  await keys(card('run_doubt').getByRole('button', { name: 'Go on' }), 'Enter');
  await page.getByText('Answered.').waitFor();
  await keys(card('run_layer').getByRole('button', { name: 'Continue' }), 'Enter');
  await page.getByText('Continued.').waitFor();
  await keys(page.getByRole('button', { name: 'Accept as shown' }), 'Enter');
  await page.getByText('Accepted.').waitFor();
  const sent = gateway.state.requests.filter((request) => request.method === 'POST').map((request) => [decodeURIComponent(request.path), JSON.parse(request.body)]);
  assert.deepEqual(sent, [
    ['/api/approvals/run_ask/q_1', { approved: true, remember: { only: 'tool', anyArguments: true, days: 7 } }],
    ['/api/approvals/run_doubt/q_2', { calls: [{ call: 3, verdict: 'again' }] }],
    ['/api/approvals/run_layer/q_3', { approved: true }],
    ['/api/quarantine/mail:send', { definition: 'd1' }],
  ]);
  await keys(page.getByRole('button', { name: 'Theme: Auto' }), 'Enter');
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'light');
  await keys(page.getByRole('button', { name: 'Sign out' }), 'Enter');
  await page.getByText('read only').waitFor();
  assert.deepEqual(wrong, []);
});
