// Client made with the official SDK 2.x, which asks for the stateless era and falls back to the stateful one. See
// scenarios.mjs for its use.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { play, target } from './scenarios.mjs';

await play(async (scenario, answer) => {
  const eliciting = scenario === 'elicit';
  let changed;
  const toolsChanged = new Promise((resolve) => (changed = resolve));
  const client = new Client(
    { name: 'pml-test-sdk2', version: '1.0.0' },
    {
      versionNegotiation: { mode: 'auto' },
      capabilities: eliciting ? { elicitation: { form: {} } } : {},
      ...(scenario === 'list-changed' && {
        listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: changed } },
      }),
    },
  );
  const asked = [];
  if (eliciting) client.setRequestHandler('elicitation/create', ({ params }) => (asked.push(params), answer()));
  const transport = target.stdio
    ? new StdioClientTransport(target.stdio)
    : new StreamableHTTPClientTransport(target.url, { requestInit: { headers: target.headers } });
  await client.connect(transport);
  return {
    asked,
    toolsChanged,
    server: () => ({
      serverInfo: client.getServerVersion(),
      protocolVersion: client.getNegotiatedProtocolVersion(),
      era: client.getProtocolEra(),
    }),
    listTools: (cursor) => client.listTools({ cursor }, { cacheMode: 'refresh' }),
    callTool: (params, options) => client.callTool(params, options),
    close: async () => {
      if (!target.stdio) await transport.terminateSession();
      await client.close();
    },
  };
});
