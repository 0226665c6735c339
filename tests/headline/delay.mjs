// A server whose calls take longer: starts it, and holds back the answer to each `tools/call`.
//
//   node delay.mjs MS SCRIPT [ARGUMENT …]

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const [ms, ...command] = process.argv.slice(2);
const server = spawn(process.execPath, command, { stdio: ['pipe', 'pipe', 'inherit'] });
const calls = new Set();

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { id, method } = JSON.parse(line);
    if (method === 'tools/call') calls.add(id);
    server.stdin.write(`${line}\n`);
  })
  .on('close', () => server.stdin.end());

createInterface({ input: server.stdout }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  const held = method === undefined && calls.delete(id);
  setTimeout(() => process.stdout.write(`${line}\n`), held ? Number(ms) : 0);
});

server.on('exit', (code) => process.exit(code ?? 1));
