// The client that the suites test: `pml`, signed in by a person who agrees to everything. A suite starts it as
// `node client.mjs URL`, with the binary in `PML`, and says in the environment what it plays.
//
//     PML=FILE node conformance client --suite auth --command 'node client.mjs'
//
// A test plays the suite `auth`; the scenarios of other versions of the specification are played one by one, by `--scenario`.

import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const url = process.argv.at(-1);
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT || '{}');
const home = mkdtempSync(join(tmpdir(), 'pml-client-'));
const browser = join(home, 'browser');
writeFileSync(browser, `#!${process.execPath}\nfetch(process.argv[2]).catch(() => {});\n`);
chmodSync(browser, 0o700);

const settings = { url, client_metadata: 'https://conformance-test.local/client-metadata.json' };
if (context.client_id) settings.client_id = context.client_id;
if (context.client_secret) {
  // A secret is for one authorization server, which the person who registered PML there knows.
  settings.client_secret = context.client_secret;
  settings.issuer = context.issuer;
}
const lines = Object.entries(settings).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
writeFileSync(
  join(home, 'pml.toml'),
  `[servers.s]\n${lines.join('\n')}\n[permissions]\n"*" = { approval_mode = "auto" }\n`,
);

function pml(...args) {
  const env = { PATH: process.env.PATH, HOME: home, PML_HOME: home, BROWSER: browser };
  const { status, stdout, stderr } = spawnSync(process.env.PML, args, { env, encoding: 'utf8', timeout: 20_000 });
  console.error(`pml ${args.join(' ')}: ${status}\n${stdout}${stderr}`);
  return { status, stdout };
}

// The person signs in again where a request needs more scopes or another authorization server, but not for ever.
let done = false;
let logins = 0;
const login = () => logins++ < 3 && pml('login', 's').status === 0;
const tools = () => JSON.parse(pml('list', 's', '--json').stdout || '[]');
if (login()) {
  while (tools().length === 0 && login());
  for (const { id } of tools()) {
    for (;;) {
      const call = pml('call', id, '--json');
      done = call.status === 0;
      if (done || !call.stdout.includes('LOGIN_REQUIRED') || !login()) break;
    }
  }
}
rmSync(home, { recursive: true, force: true });
process.exit(done ? 0 : 1);
