// What goes through the model in a conversation, from the messages between its client and the servers.
//
// Clients hand a model the instructions of the servers and name, description and input schema of every tool; then there are
// the user's words; then, turn by turn, the call the model writes and the text it gets; and its answer at the end. `once`
// counts all of this once. `read` is what a model without a prompt cache is charged with: at each turn everything so far,
// and what it writes.

import { getEncoding } from 'js-tiktoken';
import { textOf } from './place.mjs';

const encoding = getEncoding('cl100k_base');
const known = new Map();

/** How many tokens a text is. */
export function tokens(text) {
  // The same lists come with every task.
  if (!known.has(text)) known.set(text, encoding.encode(text, [], []).length);
  return known.get(text);
}

/** Requests with their answers, in order. */
function exchanges(messages) {
  const pairs = [];
  const open = new Map();
  for (const { server, at, sent, received } of messages) {
    const id = `${server} ${(sent ?? received).id}`;
    if (sent?.method && sent.id !== undefined) {
      const pair = { server, request: sent, ms: 0 };
      open.set(id, { pair, at });
      pairs.push(pair);
    } else if (received && !received.method && open.has(id)) {
      const { pair, at: since } = open.get(id);
      Object.assign(pair, { answer: received.result ?? received.error, ms: at - since });
      open.delete(id);
    }
  }
  return pairs;
}

/** What the servers say of themselves and of their tools. A model that has the tools directly sees nothing of PML's. */
function preamble(pairs) {
  const direct = pairs.some(({ server }) => server !== 'pml');
  const instructions = pairs.flatMap(({ server, answer }) =>
    server === 'builtin' ? [] : (answer?.instructions ?? []),
  );
  const tools = pairs
    .filter(({ request }) => request.method === 'tools/list')
    .flatMap(({ server, answer }) => answer.tools.map((tool) => ({ ...tool, name: nameFor(server, tool.name) })))
    .filter(({ name }) => !direct || !name.startsWith('pml_'))
    .map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  return [...instructions, JSON.stringify(tools)].join('\n');
}

/** Clients put a server's name before those of its tools; PML has done so already. */
function nameFor(server, tool) {
  return server === 'pml' || server === 'builtin' ? tool : `${server}__${tool}`;
}

/** Tokens, turns and milliseconds of a conversation. */
export function measure(messages, intent, answer) {
  const pairs = exchanges(messages);
  const calls = pairs.filter(({ request }) => request.method === 'tools/call');
  let context = tokens(preamble(pairs)) + tokens(intent);
  let read = 0;
  const write = (text) => {
    context += tokens(text);
    read += context;
  };
  for (const { server, request, answer: result } of calls) {
    write(JSON.stringify({ name: nameFor(server, request.params.name), arguments: request.params.arguments }));
    context += tokens(result?.content ? textOf(result) : JSON.stringify(result ?? null));
  }
  write(JSON.stringify(answer ?? null));
  const timed = pairs.filter(({ request }) => request.method === 'tools/list' || request.method === 'tools/call');
  return { once: context, read, turns: calls.length + 1, ms: timed.reduce((sum, { ms }) => sum + ms, 0) };
}
