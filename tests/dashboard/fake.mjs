// A gateway that is not there: serves the files of the dashboard with the headers of the real one and answers the API
// from made-up data. For what a real gateway cannot show at will: 20,000 calls, any text in any field, a gateway that goes
// away. `const fake = await startFake({ word, calls })`, then `fake.url`, `fake.emit(name, data)`, `fake.stop()`.
//
// `word(text, field)` stands wherever somebody else than PML writes something.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { dirname, extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { viewRoutes } from './fake-views.mjs';

const PAGE = join(dirname(fileURLToPath(import.meta.url)), '../../crates/pml/src/dashboard/page');
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.svg': 'image/svg+xml', '.txt': 'text/plain' };
export const PASSPHRASE = 'correct horse battery';
const HOUR = 3_600_000;

export async function startFake({ word = (text) => text, calls = 40, role = 'person', principal = 'local', empty = false, now = Date.now(), port = 0 } = {}) {
  const state = { role, principal, revoked: new Set(), streams: new Set(), requests: [], answered: new Set(), runs: empty ? [] : makeRuns(word, calls, now), expire: false, eventId: 0 };
  const routes = api({ word, calls, now, state, empty });
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, 'http://x');
    response.setHeader('content-security-policy', CSP);
    response.setHeader('x-content-type-options', 'nosniff');
    const body = await readBody(request);
    state.requests.push({ method: request.method, path: url.pathname, search: url.search, body });
    try {
      if (url.pathname.startsWith('/assets/')) return await file(response, url.pathname.slice('/assets/'.length));
      if (url.pathname === '/events') return stream(state, request, response);
      if (url.pathname === '/login') return login(state, body, response);
      if (url.pathname === '/logout') {
        state.role = 'viewer';
        response.writeHead(204).end();
        return undefined;
      }
      if (url.pathname === '/health') return json(response, 200, { status: 'ok' });
      if (!url.pathname.startsWith('/api/')) return await file(response, 'index.html');
      const [status, reply] = answer(routes, state, request.method, url, body);
      return json(response, status, { schemaVersion: 1, ...reply });
    } catch (error) {
      return json(response, 500, { schemaVersion: 1, error: { code: 'FAKE', message: String(error.stack) } });
    }
  });
  await new Promise((ready) => server.listen(port, '127.0.0.1', ready));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    port: server.address().port,
    state,
    /** What it answers, as `GET runs/*`. */
    routes: routes.map(([method, pattern]) => `${method} ${pattern}`),
    emit(name, data) {
      state.eventId += 1;
      const text = `id: ${state.eventId}\nevent: ${name}\ndata: ${JSON.stringify({ at: Date.now(), ...data })}\n\n`;
      for (const open of state.streams) open.write(text);
    },
    async stop() {
      for (const open of state.streams) open.destroy();
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

/** What asks for the passphrase of a viewer. */
const READS = new Set(['POST /api/discover', 'POST /api/analyse']);

function answer(routes, state, method, url, body) {
  const person = method === 'GET' || READS.has(`${method} ${url.pathname}`);
  if (!person && (state.role !== 'person' || state.expire)) {
    return [401, { error: { code: 'SIGN_IN_REQUIRED', message: 'this needs your passphrase' } }];
  }
  const parts = url.pathname.split('/').slice(2).map(decodeURIComponent);
  for (const [wanted, pattern, handler] of routes) {
    const names = pattern.split('/');
    if (wanted !== method || names.length !== parts.length) continue;
    const given = [];
    if (!names.every((name, index) => (name === '*' ? given.push(parts[index]) : name === parts[index]))) continue;
    return handler(url.searchParams, body ? JSON.parse(body) : undefined, ...given);
  }
  return notFound();
}

function notFound() {
  return [404, { error: { code: 'NOT_FOUND', message: 'there is nothing of yours by this name' } }];
}

function api({ word, calls, now, state, empty }) {
  const none = (items) => (empty ? [] : items);
  const rows = makeCalls(word, calls, now);
  const servers = none(makeServers(word, now));
  const capabilities = none(makeCapabilities(word, now));
  const approvals = none(makeApprovals(word, now));
  return [
    ...viewRoutes({ word, now, state, capabilities, notFound, none }),
    ['GET', 'session', () => [200, { role: state.role, passphraseSet: true, version: '0.1.0', principal: state.principal }]],
    ['GET', 'runs', (query) => {
      const text = query.get('q')?.toLowerCase();
      const fits = state.runs.filter((run) => (!query.get('status') || run.status === query.get('status')) && (!text || run.intent.toLowerCase().includes(text) || run.id.includes(text)));
      // As of the real one, a cursor names the last run of a page, whatever has come since.
      const limit = Math.min(200, Number(query.get('limit') ?? 50));
      const from = query.get('cursor') ? fits.findIndex((run) => run.id === query.get('cursor')) + 1 : 0;
      const items = fits.slice(from, from + limit);
      return [200, { items, ...(from + limit < fits.length ? { nextCursor: items.at(-1).id } : {}) }];
    }],
    ['GET', 'runs/*', (_, __, id) => {
      const run = state.runs.find((known) => known.id === id);
      return run ? [200, { ...run, ...makeDetail(word, now, run) }] : notFound();
    }],
    ['GET', 'runs/*/calls', (query, _, id) => (state.runs.some((run) => run.id === id) ? page(rows.slice(0, id === 'run_big' ? state.issued ?? rows.length : 40), query, 500, 2000) : notFound())],
    ['GET', 'runs/*/calls/*', (_, __, id, number) => [200, {
      ...rows[Number(number) - 1],
      truncated: { arguments: false, result: false },
      arguments: { path: word('notes.md', 'argument'), [word('key', 'argument name')]: [1, 2.5, null, { deep: word('x', 'argument') }] },
      ...(Number(number) % 9 === 4 ? { error: { code: 'TOOL_ERROR', message: word('no such file', 'call error') } }
        : { result: Number(number) === 3 ? { big: Array.from({ length: 60_000 }, (_unused, index) => ({ index, text: 'a line of text' })) } : { text: word('hello\nworld', 'result') } }),
    }]],
    ['POST', 'runs/*/abort', (_, __, id) => {
      const run = state.runs.find((known) => known.id === id);
      if (!run) return notFound();
      Object.assign(run, { status: 'aborted', endedAt: Date.now() });
      return [200, run];
    }],
    ['GET', 'approvals', () => [200, { approvals: approvals.filter((item) => !state.answered.has(item.workflowId)) }]],
    ['POST', 'approvals/*/*', (_, __, run) => {
      state.answered.add(run);
      return [200, { status: 'ok' }];
    }],
    ['GET', 'quarantine', () => [200, { tools: none([{ tool: word('mail:send', 'tool'), definition: 'd1', why: word('its description changed', 'why'), difference: word('- Sends a mail.\n+ Sends a mail to everybody.', 'difference') }]).filter((tool) => !state.answered.has(tool.tool)) }]],
    ['POST', 'quarantine/*', (_, __, tool) => {
      state.answered.add(tool);
      return [200, { status: 'accepted' }];
    }],
    ['GET', 'capabilities', (query) => {
      const more = Array.from({ length: state.moreCapabilities ?? 0 }, (_, index) => ({ ...capabilities[1], id: `cap_more_${index}`, name: `more_${index}` }));
      const [from, limit] = [Number(query.get('offset') ?? 0), Number(query.get('limit') ?? 50)];
      return [200, { capabilities: [...capabilities, ...more].slice(from, from + limit).map(listed) }];
    }],
    ['GET', 'capabilities/*', (_, __, name) => {
      const found = capabilities.find((known) => known.name === name || known.id === name) ?? (state.moreCapabilities && { ...capabilities[1], id: `cap_${name}`, name });
      return found ? [200, { capability: found }] : notFound();
    }],
    ['POST', 'discover', (_, body) => [200, makeDiscovery(word, body.intent, empty)]],
    ['POST', 'dry-run', () => [200, { report: makeReport(word, now) }]],
    ['POST', 'explore', (_, body) => [200, { exploration: makeExploration(word, body.intent) }]],
    ['POST', 'execute', () => [200, { run: 'run_live', cached: false }]],
    ['GET', 'servers', () => [200, { items: servers.map(({ tools, ...server }) => ({ ...server, toolCount: tools.length })) }]],
    ['GET', 'servers/*', (_, __, name) => shown(servers.find((server) => server.name === name))],
    ['POST', 'servers/*/restart', (_, __, name) => shown(servers.find((server) => server.name === name))],
    ['POST', 'servers/*/accept', (_, __, name) => shown(servers.find((server) => server.name === name))],
    ['GET', 'policy/*', (_, __, tool) => [200, {
      tool, mode: 'hil', because: word('it changes things', 'reason'), attributes: ['approval_mode', 'read_only', 'scope'].map((name) => ({ name, value: word('no', 'attribute'), because: word('no rule says otherwise', 'reason'), place: word('pml.toml:12', 'place') })),
      rules: [{ rule: word('fs:* = hil', 'rule'), place: word('pml.toml:12', 'place') }], annotations: { said: {}, believed: false, because: word('the server is not trusted', 'reason') }, definition: 'd1',
    }]],
    ['GET', 'rules', () => [200, { items: none(makeRules(word, now)).map((rule) => (state.revoked.has(String(rule.id)) ? { ...rule, revokedAt: now } : rule)) }]],
    ['DELETE', 'rules/*', (_, __, id) => {
      state.revoked.add(id);
      const rule = makeRules(word, now).find((one) => String(one.id) === id);
      return rule ? [200, { ...rule, revokedAt: now }] : notFound();
    }],
    ['GET', 'speculation', () => [200, { tools: none([{ tool: word('fs:read', 'tool'), threshold: 0.7, hits: 40, misses: 3, wasted: 9, differing: 0, savedMs: 5200 }, { tool: 'cap_1', name: word('csv_to_json', 'capability name'), hits: 2, misses: 0, wasted: 6, differing: 1, savedMs: 90 }]) }]],
    ['GET', 'savings', (query) => [200, makeSavings(Number(query.get('days') ?? 30), now, empty)]],
  ];
}

/** A capability as lists have it. */
function listed({ parametersSchema: _, contains: __, cache: ___, learning: ____, ...item }) {
  return { owner: 'local', visibility: 'private', ...item };
}

/** A server with its tools. */
function shown(server) {
  return server ? [200, { ...server, toolCount: server.tools.length }] : notFound();
}

function page(items, query, usual, most) {
  const limit = Math.min(most, Number(query.get('limit') ?? usual));
  const from = Number(query.get('cursor') ?? 0);
  const next = from + limit < items.length ? { nextCursor: String(from + limit) } : {};
  return [200, { items: items.slice(from, from + limit), ...next }];
}

const TOOLS = ['fs:read', 'fs:list', 'fs:write', 'http:get', 'db:query', 'mail:send', 'json:parse'];
const INTENTS = ['Convert the CSV in data/ to JSON', 'Summarise open pull requests', 'Find files that changed this week', 'Send the weekly report to the team', 'Check the links in the documentation', 'Fetch the weather for Lyon', 'Rename the photos by date', 'Compare prices of three suppliers'];
const STATUSES = ['done', 'done', 'done', 'failed', 'done', 'running', 'done', 'waiting', 'done', 'cancelled', 'interrupted', 'done'];

function makeRuns(word, calls, now) {
  const runs = Array.from({ length: 130 }, (_, index) => {
    const status = STATUSES[index % STATUSES.length];
    const startedAt = now - index * index * 9000 - 40_000;
    const live = status === 'running' || status === 'waiting' || status === 'interrupted';
    return {
      id: index === 0 ? 'run_big' : index === 5 ? 'run_live' : `run_${((0x9e3779b1 * (index + 1)) >>> 0).toString(16).padStart(8, '0')}`,
      status, intent: word(INTENTS[index % INTENTS.length], 'intent'), kind: ['program', 'dag', 'capability'][index % 3],
      ...(index % 3 === 2 ? { capability: { id: 'cap_1', name: word('csv_to_json', 'capability name') } } : {}),
      startedAt, ...(live ? {} : { endedAt: startedAt + 1200 + index * 370 }), durationMs: 1200 + index * 370,
      calls: index === 0 ? calls : 3 + (index * 7) % 40, failedCalls: status === 'failed' ? 2 : 0, speculated: index % 4 === 1 ? 3 : 0,
      ...(status === 'waiting' ? { question: { id: 'q_1', kind: 'approval', summary: word('may it call `fs:write`? (1 in all)', 'question') } } : {}),
      ...(status === 'failed' ? { error: { code: 'TOOL_ERROR', message: word('`http:get` answers 503', 'error') } } : {}),
      session: word('claude-code', 'session'), client: word('claude-code 2.1', 'client'),
    };
  });
  Object.assign(runs[0], { startedAt: now - 40_000, endedAt: now, durationMs: 40_000 });
  return runs;
}

function makeCalls(word, count, now) {
  const start = now - 40_000;
  const step = Math.max(0.4, 38_000 / Math.max(60, count));
  return Array.from({ length: count }, (_, index) => {
    const call = index + 1;
    const frame = Math.floor(call / 25) + 1;
    const inside = call % 25 >= 2 && call % 25 <= 6;
    const failed = call % 31 === 4;
    return {
      call, nodeId: `n${call % 12}`, ...(inside ? { parent: { frame, nodeId: 'n3', capability: word('csv_to_json', 'capability name') } } : {}), tool: word(TOOLS[call % TOOLS.length], 'tool'),
      startedAt: Math.round(start + index * step), durationMs: 12 + ((call * 73) % 900), status: failed ? 'error' : 'ok',
      ...(failed ? { error: { code: 'TOOL_ERROR', message: word('no such file', 'call error') } } : {}), retries: call % 17 === 0 ? 2 : 0, speculated: call % 6 === 1, cached: call % 10 === 5, mocked: false,
      ...(call % 6 === 1 ? { savedMs: 120 } : {}), layer: Math.floor(index / 5), argumentBytes: 64 + call % 900, resultBytes: call === 3 ? 4_000_000 : 1200 + call % 5000,
    };
  });
}

function makeDetail(word, now, run) {
  const start = run.startedAt;
  return {
    source: word('// Converts every CSV file to JSON.\nconst { entries } = await mcp.fs.list({ path: "data" });\nfor (const entry of entries) {\n  if (!entry.path.endsWith(".csv")) continue;\n  const { content } = await mcp.fs.read({ path: entry.path });\n  const rows = await mcp.csv.parse({ text: content });\n  await mcp.fs.write({ path: entry.path.replace(".csv", ".json"), content: JSON.stringify(rows) });\n}\nreturn entries.length;', 'source'),
    language: 'ts', recordsKept: true, arguments: { preview: { folder: word('data', 'argument') }, bytes: 17, truncated: false }, tools: TOOLS.map((tool) => ({ id: word(tool, 'tool') })),
    structure: { nodes: [{ id: 'd1', condition: word('!entry.path.endsWith(".csv")', 'condition'), line: 4 }], edges: [] },
    decisions: [{ nodeId: 'd1', taken: word('true', 'decision'), times: 3 }],
    ...(run.error ? { failure: { ...run.error, hint: word('try again', 'hint'), line: 5 } } : {}), output: run.endedAt ? 'complete' : 'live', consoleCut: false,
    console: [{ atMs: start + 120, level: 'log', text: word('found 12 files', 'console') }, { atMs: start + 700, level: 'warn', text: word('orders.csv has an empty line', 'console') }],
    questions: [{ id: 'q_1', kind: 'approval', askedAt: start + 5000, answeredAt: start + 12_000, answer: word('approved', 'answer'), by: word('local', 'by'), reason: word('once', 'reason') }],
    ...(run.status === 'done' ? { result: { preview: { files: 12, text: word('ok', 'result') }, bytes: 22, truncated: false } } : {}),
    warnings: [word('`mail:send` is deprecated', 'warning')],
    spans: [{ from: start, to: start + 14_000 }, { from: start + 20_000, to: start + 40_000 }],
  };
}

function makeApprovals(word, now) {
  const question = {
    type: 'approval', intent: '', begun: true, opaque: [],
    calls: [{ tool: word('fs:write', 'tool'), scope: 'filesystem', because: word('nobody has said that it only reads', 'because'), description: word('Writes a file.', 'description'), node: 'n3', line: 7, code: word('await mcp.fs.write({ path, content });', 'code'), arguments: { type: 'known', json: JSON.stringify({ path: word('orders.json', 'argument'), content: word('[{"id":1,"customer":"Ada"}]', 'argument') }) }, origins: [], differs: [word('`path` was `notes.md`', 'differs')] }],
  };
  const doubt = { type: 'in_doubt', calls: [{ call: 3, tool: word('mail:send', 'tool'), arguments: JSON.stringify({ to: word('ada@example.org', 'argument') }), sentAt: now - HOUR }] };
  const layer = { type: 'layer', layerIndex: 0, totalLayers: 2, results: [{ taskId: word('t1', 'task'), status: word('success', 'status'), executionTimeMs: 40, resultPreview: word('{"links": 12}', 'result') }], next: [word('t2', 'task')] };
  return [
    { workflowId: 'run_ask', questionId: 'q_1', intent: word('Convert the CSV in data/ to JSON', 'intent'), session: word('claude-code', 'session'), askedAt: now - 90_000, expiresAt: now + 23 * HOUR, question },
    { workflowId: 'run_doubt', questionId: 'q_2', intent: word('Send the weekly report to the team', 'intent'), session: word('claude-code', 'session'), askedAt: now - HOUR, expiresAt: now + 20 * HOUR, question: doubt },
    { workflowId: 'run_layer', questionId: 'q_3', intent: word('Check the links in the documentation', 'intent'), session: word('claude-code', 'session'), askedAt: now - HOUR, expiresAt: now + 20 * HOUR, question: layer },
  ];
}

function makeRules(word, now) {
  const rule = (id, tool, more) => ({ id, tool: word(tool, 'tool'), definition: 'd1', createdAt: now - 50 * HOUR, expiresAt: now + 600 * HOUR, by: word('dashboard', 'by'), madeByPerson: true, uses: id, usedAt: now - HOUR, ...more });
  return [rule(3, 'fs:write', { codeHash: 'c1', arguments: 'a1' }), rule(2, 'mail:send', { codeHash: 'c1', expiresAt: now - HOUR }), rule(1, 'http:get', { uses: 0, usedAt: undefined, revokedAt: now - HOUR })];
}

function makeCapabilities(word, now) {
  const schema = {
    type: 'object', required: ['folder', 'count'],
    properties: {
      folder: { type: 'string', description: word('The folder with the files', 'schema'), default: 'data' }, count: { type: 'integer', minimum: 1, maximum: 50, default: 5 },
      format: { enum: ['json', 'yaml', word('toml', 'schema')] }, strict: { type: 'boolean', default: true }, columns: { type: 'array', items: { type: 'string' } },
    },
  };
  return ['csv_to_json', 'weekly_report', 'check_links'].map((name, index) => ({
    id: `cap_${index + 1}`, name: word(name, 'capability name'), description: word('Converts every CSV file of a folder to JSON', 'description'), parametersSchema: schema, state: 'active', createdAt: now, lastUsed: now,
    toolsUsed: [{ id: word('fs:read', 'tool') }], intents: [{ text: word('convert the files', 'intent'), count: 4, firstAt: now, lastAt: now }], usageCount: 12, successCount: 9, failureCount: 3, avgDurationMs: 356, origin: 'emergent', approved: true,
    ...(index === 2 ? { degradedBecause: word('its last five runs failed', 'degraded because') } : {}), contains: [{ id: 'cap_9', name: word('inner', 'capability name'), count: 2 }], cache: { entries: 2, bytes: 900 },
    learning: { paths: [{ path: ['n1', 'n2', 'd1'], count: 9, successRate: 0.64, avgDurationMs: 400 }], defaultRate: 0.5 },
  }));
}

function makeDiscovery(word, intent, empty) {
  if (empty) return { results: [], total: 0, notes: ['no tool is known: add a server with `pml add`'] };
  const result = (type, id, score, reasons) => ({ type, id: word(id, 'tool'), name: word(id.replace(':', '_'), 'tool'), description: word('Parses a text of comma-separated values into rows.', 'description'), score, reasons: reasons.map((reason) => word(reason, 'reason')), signature: word('csv.parse({ text: string, header?: boolean }): { rows: object[] }', 'signature'), successRate: 0.97, usageCount: 34 });
  return {
    results: [
      { ...result('capability', 'csv_to_json', 0.94, ['an intent that it served means the same', 'ran 12 times, 12 succeeded']), source: word('return 1', 'source') },
      result('tool', 'csv:parse', 0.81, ['the words `csv`, `json` are in its description']), result('tool', 'fs:read', 0.44, ['often called together with `csv:parse`']), result('tool', 'json:parse', 0.2, ['means something similar']),
    ],
    total: 4, suggestions: [{ type: 'next_tool', toolId: 'json:stringify', name: word('json:stringify', 'suggested name'), reason: word('often called after `csv:parse`', 'suggested reason'), confidence: 0.4 }], notes: [word('2 texts are not embedded yet', 'note')],
    suggestion: { rationale: word('these tools were used together', 'rationale'), warning: word('check the path', 'warning'), confidence: 0.62, dagStructure: { tasks: [{ id: 't1', tool: word('fs:read', 'tool'), arguments: { path: word('data/orders.csv', 'argument') } }, { id: 't2', tool: word('csv:parse', 'tool'), dependsOn: ['t1'], arguments: { text: '$t1.content' } }] }, missing: [{ task: word('t1', 'task'), name: word('path', 'missing') }], dependencyPaths: [], toolSchemas: {}, complete: false },
    wouldRun: { capability: { id: 'cap_1', name: word('csv_to_json', 'capability name') }, arguments: { folder: word('data', 'argument') }, ready: false, reasons: [word('`count` has no value', 'reason')] },
  };
}

function makeReport(word, now) {
  const call = (number, server, tool, origin, more = {}) => ({ call: number, server: word(server, 'server'), tool: word(tool, 'tool'), args: { path: word('inbox', 'argument') }, origin, timestamp: now + number * 40, durationMs: 30 + number * 7, nodeId: `n${number}`, line: number + 1, ...more });
  return {
    id: 'dry_1', status: 'success', mode: 'hybrid', seed: 1, result: { left: word('2', 'result') }, executionTimeMs: 212,
    capturedCalls: [
      call(1, 'fs', 'list', 'real', { response: { entries: [word('a.txt', 'result')] } }), call(2, 'fs', 'delete', 'overlay', { mockResponse: { ok: true } }),
      call(3, 'mail', 'send', 'schema', { mockResponse: { id: word('m1', 'result') }, unknownState: true }), call(4, 'http', 'get', 'real', { error: { code: 'TOOL_ERROR', message: word('503', 'error') } }),
    ],
    warnings: [{ message: word('the branch at line 3 depends on a made-up value of `mail:send`', 'warning'), line: 3, tool: 'mail:send' }],
    effects: [{ text: word('would delete `inbox/a.txt`', 'effect'), tool: 'fs:delete', calls: 1 }, { text: word('would send a mail', 'effect'), tool: 'mail:send', calls: 1, tainted: true }],
    branches: { covered: [{ decision: 'd1', condition: word('entry.size === 0', 'condition'), outcome: 'true', line: 3 }], uncovered: [{ decision: 'd1', condition: word('entry.size === 0', 'condition'), outcome: 'false', line: 3, reachedBy: word('`entry.size === 0` has to fail', 'reached by') }], runs: 2 },
    estimatedApiCalls: { fs: 2, mail: 1 }, estimatedCost: { amounts: [{ amount: 0.054, currency: 'USD' }], pricedCalls: 3, unpricedCalls: 1 },
    paths: [
      { because: [], decisions: [], status: 'success', effects: [word('would delete `inbox/a.txt`', 'effect')] },
      { because: [word('if `fs:list` returns no entries', 'because')], decisions: [], status: 'failed', effects: [] },
    ],
    console: [{ level: 'log', text: word('two files left', 'console') }],
  };
}

function makeExploration(word, intent) {
  const viable = (id, tools, confidence, mocked) => ({
    pathId: id, path: tools.map((tool) => word(tool, 'tool')), confidence, realExecutions: tools.length - mocked, mockedExecutions: mocked, result: { valid: word('true', 'result') },
    outputs: tools.map((tool, index) => ({ tool: word(tool, 'tool'), mocked: index >= tools.length - mocked, preview: word('{"rows":[{"id":1}]}', 'preview') })),
    effects: mocked ? [{ text: word('would create `orders.json`', 'effect'), tool: 'fs:write', calls: 1 }] : [], warnings: mocked ? [word('`fs:write` was made up', 'warning')] : [], history: tools.map((tool) => ({ tool: word(tool, 'tool'), calls: 12, failures: tool === 'http:get' ? 3 : 0 })), dagStructure: { tasks: [] },
  });
  return {
    explorationId: 'exp_1', intent: word(intent, 'intent'), pathsExplored: 4,
    viablePaths: [viable('dry_1', ['fs:search', 'fs:read', 'csv:parse', 'json:validate'], 0.82, 0), viable('dry_2', ['fs:read', 'csv:parse', 'fs:write'], 0.61, 1), { ...viable('dry_3', ['http:get', 'json:parse'], 0.3, 2), missing: [word('url', 'missing')] }],
    failedPaths: [{ path: [word('fs:read', 'tool'), word('xml:parse', 'tool')], failurePoint: word('xml:parse', 'tool'), code: 'TOOL_ERROR', error: word('not well formed', 'error'), outputs: [] }],
    warnings: [], trace: { exploratory: true, mockRatio: 0.2, taskResults: [] },
  };
}

function makeServers(word, now) {
  const tool = (id, verdict, more = {}) => ({ id: word(id, 'tool'), description: word('Reads a file and returns its text.', 'description'), policy: { verdict, reason: word('a rule of the configuration names it', 'reason') }, quarantined: false, calls: 120, failures: 2, ...more });
  const server = (name, state, transport, tools, more = {}) => ({ name: word(name, 'server'), state, transport, how: word('node server.mjs', 'how'), toolsKnown: tools.length > 0, tools, ...more });
  return [
    server('mail', 'ready', 'stdio', [tool('mail:send', 'hil', { quarantined: true }), tool('mail:search', 'auto')]),
    server('weather', 'down', 'stdio', [], { error: word('the process ended with exit code 1: cannot find module', 'error') }),
    server('crm', 'awaiting_acceptance', 'stdio', [], { pendingCommand: { launch: 'sha256:1', command: word('npx -y crm-server', 'command'), variables: [word('CRM_TOKEN', 'variable')] } }),
    server('fs', 'built_in', 'builtin', [tool('fs:read', 'auto'), tool('fs:list', 'auto'), tool('fs:write', 'hil'), tool('fs:delete', 'deny')], { how: word('Reads, searches and changes the files below one directory.', 'how') }),
  ];
}

function makeSavings(days, now, empty) {
  const series = Array.from({ length: empty ? 0 : days }, (_, index) => {
    const runs = Math.max(0, Math.round(12 + 9 * Math.sin(index / 3) + (index % 7 < 5 ? 8 : -8)));
    const day = (Math.floor(now / (24 * HOUR)) - days + 1 + index) * 24 * HOUR;
    return { day, runs, cacheHits: Math.round(runs / 4), speculatedHits: Math.round(runs / 3), savedMs: runs * 830, tokensSaved: runs * 2100 };
  }).filter((item) => item.runs > 0);
  const sum = (name) => series.reduce((total, item) => total + item[name], 0);
  return {
    days, tokens: { results: sum('tokensSaved'), resultBytes: sum('tokensSaved') * 4 }, timeMs: { cache: Math.round(sum('savedMs') * 0.6), speculation: Math.round(sum('savedMs') * 0.4) }, series,
    methods: { tokens: 'the bytes of results of calls that stayed in the program; 4 bytes are taken for one token', cacheMs: 'for each request that was answered from the cache, the average duration of its runs', speculationMs: 'for each call made before its program asked, the time from its start to that moment; measured' },
  };
}

async function file(response, name) {
  const path = normalize(join(PAGE, name));
  if (!path.startsWith(PAGE)) return json(response, 404, {});
  try {
    const body = await readFile(path);
    response.writeHead(200, { 'content-type': TYPES[extname(path)] ?? 'text/plain' }).end(body);
  } catch {
    json(response, 404, {});
  }
  return undefined;
}

function stream(state, request, response) {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  response.write(': hello\n\n');
  state.streams.add(response);
  request.on('close', () => state.streams.delete(response));
}

function login(state, body, response) {
  if (new URLSearchParams(body).get('passphrase') !== PASSPHRASE) return json(response, 401, { error: { code: 'UNAUTHORIZED', message: 'that is not the passphrase' } });
  state.role = 'person';
  state.principal = new URLSearchParams(body).get('name') || 'local';
  state.expire = false;
  return json(response, 200, { csrf: 'token' });
}

async function readBody(request) {
  let text = '';
  for await (const part of request) text += part;
  return text;
}

function json(response, status, body) {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' }).end(JSON.stringify({ schemaVersion: 1, ...body }));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const fake = await startFake({ port: Number(process.argv[2] ?? 7799), calls: Number(process.argv[3] ?? 2000) });
  console.log(fake.url);
}
