// What the JavaScript clients share: the command line, the scenarios and the printing of the outcome.
//
//   node sdk1.mjs SCENARIO --stdio '["command","argument"]' | --url URL [--token T]
//        [--tool NAME] [--args JSON] [--answer JSON] [--timeout MS] [--limit MS]
//
// Prints one JSON object and exits with 0, or with 1 when the scenario could not be played to its end.
//
//   list          server info, protocol version and the names of all tools
//   call          calls --tool with --args: the result as it came
//   progress      the same, with the progress values received meanwhile
//   long          the same, where each request is given up after --limit ms (the SDK's own limit without it): waits for a run
//                 that the call became with pml_continue, and counts the requests
//   resume        the same, over HTTP, with the connection of the reply cut after some events: how often it was cut
//   cancel        as `call`, cancelled at the first progress notification: how the call ended
//   elicit        the same, with a client that accepts each elicitation with --answer: what it was asked
//   list-changed  waits for tools/list_changed, having called --tool when one is given: names before and after

import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    stdio: { type: 'string' },
    url: { type: 'string' },
    token: { type: 'string' },
    tool: { type: 'string' },
    args: { type: 'string', default: '{}' },
    answer: { type: 'string', default: '{}' },
    timeout: { type: 'string', default: '15000' },
    limit: { type: 'string' },
  },
});

const call = { name: values.tool, arguments: JSON.parse(values.args) };

/** Where to connect to: a child process or a URL. */
export const target = values.stdio
  ? stdioTarget(JSON.parse(values.stdio))
  : { url: new URL(values.url), headers: values.token ? { Authorization: `Bearer ${values.token}` } : {} };

function stdioTarget([command, ...args]) {
  return { stdio: { command, args, env: { ...process.env } } };
}

async function toolNames(client) {
  const names = [];
  let cursor;
  do {
    const page = await client.listTools(cursor);
    names.push(...page.tools.map((tool) => tool.name));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return names;
}

function describe(error) {
  const { name, code, message, data } = error;
  return { name, code, message, data };
}

const scenarios = {
  list: async (client) => ({ ...client.server(), tools: await toolNames(client) }),

  call: async (client) => ({ result: await client.callTool(call, {}) }),

  progress: async (client) => {
    const progress = [];
    const result = await client.callTool(call, { onprogress: (update) => progress.push(update.progress) });
    return { progress, result };
  },

  long: async (client) => {
    const progress = [];
    const options = { onprogress: (update) => progress.push(update.progress), ...(values.limit && { timeout: Number(values.limit) }) };
    let result = await client.callTool(call, options);
    let requests = 1;
    const workflow_id = result._meta?.['pml/workflowId'];
    const goesOn = () => [result._meta?.['pml/status'], result.structuredContent?.status].includes('running');
    for (; goesOn(); requests += 1) {
      result = await client.callTool({ name: 'pml_continue', arguments: { workflow_id } }, options);
    }
    return { progress, requests, result };
  },

  resume: async (client) => ({ ...(await scenarios.progress(client)), cut: client.cut() }),

  cancel: async (client) => {
    const cancelling = new AbortController();
    const progress = [];
    const onprogress = (update) => {
      progress.push(update.progress);
      cancelling.abort('cancelled by the test');
    };
    const ended = await client.callTool(call, { onprogress, signal: cancelling.signal }).then(
      (result) => ({ ended: 'result', result }),
      (error) => ({ ended: 'error', error: describe(error) }),
    );
    return { ...ended, cancelled: cancelling.signal.aborted, progress, usable: (await toolNames(client)).length > 0 };
  },

  elicit: async (client) => ({ result: await client.callTool(call, {}), asked: client.asked }),

  'list-changed': async (client) => {
    const before = await toolNames(client);
    const changed = client.toolsChanged;
    if (values.tool) await client.callTool(call, {});
    await changed;
    return { before, tools: await toolNames(client) };
  },
};

/** Prints the outcome and ends the process once it is written. */
function finish(outcome) {
  process.stdout.write(`${JSON.stringify(outcome)}\n`, () => process.exit(outcome.ok ? 0 : 1));
}

/**
 * Plays the scenario of the command line. `connect` gets the scenario's name and how to answer an elicitation, and
 * resolves with the client: `server`, `listTools`, `callTool`, `asked`, `toolsChanged` and `close`.
 */
export async function play(connect) {
  const [name] = positionals;
  const scenario = scenarios[name];
  if (!scenario) return finish({ ok: false, error: { message: `unknown scenario \`${name}\`` } });
  const limit = Number(values.timeout);
  setTimeout(() => finish({ ok: false, error: { message: `not done after ${limit} ms` } }), limit);
  try {
    const client = await connect(name, () => ({ action: 'accept', content: JSON.parse(values.answer) }));
    const { protocolVersion } = client.server();
    const outcome = await scenario(client);
    await client.close();
    finish({ ok: true, protocolVersion, ...outcome });
  } catch (error) {
    finish({ ok: false, error: describe(error) });
  }
}
