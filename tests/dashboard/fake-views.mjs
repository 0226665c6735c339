// What the gateway of fake.mjs answers about capabilities and the graph: pictures, traces, versions, the map.
const HOUR = 3_600_000;
const RUNS = 45;
const SOURCE = 'const files = await mcp.fs.list({ path: args.folder });\nfor (const file of files.entries) {\n  const text = await mcp.fs.read({ path: file.path });\n  if (file.size > 0) await mcp.csv.parse({ csv: text.content });\n}\nreturn files.entries.length;';

/** The routes, in the shape of those of fake.mjs. `capabilities` are those that it lists. */
export function viewRoutes({ word, now, state, capabilities, notFound, none }) {
  const known = (name) => capabilities.find((one) => one.name === name || one.id === name);
  const of = (name, reply) => (known(name) ? [200, reply(known(name))] : notFound());
  const graph = makeGraph(word, none);
  state.inForce ??= 2;
  return [
    ['GET', 'capabilities/*/definition', (_, __, name) => of(name, () => makeDefinition(word))],
    ['GET', 'capabilities/*/versions', (_, __, name) => of(name, (capability) => ({ name: capability.name, versions: makeVersions(word, now, capability, state.inForce) }))],
    ['GET', 'capabilities/*/diff', (query, _, name) => of(name, () => ({ diff: makeDiff(word, Number(query.get('from')), Number(query.get('to'))) }))],
    ['POST', 'capabilities/*/rollback', (_, body, name) => of(name, () => {
      state.inForce = body.version;
      return { version: body.version };
    })],
    ['GET', 'traces/*', (query, _, name) => of(name, (capability) => {
      const all = capability.id === 'cap_1' ? state.traces ??= Array.from({ length: RUNS }, (_unused, index) => makeTrace(word, now, index)) : [];
      const from = query.get('cursor') ? all.findIndex((trace) => trace.id === query.get('cursor')) + 1 : 0;
      const limit = Number(query.get('limit') ?? 20);
      return { traces: all.slice(from, from + limit), ...(from + limit < all.length ? { nextCursor: all[from + limit - 1].id } : {}) };
    })],
    ['GET', 'trace/*/invocation', (_, __, id) => [200, makeInvocation(word, now, id)]],
    ['GET', 'graph/layout', () => [200, graph]],
    ['GET', 'graph/node', (query) => {
      const node = graph.nodes.find((one) => one.id === query.get('id')) ?? graph.nodes[0];
      return !node ? notFound() : [200, { ...node, description: word('Reads a file.', 'description'), inputSchema: schema(word), outputSchema: schema(word), outputObserved: true, further: 2, neighbours: graph.nodes.slice(1, 4).map((other, index) => ({
        id: other.id, label: other.label, kind: other.kind, direction: index === 0 ? 'in' : 'out', reason: word('`csv:parse` was given a result of `fs:read` in 3 runs', 'reason'), edge: { from: index === 0 ? other.id : node.id, to: index === 0 ? node.id : other.id, type: 'dependency', source: 'observed', weight: 1, count: 3 },
      })) }];
    }],
    ['GET', 'graph/search', () => [200, { items: graph.nodes }]],
    ['GET', 'graph/ways', () => {
      if (graph.nodes.length < 2) return notFound();
      const ends = ['from', 'to'].map((end, index) => [end, { id: graph.nodes[index].id, label: graph.nodes[index].label, inputSchema: schema(word), outputSchema: schema(word) }]);
      const [one, other] = graph.nodes;
      return [200, { ...Object.fromEntries(ends), ways: [{ through: [one.id, other.id], cost: 1.2, edges: [{ from: one.id, to: other.id, type: 'provides', source: 'inferred', weight: 0.4, count: 0, mapping: [{ from: word('content', 'field'), to: word('csv', 'field'), how: 'name' }] }] }], labels: { [one.id]: one.label, [other.id]: other.label } }];
    }],
  ];
}

function schema(word) {
  return { type: 'object', properties: { [word('path', 'property')]: { type: 'string', description: word('The file', 'schema') } } };
}

function makeDefinition(word) {
  const at = (id, kind, label, x, y, more = {}) => ({ id, kind, label: word(label, 'label'), detail: word(label, 'detail'), sites: [], count: 1, usual: true, x, y, width: 170, height: 46, ...more });
  const site = (nodeId, text) => ({ nodeId, line: SOURCE.slice(0, SOURCE.indexOf(text)).split('\n').length, from: SOURCE.indexOf(text), to: SOURCE.indexOf(text) + text.length });
  const line = (from, to, kind, points, more = {}) => ({ from, to, kind, possible: false, upwards: false, points, ...more });
  return {
    source: word(SOURCE, 'source'), language: 'ts', runs: 12, width: 260, height: 420,
    nodes: [
      at('input', 'input', 'input', 20, 0), at('fs:list', 'tool', 'fs:list', 20, 90, { tool: word('fs:list', 'tool'), coverage: 1, sites: [site('n1', 'mcp.fs.list({ path: args.folder })')] }),
      at('l1', 'loop', 'for each files.entries', 0, 180, { width: 230, height: 230, sites: [site('l1', 'for (const file of files.entries)')] }),
      at('fs:read', 'tool', 'fs:read', 20, 220, { parent: 'l1', tool: word('fs:read', 'tool'), coverage: 0.9, count: 2, sites: [site('n2', 'mcp.fs.read({ path: file.path })')] }),
      at('d1', 'branch', 'if file.size > 0', 20, 290, { parent: 'l1', coverage: 0.9, sites: [site('d1', 'if (file.size > 0)')] }),
      at('n9', 'operation', 'Number', 20, 350, { parent: 'l1', tool: word('code:Number', 'tool'), coverage: 0 }),
    ],
    edges: [
      line('input', 'fs:list', 'provides', [[100, 46], [100, 90]], { label: word('folder', 'label') }), line('fs:list', 'l1', 'dependency', [[100, 136], [100, 180]]),
      line('d1', 'n9', 'dependency', [[100, 336], [100, 350]], { label: word('true', 'label'), share: 0.75 }),
    ],
  };
}

function makeTrace(word, now, index) {
  return { id: `trace_${RUNS - index}`, workflowId: `run_${RUNS - index}`, status: index % 5 === 3 ? 'failed' : 'success', intent: word('convert the files', 'intent'), createdAt: now - index * HOUR, durationMs: 300 + index * 10 };
}

function makeInvocation(word, now, id) {
  const node = (call, tool, lane, fromMs, toMs, more = {}) => ({ id: `${word(tool, 'tool')}_${call}`, call, traceId: id, nodeId: `n${call}`, kind: 'tool', tool: word(tool, 'tool'), label: word(tool, 'tool'), lane, fromMs, toMs, status: 'ok', retries: 0, speculated: false, cached: false, mocked: false, ...more });
  const nodes = [
    node(1, 'fs:list', 0, 0, 120), node(2, 'fs:read', 0, 130, 250, { speculated: true, savedMs: 40 }), node(3, 'fs:read', 1, 130, 290, { retries: 2 }),
    node(4, 'http:get', 2, 130, 320, { status: 'error', error: { code: 'TOOL_ERROR', message: word('503', 'call error') } }),
    node(5, 'csv:parse', 0, 300, 420, { kind: 'capability' }), node(6, 'json:parse', 1, 330, 400, { cached: true, parent: `${word('csv:parse', 'tool')}_5` }), node(7, 'mail:send', 0, 430, 480, { status: 'unfinished' }),
  ];
  const edge = (from, to, kind) => ({ from: nodes[from - 1].id, to: nodes[to - 1].id, kind });
  return {
    traceId: id, workflowId: 'run_live', status: 'failed', intent: word('convert the files', 'intent'), error: { code: 'TOOL_ERROR', message: word('`http:get` answers 503', 'error') }, startedAt: now - HOUR, durationMs: 500, activeMs: 420,
    lanes: 3, nodes, edges: [edge(1, 2, 'dependency'), edge(1, 3, 'dependency'), edge(1, 2, 'sequence'), edge(2, 5, 'sequence'), edge(3, 5, 'sequence'), edge(5, 6, 'contains'), edge(5, 7, 'sequence')],
    decisions: [{ nodeId: 'd1', condition: word('file.size > 0', 'condition'), taken: word('true', 'decision'), times: 3 }], executedPath: ['n1', 'n2'], structureKnown: id !== 'trace_1', cached: false, omitted: 1,
  };
}

function makeVersions(word, now, capability, inForce) {
  if (capability.id !== 'cap_1') return [{ version: 1, id: capability.id, name: capability.name, createdAt: now, current: true, qualifiedName: 'local.default.fs.x.y', state: 'active', successCount: 3, failureCount: 0 }];
  return [3, 2, 1].map((version) => ({
    version, id: version === inForce ? 'cap_1' : `cap_1${version}`, name: version === inForce ? capability.name : `${capability.name}@${version}`, createdAt: now - (4 - version) * HOUR, current: version === inForce,
    qualifiedName: word('local.default.fs.csv_to_json.0ab6', 'qualified name'), state: version === 1 ? 'degraded' : 'active', successCount: version * 4, failureCount: 1, ...(version === 3 ? { offeredBecause: word('`csv:parse` changed its schema', 'offered because') } : {}),
  }));
}

function makeDiff(word, from, to) {
  const both = (text) => ({ side: 'both', text: word(text, 'line') });
  return {
    name: word('csv_to_json', 'capability name'), from, to, code: [...Array.from({ length: 9 }, (_, index) => both(`const same${index} = ${index};`)), { side: 'removed', text: word('const rows = await mcp.csv.parse({ text });', 'line') }, { side: 'added', text: word('const rows = await mcp.csv.parse({ csv: text });', 'line') }, both('return rows;')],
    parameters: { added: [word('header', 'parameter')], removed: [word('text', 'parameter')], changed: [{ name: word('folder', 'parameter'), before: { type: 'string' }, after: { type: 'string', description: word('which', 'schema') } }] },
    effects: [{ tool: word('mail:send', 'tool'), added: true, effect: 'writes', approval: 'hil' }, { tool: word('fs:stat', 'tool'), added: false }],
  };
}

function makeGraph(word, none) {
  const node = (id, kind, label, x, y, more = {}) => ({ id: word(id, 'tool'), kind, label: word(label, 'tool'), community: 'fs', x, y, degree: 3, importance: 0.5, ...more });
  const nodes = none([node('fs:read', 'tool', 'fs:read', 100, 100, { importance: 1 }), node('csv:parse', 'tool', 'csv:parse', 200, 100), node('cap_1', 'capability', 'csv_to_json', 150, 180), node('json:parse', 'tool', 'json:parse', 220, 180)]);
  const edge = (from, to, kind) => ({ from: nodes[from].id, to: nodes[to].id, kind, weight: 1, edges: 1 });
  return {
    communities: none([{ id: 'fs', label: word('fs', 'community'), size: nodes.length, expanded: true, x: 160, y: 140, radius: 120 }]), nodes,
    edges: nodes.length ? [edge(0, 1, 'dependency'), edge(0, 3, 'provides'), edge(2, 0, 'contains'), edge(1, 3, 'sequence')] : [], total: nodes.length, omittedEdges: 0, width: 320, height: 280,
  };
}
