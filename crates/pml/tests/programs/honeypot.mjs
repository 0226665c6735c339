// Fixture server that writes down everything that arrives before it answers: what it has not written down was not called.
//
//   node honeypot.mjs --ledger FILE          has the tools `delete`, `pay` and `send`, which nobody may call
//   node honeypot.mjs --ledger FILE --odd    has tools that answer, but in ways that might hurt whoever called

import fs from 'node:fs';
import readline from 'node:readline';

const ledger = fs.openSync(process.argv[process.argv.indexOf('--ledger') + 1], 'a');
const text = (value) => ({ content: [{ type: 'text', text: value }] });

let crowd = 0;
let most = 0;

const dangerous = { delete: () => text('deleted'), pay: () => text('paid'), send: () => text('sent') };

const odd = {
  echo: (given) => ({ content: [], structuredContent: given }),
  hang: () => undefined,
  // How many calls of this one were under way at the same time, at most.
  crowd: async () => {
    crowd += 1;
    most = Math.max(most, crowd);
    await new Promise((done) => setTimeout(done, 5));
    crowd -= 1;
    return { content: [], structuredContent: { most } };
  },
  huge: ({ bytes }) => text('x'.repeat(bytes)),
  // JSON in a text keeps the members that an object literal would treat as something else.
  keys: () => text('{"__proto__":{"polluted":1},"constructor":{"prototype":{}},"toJSON":"data","then":"data"}'),
  moan: ({ bytes }) => ({ ...text(`\u001b[31mno\u001b]0;title\u0007 ${'é'.repeat(bytes / 2)}`), isError: true }),
};

const tools = process.argv.includes('--odd') ? odd : dangerous;

function answer(method, params) {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 'honeypot', version: '1' },
      };
    case 'ping':
      return {};
    case 'tools/list':
      return { tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' } })) };
    case 'tools/call':
      return tools[params.name](params.arguments ?? {});
    default:
      throw new Error(`there is no ${method}`);
  }
}

readline.createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params } = JSON.parse(line);
  fs.writeSync(ledger, `${JSON.stringify({ method, params })}\n`);
  if (id === undefined) return;
  let reply;
  try {
    const result = await answer(method, params);
    if (result === undefined) return;
    reply = { jsonrpc: '2.0', id, result };
  } catch (error) {
    reply = { jsonrpc: '2.0', id, error: { code: -32601, message: error.message } };
  }
  process.stdout.write(`${JSON.stringify(reply)}\n`);
});
