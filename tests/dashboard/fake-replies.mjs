// Prints what the made-up gateway of fake.mjs answers, one reply of every kind, as JSON: `[{ method, route, path, status, reply }]`.
// crates/pml/tests/dashboard/modules.rs compares the replies with the document of the real gateway.
import { startFake } from './fake.mjs';

/** For each route: what stands for `*` and after `?`, and what is sent. */
const REQUESTS = {
  'GET session': [[]],
  'GET runs': [[], [[], '?limit=3&status=failed'], [[], '?status=waiting'], [[], '?q=nothing-like-this']],
  'GET runs/*': [[['run_big']], [['run_live']], [['nothing']]],
  'GET runs/*/calls': [[['run_live']], [['run_big'], '?limit=5']],
  'GET runs/*/calls/*': [[['run_live', '1']], [['run_live', '4']]],
  'POST runs/*/abort': [[['run_live'], '', {}]],
  'GET approvals': [[]],
  'POST approvals/*/*': [[['run_ask', 'q_1'], '', { approved: true }]],
  'GET quarantine': [[]],
  'POST quarantine/*': [[['mail:send'], '', { definition: 'd1' }]],
  'GET capabilities': [[[], '?limit=50']],
  'GET capabilities/*': [[['cap_1']]],
  'GET capabilities/*/definition': [[['cap_1']]],
  'GET capabilities/*/versions': [[['cap_1']]],
  'GET capabilities/*/diff': [[['cap_1'], '?from=1&to=2']],
  'POST capabilities/*/rollback': [[['cap_1'], '', { version: 1 }]],
  'GET traces/*': [[['cap_1'], '?limit=7']],
  'GET trace/*/invocation': [[['trace_1']], [['trace_45']]],
  'GET graph/layout': [[]],
  'GET graph/node': [[[], '?id=fs:read']],
  'GET graph/search': [[[], '?q=read']],
  'GET graph/ways': [[[], '?from=fs:read&to=csv:parse']],
  'POST discover': [[[], '', { intent: 'convert' }], [[], '', { intent: 'nothing' }]],
  'POST dry-run': [[[], '', { capability: 'cap_1' }]],
  'POST explore': [[[], '', { intent: 'convert' }]],
  'POST execute': [[[], '', { capability: 'cap_1' }]],
  'GET servers': [[]],
  'GET servers/*': [[['mail']], [['weather']], [['crm']], [['fs']]],
  'POST servers/*/restart': [[['mail'], '', {}]],
  'POST servers/*/accept': [[['crm'], '', {}]],
  'GET policy/*': [[['fs:read']]],
  'GET rules': [[]],
  'DELETE rules/*': [[['1']]],
  'GET speculation': [[]],
  'GET savings': [[[], '?days=30']],
};

const replies = [];
for (const empty of [false, true]) {
  const fake = await startFake({ empty });
  for (const route of fake.routes) {
    for (const [names = [], query = '', body] of empty ? [] : REQUESTS[route] ?? []) replies.push(await ask(fake, route, names, query, body));
    if (empty && route.startsWith('GET') && !route.includes('*')) for (const [, query = ''] of REQUESTS[route] ?? []) replies.push(await ask(fake, route, [], query));
    if (!REQUESTS[route]) throw new Error(`nothing is asked of ${route}`);
  }
  await fake.stop();
}
console.log(JSON.stringify(replies));

async function ask(fake, route, names, query, body) {
  fake.state.role = 'person';
  const [method, pattern] = route.split(' ');
  const given = [...names];
  const path = `/api/${pattern.replaceAll('*', () => encodeURIComponent(given.shift()))}${query}`;
  const response = await fetch(fake.url + path, { method, headers: { 'content-type': 'application/json' }, body: body && JSON.stringify(body) });
  return { method, route: `/api/${pattern}`, path, status: response.status, reply: await response.json() };
}
