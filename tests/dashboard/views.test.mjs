// The pure parts of the pages Capabilities, Capability and Graph. Usage: node --test tests/dashboard/views.test.mjs
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fit, hit, isBeside, isInside, pan, placeLabels, toMap, toView, touches, zoom } from '../../crates/pml/src/dashboard/page/views/camera.js';
import { matching } from '../../crates/pml/src/dashboard/page/views/capability-filter.js';
import { lines, tokens } from '../../crates/pml/src/dashboard/page/views/highlight.js';
import { linePath } from '../../crates/pml/src/dashboard/page/views/lines.js';
import { callTokens, definitionTokens, neighbourInDirection, shares, toolToken } from '../../crates/pml/src/dashboard/page/views/marks.js';
import { pathWords } from '../../crates/pml/src/dashboard/page/views/path-words.js';
import { badges, bars, compareCalls, curve, relations, ticks } from '../../crates/pml/src/dashboard/page/views/timeline.js';

test('a call and the node of the definition it came from share a token', () => {
  const definition = { kind: 'tool', tool: 'fs:read', label: 'fs:read', sites: [{ nodeId: 'n1' }, { nodeId: 'n3' }] };
  const invocation = {
    structureKnown: true,
    nodes: [
      { id: 'fs:read_1', nodeId: 'n1', tool: 'fs:read', kind: 'tool' },
      { id: 'inner_1', nodeId: 'n2', tool: 'cap_1', label: 'inner', kind: 'capability' },
      // Node n1 of another program: it belongs to the call around it.
      { id: 'fs:read_2', nodeId: 'n1', tool: 'fs:read', kind: 'tool', parent: 'inner_1' },
    ],
  };
  const known = callTokens(invocation);
  assert.deepEqual([...known.values()], ['n1', 'n2', 'n2']);
  const marked = new Set(definitionTokens(definition));
  assert.deepEqual([...known.values()].map((token) => shares([token], marked)), [true, false, false]);
  const unknown = callTokens({ ...invocation, structureKnown: false });
  assert.equal(unknown.get('fs:read_1'), toolToken('fs:read'), 'by the tool where the structure is another');
  assert.ok(marked.has(unknown.get('fs:read_1')));
  assert.ok(!toolToken('a b').includes(' '), 'tokens are separated by blanks');
});

test('a label is in a circle, beside it, or touches another one', () => {
  const circle = { x: 100, y: 100, radius: 50 };
  const box = (x, y) => ({ x, y, width: 40, height: 12 });
  assert.deepEqual([box(80, 90), box(120, 94), box(160, 94), box(60, 60)].map((one) => [isInside(one, circle), isBeside(one, circle), touches(one, circle)]), [[true, true, true], [false, true, true], [false, false, false], [false, true, true]]);
});

test('lines lead from the end of a call to the begin of the next, one for a pair', () => {
  const nodes = [{ id: 'a', lane: 0, fromMs: 0, toMs: 10 }, { id: 'b', lane: 1, fromMs: 12, toMs: 20 }, { id: 'c', lane: 0, fromMs: 10, toMs: 30 }];
  const edges = [{ from: 'a', to: 'b', kind: 'sequence' }, { from: 'a', to: 'b', kind: 'dependency' }, { from: 'a', to: 'c', kind: 'sequence' }, { from: 'c', to: 'b', kind: 'contains' }, { from: 'a', to: 'gone', kind: 'sequence' }];
  const found = relations(edges, bars(nodes, 10, 300), (lane) => lane * 20);
  assert.deepEqual(found.map(({ from, to, kind, points }) => [from, to, kind, points]), [['a', 'b', 'dependency', [[100, 0], [120, 20]]]], 'calls that touch need no line');
  assert.equal(curve([[100, 0], [120, 20]]), 'M100 0C110 0 110 20 120 20');
  assert.match(curve([[100, 0], [95, 20]]), /^M100 0C103 0 92 20 95 20$/);
});

test('arrow keys find the nearest in their direction', () => {
  const nodes = [{ id: 'a', x: 0, y: 0 }, { id: 'b', x: 10, y: 100 }, { id: 'c', x: 90, y: 60 }, { id: 'd', x: 100, y: 0 }];
  const next = (key, from = nodes[0]) => neighbourInDirection(nodes, from, key)?.id;
  assert.deepEqual([next('ArrowDown'), next('ArrowRight'), next('ArrowUp'), next('ArrowLeft', nodes[3])], ['b', 'd', undefined, 'a']);
});

test('source is cut into lines without losing a character, with places inside of places', () => {
  const text = "// note\nif (await mcp.fs.read({ path: 'x' })) return 1;\n";
  const from = text.indexOf('await');
  const sites = [{ nodeId: 'd1', from: text.indexOf('if'), to: text.length - 1 }, { nodeId: 'n1', from, to: text.indexOf('))') + 1 }];
  const cut = lines(text, 'ts', sites);
  assert.equal(cut.map((line) => line.map((piece) => piece.text).join('')).join('\n'), text);
  const piece = cut[1].find((one) => one.text.includes('fs'));
  assert.deepEqual(piece.ids, ['n1', 'd1'], 'the innermost first');
  assert.deepEqual(cut[1].find((one) => one.text === 'return').kind, 'word');
  assert.deepEqual(cut[0].map((one) => one.kind), ['comment']);
  assert.deepEqual(tokens('{"a": "b", "c": -1e3, "d": null}', 'json').map((token) => token.kind), ['key', 'text', 'key', 'number', 'key', 'word']);
  assert.doesNotThrow(() => lines('`never closed ${', 'ts', [{ nodeId: 'n1', from: 5, to: 999 }]));
});

test('bars overlap only in lanes of their own and are never too thin to point at', () => {
  const nodes = [
    { id: 'fs:read_1', lane: 0, fromMs: 0, toMs: 100 },
    { id: 'fs:read_2', lane: 1, fromMs: 10, toMs: 90 },
    { id: 'fs:read_3', lane: 0, fromMs: 100, toMs: 100 },
  ];
  const drawn = bars(nodes, 2, 400);
  assert.deepEqual(drawn.map((bar) => [bar.x, bar.width, bar.inside]), [[0, 200, true], [20, 160, true], [200, 5, false]]);
  const short = [0, 1, 2].map((number) => ({ id: `fs:read_${number}`, lane: 0, fromMs: 3, toMs: 3 }));
  assert.deepEqual(bars(short, 10, 400).map((bar) => bar.x), [30, 36, 42], 'none covers another');
  assert.deepEqual(bars(short, 10, 33).map((bar) => bar.x), [16, 22, 28], 'nor at the end of the axis');
  assert.equal(bars(nodes, 0.1, 40)[0].label, '', 'no label where there is no room');
  assert.deepEqual(ticks(1000, 600), [0, 200, 400, 600, 800, 1000]);
  assert.ok(ticks(0, 600).length > 0 && ticks(1e9, 300).length < 10);
  assert.deepEqual(badges({ status: 'error', retries: 2, cached: true }), ['error', 'retry 2', 'cached']);
  const run = (...labels) => ({ nodes: labels.map((label) => ({ label })) });
  assert.deepEqual(compareCalls([run('a', 'a'), run('a', 'b')]), [{ tool: 'a', counts: [2, 1], differs: true }, { tool: 'b', counts: [0, 1], differs: true }]);
});

test('the sign of a mark has its room in the bar', () => {
  const one = (more) => bars([{ id: 'fs:read_1', lane: 0, fromMs: 0, toMs: 80, ...more }], 1, 400)[0];
  assert.deepEqual([one({ status: 'ok' }).inside, one({ status: 'error' }).inside], [true, false]);
  assert.ok(bars([{ id: 'memory:create_entities_1', lane: 0, fromMs: 0, toMs: 120, status: 'error' }], 1, 120)[0].label.length < bars([{ id: 'memory:create_entities_1', lane: 0, fromMs: 0, toMs: 120, status: 'ok' }], 1, 120)[0].label.length);
});

test('a learned path is told by its calls and branches', () => {
  const node = (kind, label, ...sites) => ({ kind, label, sites: sites.map((nodeId) => ({ nodeId })) });
  const definition = { nodes: [node('parallel', 'parallel: all', 'f1'), node('tool', 'fs:read', 'n1', 'n2'), node('branch', 'if ok', 'd1')] };
  assert.deepEqual(pathWords(['f1', 'n1', 'n2', 'd1', 'n9'], definition), [{ label: 'fs:read', times: 2 }, { label: 'if ok', times: 1 }, { label: 'n9', times: 1 }]);
});

test('the camera keeps what is below the pointer and shows all of a box', () => {
  const view = { width: 800, height: 600 };
  const camera = fit({ x: 0, y: 0, width: 4000, height: 1000 }, view);
  const corner = toView(camera, view, { x: 4000, y: 1000 });
  assert.ok(corner.x <= 800 && corner.y <= 600);
  const at = { x: 100, y: 50 };
  const before = toMap(camera, view, at);
  const after = toMap(zoom(camera, view, 2, at), view, at);
  assert.ok(Math.hypot(before.x - after.x, before.y - after.y) < 1e-6);
  assert.ok(pan(camera, 80, 0).x > camera.x);
  const layout = { nodes: [{ id: 'n', x: 0, y: 0 }], communities: [{ id: 'c', x: 500, y: 0, radius: 50, expanded: false }, { id: 'o', x: -500, y: 0, radius: 50, expanded: true }] };
  const middle = { x: 0, y: 0, scale: 0.5 };
  const under = (x) => hit(layout, middle, view, toView(middle, view, { x, y: 0 }));
  assert.equal(under(0).node.id, 'n');
  assert.equal(under(510).community.id, 'c');
  assert.equal(under(-500), null, 'an open community is only background');
});

test('labels do not cover each other', () => {
  const label = (x, y, width = 50) => ({ places: [{ x, y }], width, height: 12 });
  assert.equal(placeLabels([label(0, 0), label(40, 5), label(60, 0), label(30, 6, 200)]).length, 2);
  assert.equal(placeLabels([label(-4, 0), label(70, 0)], [], { width: 100, height: 100 }).length, 0, 'no label is cut by the edge');
  const movable = (more) => ({ width: 50, height: 12, places: [{ x: 0, y: 0 }, { x: 0, y: 20 }], ...more });
  const node = (y) => ({ x: 20, y, width: 8, height: 8 });
  const at = (candidates, obstacles) => placeLabels(candidates, obstacles).map((box) => box.y);
  assert.deepEqual(at([movable(), movable(), movable()], []), [0, 20], 'the second place where the first is taken');
  assert.deepEqual(at([movable()], [node(2)]), [20], 'no label covers a node');
  assert.deepEqual(at([movable()], [node(2), node(22)]), []);
  assert.deepEqual(at([movable({ must: true })], [node(2), node(22)]), [0], 'unless it has to be there');
});

test('lines have their ends where they were given', () => {
  const path = linePath([[0, 0], [0, 50], [40, 50]]);
  assert.ok(path.startsWith('M0 0') && path.endsWith('L40 50') && path.includes('Q0 50'));
  assert.equal(linePath([[0, 0]]), '');
  assert.ok(!linePath([[0, 0], [0, 0], [5, 5]]).includes('NaN'));
});

test('capabilities are found by every word', () => {
  const all = [{ id: 'cap_1', name: 'readNotes', description: 'Reads', state: 'active', intents: [{ text: 'Read the NOTES' }], toolsUsed: [{ id: 'fs:read' }] }];
  const found = (text, state = '') => matching(all, text, state).length;
  assert.deepEqual([found(''), found('notes fs:'), found('notes nothing'), found('', 'planned')], [1, 1, 0, 0]);
});
