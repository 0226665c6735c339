// Client made with the official SDK 1.x, which speaks the stateful era only. See scenarios.mjs for its use.

import { Client } from 'sdk1/client/index.js';
import { StdioClientTransport } from 'sdk1/client/stdio.js';
import { StreamableHTTPClientTransport } from 'sdk1/client/streamableHttp.js';
import { ElicitRequestSchema, ResultSchema, ToolListChangedNotificationSchema } from 'sdk1/types.js';
import { play, target } from './scenarios.mjs';

let cut = 0;

/** Cuts the connection of an event stream in which a request is replied to, twice, after two of its messages each. */
async function unreliable(url, init) {
  const response = await fetch(url, init);
  const resuming = new Headers(init?.headers).has('last-event-id');
  const streams = response.headers.get('content-type') === 'text/event-stream';
  if (!streams || cut === 2 || (init?.method !== 'POST' && !resuming)) return response;
  let messages = 0;
  const body = response.body.pipeThrough(
    new TransformStream({
      transform(chunk, passed) {
        passed.enqueue(chunk);
        messages += new TextDecoder().decode(chunk).split('data: {').length - 1;
        if (messages < 2) return;
        cut += 1;
        passed.error(new Error('the connection was cut by the test'));
      },
    }),
  );
  return new Response(body, response);
}

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
    : new StreamableHTTPClientTransport(target.url, {
        requestInit: { headers: target.headers },
        fetch: scenario === 'resume' ? unreliable : undefined,
      });
  // The client does not keep what was agreed on, but tells it to its transport.
  let protocolVersion;
  const tell = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => ((protocolVersion = version), tell?.(version));
  await client.connect(transport);
  return {
    asked,
    toolsChanged,
    cut: () => cut,
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
