#!/usr/bin/env node
// Runs the `pml` program of the package for this platform, with the same arguments, streams, signals and exit status.

import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';

const platform = `${process.platform}-${process.arch}`;
const name = `@procedural-memory-layer/pml-${platform}`;

function program() {
  try {
    return createRequire(import.meta.url).resolve(`${name}/pml${process.platform === 'win32' ? '.exe' : ''}`);
  } catch {
    console.error(`error: there is no pml for ${platform}: the package ${name} is not installed`);
    console.error('hint: install without `--omit=optional`, or build pml from source');
    process.exit(2);
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('error', (error) => {
  console.error(`error: pml cannot be started: ${error.message}`);
  process.exit(2);
});
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
