// A reverse proxy on the loopback address which adds `Authorization: Bearer $TOKEN` to each request, for the conformance
// suites, which cannot send a token. It passes on method, path, all headers, bodies and status unchanged, streams both
// ways, and closes the one side when the other side goes away. Its own address in Host and Origin becomes that of the
// server, which compares them with its own; any other passes as it came.
//
//   TOKEN=… node proxy.mjs --target http://127.0.0.1:3000 [--port N]      prints its own origin

import { createServer, request } from 'node:http';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { target: { type: 'string' }, port: { type: 'string' } } });
const token = process.env.TOKEN;
if (!token || !URL.canParse(values.target)) {
  console.error('set `TOKEN` and give the address of the server with `--target`');
  process.exit(2);
}
const target = new URL(values.target);

function forTarget(value, index, headers) {
  const name = index % 2 === 1 ? headers[index - 1].toLowerCase() : '';
  if (name !== 'host' && name !== 'origin') return value;
  return value.replace(/^(http:\/\/)?(127\.0\.0\.1|localhost):(\d+)$/, (all, scheme = '', host, port) =>
    Number(port) === server.address().port ? `${scheme}${host}:${target.port || 80}` : all);
}

const server = createServer((incoming, outgoing) => {
  const upstream = request({
    host: target.hostname.replace(/^\[|\]$/g, ''),
    port: target.port || 80,
    method: incoming.method,
    path: incoming.url,
    // The raw list keeps spelling, order and repetition of the headers.
    headers: [...incoming.rawHeaders.map(forTarget), 'Authorization', `Bearer ${token}`],
    agent: false,
  });
  upstream.on('response', (response) => {
    outgoing.writeHead(response.statusCode, response.statusMessage, response.rawHeaders);
    outgoing.flushHeaders();
    response.pipe(outgoing);
    response.on('error', () => outgoing.destroy());
  });
  upstream.on('error', () => {
    if (!outgoing.headersSent) outgoing.writeHead(502);
    outgoing.end();
  });
  outgoing.on('close', () => upstream.destroy());
  incoming.pipe(upstream);
});
server.listen(Number(values.port ?? 0), '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
