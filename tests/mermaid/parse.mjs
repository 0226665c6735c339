// Reads each file named on the command line as Mermaid does. Prints one JSON line for each and ends with 1 when
// one is no flowchart.
import { readFileSync } from 'node:fs';
import { JSDOM } from 'jsdom';

// Mermaid cleans labels with the parser of a browser.
const { window } = new JSDOM('');
globalThis.window = window;
globalThis.document = window.document;
const { default: mermaid } = await import('mermaid');

for (const file of process.argv.slice(2)) {
  try {
    const { diagramType } = await mermaid.parse(readFileSync(file, 'utf8'));
    const ok = diagramType.startsWith('flowchart');
    if (!ok) process.exitCode = 1;
    console.log(JSON.stringify({ file, ok, diagramType }));
  } catch (error) {
    process.exitCode = 1;
    console.log(JSON.stringify({ file, ok: false, error: error.message }));
  }
}
