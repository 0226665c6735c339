// The parts of the dashboard that need no browser. Run with `node --test`.
import assert from 'node:assert/strict';
import { test } from 'node:test';

const page = '../../crates/pml/src/dashboard/page';
const [router, format, list, live, rows, schema, pretty, chart, calls, { windowOf }, text, rules] = await Promise.all([
  'router.js', 'ui/format.js', 'pages/run-list.js', 'pages/run-live.js', 'pages/run-rows.js', 'ui/schema.js', 'ui/pretty.js', 'pages/savings-chart.js', 'pages/test-calls.js', 'ui/window.js', 'text.js',
  'pages/rule-words.js',
].map((name) => import(`${page}/${name}`)));

test('an address is a page with its names, and a page has one address', () => {
  assert.deepEqual(router.match('/runs'), { page: 'runs', params: {} });
  assert.deepEqual(router.match('/runs/'), { page: 'runs', params: {} });
  assert.deepEqual(router.match('/runs/run_1'), { page: 'run', params: { id: 'run_1' } });
  assert.deepEqual(router.match('/capabilities/a%2Fb%20c'), { page: 'capability', params: { name: 'a/b c' } });
  assert.equal(router.decoded('a%2Fb'), 'a/b');
  assert.equal(router.decoded('%zz'), '%zz', 'anybody can write a link');
  assert.deepEqual(router.match('/capabilities/%zz'), { page: 'capability', params: { name: '%zz' } });
  for (const path of ['/', '/nothing', '/runs/a/b', '/Runs']) assert.equal(router.match(path), null, path);
  assert.equal(router.href('run', { id: 'a/b' }, { tab: 'console', call: '', line: undefined }), '/runs/a%2Fb?tab=console');
  for (const [name, pattern] of router.ROUTES) {
    const params = Object.fromEntries([...pattern.matchAll(/\{(\w+)\}/g)].map(([, key]) => [key, 'x y/ü?&#']));
    assert.deepEqual(router.match(router.href(name, params)), { page: name, params });
  }
});

test('numbers, sizes, durations and times are written so that they can be read', () => {
  const cases = [
    [format.count(12345678), '12 345 678'], [format.count(-1200), '−1 200'], [format.count(undefined), '–'],
    [format.plural(1, 'call'), '1 call'], [format.plural(0, 'call'), '0 calls'], [format.percent(0.004), '<1 %'], [format.percent(0.999), '>99 %'], [format.percent(1), '100 %'],
    [format.duration(0), '0 ms'], [format.duration(0.42), '0.4 ms'], [format.duration(999.6), '1.00 s'], [format.duration(59_960), '1 min'], [format.duration(185_000), '3 min 5 s'],
    [format.duration(7_800_000), '2 h 10 min'], [format.duration(3 * 86_400_000 + 4 * 3_600_000), '3 d 4 h'], [format.duration(-5), '−5 ms'], [format.duration(NaN), '–'],
    [format.size(12), '12 B'], [format.size(4300), '4.2 KiB'], [format.size(1048576), '1.0 MiB'],
    [format.ago(1000, 1500), 'now'], [format.ago(0, 12_000), '12 s ago'], [format.ago(0, 300_000), '5 min ago'],
  ];
  for (const [is, should] of cases) assert.equal(is.replaceAll(' ', ' '), should);
});

test('only rows in view are drawn, wherever the list stands', () => {
  assert.deepEqual(windowOf({ top: 0, height: 300, rowHeight: 30, count: 20_000, spare: 2 }), { from: 0, to: 12 });
  assert.deepEqual(windowOf({ top: 3000, height: 300, rowHeight: 30, count: 20_000, spare: 2 }), { from: 98, to: 112 });
  assert.deepEqual(windowOf({ top: 1e9, height: 300, rowHeight: 30, count: 5, spare: 2 }), { from: 5, to: 5 });
  assert.deepEqual(windowOf({ top: -50, height: 300, rowHeight: 30, count: 0 }), { from: 0, to: 0 });
});

const run = (number, status = 'done') => ({ id: `r${number}`, status });
const names = (runs) => runs.map(({ id, status }) => (status === 'done' ? id : `${id} ${status}`)).join(', ');

/** A gateway with these runs, newest first, that gives them in pages. */
function pagesOf(runs, size, asked = []) {
  return async (cursor) => {
    asked.push(cursor);
    const from = cursor === undefined ? 0 : runs.findIndex(({ id }) => id === cursor) + 1;
    const items = runs.slice(from, from + size);
    return { items, ...(from + size < runs.length ? { nextCursor: items.at(-1).id } : {}) };
  };
}

async function refreshed(known, runs, { size = 3, changed = () => false, asked } = {}) {
  const { stretches, items } = await list.readChanges(known, changed, pagesOf(runs, size, asked));
  return names(items ?? stretches.reduce(list.withStretch, known));
}

test('a list of runs takes over what is new and keeps the rest', async () => {
  const known = [run(5, 'running'), run(4), run(3), run(2), run(1)];
  assert.equal(await refreshed(known, [run(6), run(5), run(4), run(3), run(2), run(1)]), 'r6, r5, r4, r3, r2, r1');
  assert.equal(await refreshed(known, [run(5)]), 'r5', 'what is gone is gone');
  assert.equal(await refreshed([], [run(9), run(8), run(7), run(6)]), 'r9, r8, r7', 'an empty list has the newest page');
  assert.equal(await refreshed(known, [run(5), run(3), run(2), run(1)]), 'r5, r3, r2, r1', 'one that left the middle');
});

test('a list that was not watched for a while has all runs that came meanwhile', async () => {
  const known = [run(2), run(1)];
  const many = (newest) => Array.from({ length: newest }, (_, index) => run(newest - index));
  const asked = [];
  assert.equal(await refreshed(known, many(11), { asked }), names(many(11)));
  assert.deepEqual(asked, [undefined, 'r9', 'r6', 'r3'], 'page after page, until they meet');
  const { items, cursor } = await list.readChanges(known, () => false, pagesOf(many(100), 3));
  assert.equal(names(items), names(many(100).slice(0, 3 * list.MOST_PAGES)), 'beyond that the list begins anew');
  assert.equal(cursor, 'r71');
});

test('a run far down the list is read again when it changes', async () => {
  const before = Array.from({ length: 12 }, (_, index) => run(12 - index, [2, 5].includes(12 - index) ? 'running' : 'done'));
  const after = before.map(({ id }) => ({ id, status: 'done' }));
  const changed = (id) => id === 'r2';
  const asked = [];
  assert.match(await refreshed(before, after, { changed, asked }), /r6, r5 running, r4, r3, r2, r1$/);
  assert.deepEqual(asked, [undefined, 'r3']);
  assert.equal(await refreshed(before, after, { changed: () => true }), names(after), 'after a reset all that go on');
  // A filter by status: it no longer belongs to the list.
  const running = Array.from({ length: 6 }, (_, index) => run(6 - index, 'running'));
  assert.equal(await refreshed(running, running.filter(({ id }) => id !== 'r1'), { changed: (id) => id === 'r1' }), names(running.slice(0, 5)));
  assert.equal(await refreshed(running.slice(0, 5), [...running.slice(0, 4), running[5]], { changed: (id) => id === 'r2' }), names([...running.slice(0, 4), running[5]]));
  // Too many to read at once are left for later.
  const waiting = Array.from({ length: 60 }, (_, index) => run(60 - index, 'waiting'));
  const { stretches, rest } = await list.readChanges(waiting, () => true, pagesOf(waiting, 3));
  assert.equal(stretches.length, list.MOST_PAGES);
  assert.equal(rest.length, 30);
});

const call = (number, startedAt, durationMs, more = {}) => ({ call: number, tool: 'fs:read', startedAt, durationMs, status: 'ok', ...more });

test('calls are a tree with questions and interruptions between', () => {
  const within = (frame, nodeId) => ({ parent: { frame, nodeId, capability: `cap_${frame}` } });
  const given = {
    calls: [call(1, 0, 10), call(2, 30, 10, within(1, 'n3')), call(3, 50, 100, within(2, 'n3/n1')), call(4, 60, 10, within(1, 'n3')), call(5, 300, 10, within(3, 'n3')), call(6, 310, 5)],
    questions: [{ id: 'q', askedAt: 250, answeredAt: 280 }], spans: [{ from: 0, to: 285 }, { from: 295 }], now: 500,
  };
  const drawn = (options = {}) => rows.buildRows({ ...given, ...options }).map((row) => `${' '.repeat(row.depth)}${row.key}${row.children ? `+${row.children}` : ''} ${row.from}-${row.to}`);
  assert.deepEqual(drawn(), ['c1 0-10', 'f1+3 30-150', ' c2 30-40', ' f2+1 50-150', '  c3 50-150', ' c4 60-70', 'qq 250-280', 'g285 285-295', 'f3+1 300-310', ' c5 300-310', 'c6 310-315']);
  assert.deepEqual(drawn({ closed: new Set(['f1']) }).slice(0, 3), ['c1 0-10', 'f1+3 30-150', 'qq 250-280']);
  assert.equal(rows.buildRows({ calls: [call(1, 10, undefined, { status: 'running' })], now: 90 })[0].to, 90);
  assert.equal(rows.buildRows({ calls: [call(1, 10, undefined, { status: 'cancelled' })], now: 90 })[0].to, 10);
});

test('20,000 calls are laid out in a moment', () => {
  const many = Array.from({ length: 20_000 }, (_, index) => call(index + 1, index * 3, 40, index % 10 ? { parent: { frame: Math.floor(index / 10), nodeId: 'n1' } } : {}));
  const before = performance.now();
  const built = rows.buildRows({ calls: many, now: 0 });
  const axis = rows.timeAxis({ start: 0, end: 61_000, rows: built });
  rows.lanesOf(built);
  assert.equal(built.length, 22_000);
  assert.ok(axis.at(30_000) > 0.4 && axis.at(30_000) < 0.6);
  assert.ok(performance.now() - before < 1500, `${performance.now() - before} ms`);
});

test('a long pause takes little of the axis, and places keep their order', () => {
  const built = rows.buildRows({ calls: [call(1, 0, 100), call(2, 3_600_000, 100)], now: 3_600_100 });
  const axis = rows.timeAxis({ start: 0, end: 3_600_100, rows: built });
  assert.equal(axis.pauses.length, 1);
  assert.ok(axis.at(100) > 0.4 && axis.at(3_600_000) < 0.6);
  const places = [0, 50, 100, 1_000_000, 3_600_000, 3_600_050, 3_600_100].map(axis.at);
  assert.deepEqual(places, [...places].sort((one, other) => one - other));
  assert.deepEqual([places[0], Math.round(places.at(-1) * 1e6) / 1e6], [0, 1]);
});

test('a call that overlaps another has a lane of its own', () => {
  const built = rows.buildRows({ calls: [call(1, 0, 100), call(2, 50, 100), call(3, 110, 10)], now: 0 });
  assert.deepEqual(rows.lanesOf(built).map(({ lane }) => lane), [0, 1, 0]);
});

test('events add calls and finish them, in whatever order they come', () => {
  const start = (number, at) => ['task_start', { call: number, tool: 'fs:read', at }];
  const end = (number, at) => ['task_complete', { call: number, tool: 'fs:read', status: 'ok', durationMs: 5, speculated: true, resultSize: 7, at }];
  const events = [start(2, 20), start(1, 10), end(2, 25), end(3, 40), start(3, 41), start(1, 99)];
  const told = (calls) => calls.map(({ call: number, status, startedAt, resultBytes }) => [number, status, startedAt, resultBytes]);
  const expected = [[1, 'running', 10, undefined], [2, 'ok', 20, 7], [3, 'ok', 35, 7]];
  const known = live.callsAfter([], events);
  assert.deepEqual(told(known), expected);
  assert.deepEqual(told(events.reduce((calls, event) => live.callsAfter(calls, [event]), [])), expected, 'one by one');
  assert.equal(live.callsAfter(known, [['log', { text: 'x' }]]), known);
  assert.ok(live.growingEnd(0, 5000) >= 5000);
  assert.equal(live.growingEnd(0, 5000), live.growingEnd(0, 5100), 'the axis does not move all the time');
});

test('a task of a DAG that is called again was tried before', () => {
  const calls = [call(1, 0, 5, { nodeId: 'n1', retries: 0 }), call(2, 6, 5, { nodeId: 'n2', retries: 0 }), call(3, 7, 5, { nodeId: 'n1', retries: 1 }), call(4, 9, 5, { nodeId: 'n1', parent: { frame: 1 }, retries: 0 }), call(5, 9, 5, { retries: 0 })];
  assert.deepEqual(live.withAttempts(calls).map(({ retries }) => retries), [0, 0, 2, 0, 0]);
});

test('reading goes on at the first call whose end was not read', () => {
  const given = [call(1, 0, 5), call(2, 0, 5, { status: 'running' }), call(3, 0, 5), call(4, 0, 5, { told: true }), call(5, 0, 5), call(9, 0, 5, { told: true })];
  assert.deepEqual([[0, 5], [2, 5], [4, 5], [5, 5], [5, 7]].map(([after, readTo]) => live.readFrom(given, after, readTo)), [1, 3, 5, 5, 7]);
  assert.equal(live.readFrom([], 0, 0), 0);
  const merged = live.withPage(given, [call(2, 0, 7), call(4, 0, 8, { status: 'running' }), call(6, 0, 1)]);
  assert.deepEqual(merged.map((one) => [one.call, one.status, one.durationMs]), [[1, 'ok', 5], [2, 'ok', 7], [3, 'ok', 5], [4, 'ok', 5], [5, 'ok', 5], [6, 'ok', 1], [9, 'ok', 5]]);
  assert.equal(live.readFrom(merged, 1, 6), 3, 'an end that was only heard is read');
});

test('a form is made from a schema and read back', () => {
  const fields = schema.fieldsOf({
    required: ['path', 'count'],
    properties: { path: { type: 'string', default: 'x' }, count: { type: 'integer', minimum: 1, maximum: 9 }, ratio: { type: ['number', 'null'] }, on: { type: 'boolean', default: false }, kind: { enum: ['a', 2, null], default: 2 }, list: { type: 'array', default: [1] }, any: true },
  });
  assert.deepEqual(fields.map(({ name, kind, initial }) => [name, kind, initial]), [['path', 'text', 'x'], ['count', 'integer', ''], ['ratio', 'number', ''], ['on', 'boolean', 'false'], ['kind', 'choice', '1'], ['list', 'json', '[\n  1\n]'], ['any', 'json', '']]);
  const read = (texts) => schema.readFields(fields, texts);
  assert.deepEqual(read({ path: 'a b', count: '3', ratio: '0.5', on: 'false', kind: '1', list: '[1,2]' }), { values: { path: 'a b', count: 3, ratio: 0.5, on: false, kind: 2, list: [1, 2] }, errors: {} });
  assert.deepEqual(Object.entries(read({ count: '2.5', list: '[', ratio: 'x' }).errors).map(([name, error]) => [name, error.split(':')[0]]), [['path', 'give a value'], ['count', 'give a whole number'], ['ratio', 'give a number'], ['list', 'not JSON']]);
  assert.deepEqual([read({ path: '""', count: '0' }).values.path, read({ path: 'x', count: '0' }).errors.count, read({ path: 'x', count: '10' }).errors.count], ['', 'at least 1', 'at most 9']);
  assert.deepEqual(schema.fieldsOf(undefined), []);
  const odd = schema.fieldsOf({ properties: { ['__proto__']: { type: 'string' }, constructor: { const: 7 }, path: { type: 'string', examples: ['a.txt'] } } });
  assert.deepEqual(odd.map(({ kind, initial }) => [kind, initial]), [['text', ''], ['choice', ''], ['text', 'a.txt']]);
  assert.equal(JSON.stringify(schema.readFields(odd, { ['__proto__']: 'x', constructor: '0' }).values), '{"__proto__":"x","constructor":7}');
});

test('values become lines of bearable length', () => {
  assert.equal(pretty.valueText({ a: [1] }), '{\n  "a": [\n    1\n  ]\n}');
  assert.equal(pretty.valueText('{"a":1}'), '{\n  "a": 1\n}');
  assert.equal(pretty.valueText('{"a":'), '{"a":', 'what was cut short stays as it is');
  assert.deepEqual(pretty.linesOf('a\n\nb'), ['a', '', 'b']);
  const long = pretty.linesOf('🙂'.repeat(1000));
  assert.equal(long.join(''), '🙂'.repeat(1000));
  assert.ok(long.every((line) => line.length <= 402 && line.isWellFormed()));
});

test('bars fill a chart up to a round number', () => {
  assert.deepEqual([0, 0.3, 7, 11, 24, 26, 99, 1000].map(chart.roundTop), [1, 0.5, 10, 20, 25, 50, 100, 1000]);
  const { bars, top } = chart.stackedBars({ items: [{ a: 5, b: 5 }, { a: 0 }], keys: ['a', 'b'], width: 100, height: 50 });
  assert.equal(top, 10);
  assert.deepEqual(bars.map(({ key, y, height }) => [key, y, height]), [['a', 25, 25], ['b', 0, 25]]);
});

test('calls ahead are used, out of date, or made for nothing', () => {
  assert.deepEqual(chart.aheadTotals([{ hits: 6, misses: 1, wasted: 2, savedMs: 40 }, { hits: 2, misses: 0, wasted: 5, savedMs: 2 }]), { made: 16, used: 0.5, wasted: 7, savedMs: 42 });
  assert.deepEqual(chart.aheadTotals([]), { made: 0, used: 0, wasted: 0, savedMs: 0 });
});

test('days on which nothing happened are days too', () => {
  const day = 86_400_000;
  const filled = chart.everyDay([{ day: 98 * day, runs: 4 }], 3, 100 * day + 5);
  assert.deepEqual(filled.map((item) => [item.day / day, item.runs]), [[98, 4], [99, 0], [100, 0]]);
});

test('calls of a dry run stand on an axis of their own', () => {
  const { run, calls: made } = calls.reportCalls({ capturedCalls: [{ call: 1, server: 'fs', tool: 'read', origin: 'real', timestamp: 100, durationMs: 5 }, { call: 2, server: 'fs', tool: 'write', origin: 'overlay', timestamp: 110, durationMs: 20, error: { message: 'no' } }] });
  assert.deepEqual([run.startedAt, run.endedAt], [100, 130]);
  assert.deepEqual(made.map(({ tool, mocked, status }) => [tool, mocked, status]), [['fs:read', false, 'ok'], ['fs:write', true, 'error']]);
  assert.equal(calls.reportCalls({ capturedCalls: [] }).calls.length, 0);
});

test('what hides or moves text is written out', () => {
  const shown = (value, breaks) => [...text.pieces(value, breaks)].map((piece) => (typeof piece === 'string' ? piece : piece.escape)).join('');
  assert.equal(shown('rm \u202egpj.exe'), 'rm \\u202egpj.exe');
  assert.equal(shown('a\nb'), 'a\\nb');
  assert.equal(shown('a\nb\u200b', 'plain'), 'a\nb\\u200b');
});

test('a standing rule ends by its time or by a person', () => {
  assert.deepEqual([{ expiresAt: 5 }, { expiresAt: 4 }, { expiresAt: 9, revokedAt: 1 }].map((rule) => rules.ruleState(rule, 4)), ['active', 'expired', 'revoked']);
  assert.deepEqual([rules.whatItCovers({}), rules.whatItCovers({ codeHash: 'c', arguments: 'a' })], ['any arguments in any code', 'the same arguments in the same code']);
});
