// Client made with the official SDK 1.x, which speaks the stateful era only. See scenarios.mjs for its use.

import { Client } from 'sdk1/client/index.js';
import { StdioClientTransport } from 'sdk1/client/stdio.js';
import { StreamableHTTPClientTransport } from 'sdk1/client/streamableHttp.js';
import { ElicitRequestSchema, ResultSchema, ToolListChangedNotificationSchema } from 'sdk1/types.js';
import { play, target } from './scenarios.mjs';

await play(async (scenario, answer) => {
  const eliciting = scenario === 'elicit';
  const client = new Client(
    { name: 'pml-test-sdk1', version: '1.0.0' },
    { capabilities: eliciting ? { elicitation: {} } : {} },
  );
  const asked = [];
  if (eliciting) client.setRequestHandler(ElicitRequestSchema, ({ params }) => (asked.push(params), answer()));
  const toolsChanged = new Promise((resolve) =>
    client.setNotificationHandler(ToolListChangedNotificationSchema, resolve),
  );
  const transport = target.stdio
    ? new StdioClientTransport(target.stdio)
    : new StreamableHTTPClientTransport(target.url, { requestInit: { headers: target.headers } });
  // The client does not keep what was agreed on, but tells it to its transport.
  let protocolVersion;
  const tell = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => ((protocolVersion = version), tell?.(version));
  await client.connect(transport);
  return {
    asked,
    toolsChanged,
    server: () => ({ serverInfo: client.getServerVersion(), protocolVersion }),
    listTools: (cursor) => client.listTools({ cursor }),
    // A bare request, since `callTool` would check and so change the result.
    callTool: (params, options) => client.request({ method: 'tools/call', params }, ResultSchema, options),
    close: async () => {
      if (!target.stdio) await transport.terminateSession();
      await client.close();
    },
  };
});
