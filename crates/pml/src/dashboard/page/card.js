// What a card shows of a question. Building one changes nothing and sends nothing.

import { bytes, el, json, said, sentence, size } from './text.js';

/** Larger values are shown when a person opens them, and until then the card cannot be approved. */
const LARGE_BYTES = 64 * 1024;

const SCOPES = {
  minimal: 'computes only',
  readonly: 'reads',
  filesystem: 'writes files',
  'network-api': 'reaches a network',
  'mcp-standard': 'may write files and reach a network',
};

/** The body of a card: an element, and how many values in it have yet to be opened. */
export function body(workflowId, question) {
  const root = el('div', { class: 'body' });
  if (question.type === 'approval') approval(root, question);
  else if (question.type === 'in_doubt') doubts(root, workflowId, question);
  else if (question.type === 'sign_in') signIn(root, question);
  else if (question.type === 'layer') layer(root, question);
  else if (question.type === 'held_back') heldBack(root, question);
  return root;
}

/** What is asked, in a few words, for a question on the question. */
export function summary(question) {
  const tools = [...new Set(question.calls.map((call) => call.tool))];
  const calls = question.calls.length === 1 ? '1 call' : `${question.calls.length} calls`;
  return `${calls}: ${tools.join(', ')}`;
}

function approval(root, question) {
  const when = question.begun ? 'The run has begun and waits at this point.' : 'Nothing has run yet.';
  root.append(el('p', { class: 'when' }, when));
  for (const call of question.calls) root.append(asked(call));
  if (question.opaque?.length) {
    const list = el('ul', {}, ...question.opaque.map((place) => sentence('li', place)));
    root.append(
      el('section', { class: 'call' }, el('h3', {}, 'Calls that cannot be known before'),
        el('p', {}, 'The program may call further tools from these places. You are asked when it does.'), list),
    );
  }
}

function asked(call) {
  const node = el('section', { class: 'call' }, title(call.tool, call.scope));
  node.append(el('p', { class: 'because' }, 'You are asked because ', sentence('span', call.because), '.'));
  if (call.repeats) node.append(el('p', { class: 'because' }, 'It stands in a loop and may be made any number of times.'));
  if (call.differs?.length) {
    node.append(
      el('div', { class: 'differs' }, el('h4', {}, 'Different from the last time you allowed it'),
        el('ul', {}, ...call.differs.map((difference) => sentence('li', difference)))),
    );
  }
  const shown = call.arguments.type !== 'known' && call.code?.includes(call.arguments.source);
  node.append(...args(call.arguments, shown));
  if (call.origins?.length) node.append(el('ul', { class: 'origins' }, ...call.origins.map(origin)));
  node.append(...place(call));
  if (call.description) {
    node.append(
      el('details', { class: 'words' }, el('summary', {}, 'What the server says of this tool'),
        el('p', { class: 'fine' }, 'The words of the server. Nobody has checked them.'),
        said('blockquote', call.description, {}, 'plain')),
    );
  }
  return node;
}

function title(tool, scope) {
  const node = el('h3', {}, said('code', tool, { class: 'tool' }));
  if (scope) node.append(' ', said('span', SCOPES[scope] ?? scope, { class: 'scope', 'data-scope': Object.hasOwn(SCOPES, scope) ? scope : 'other' }));
  return node;
}

/** With `inCode` the code of the call, which follows, has the arguments as they are written: they are not shown twice. */
function args(given, inCode) {
  if (given.type === 'known') {
    return [el('h4', {}, 'Arguments'), box('Arguments', given.json, () => json(given.json))];
  }
  return [
    el('h4', {}, 'Arguments'),
    el('p', { class: 'later' }, `Not known before the call is made; then you are asked again, unless you allow any arguments. ${inCode ? 'This is how the program writes them:' : 'The program writes:'}`),
    ...(inCode ? [] : [box('Arguments as the program writes them', given.source, () => said('span', given.source, {}, 'plain'))]),
  ];
}

function place(call) {
  if (call.line === undefined && !call.code) return [];
  const where = [call.line === undefined ? 'In the program' : `Line ${call.line} of the program`];
  if (call.node) where.push(call.node);
  const heading = said('h4', where.join(' · '));
  return call.code ? [heading, box('Code', call.code, () => said('span', call.code, {}, 'plain'))] : [heading];
}

function origin({ part, from, node, characters }) {
  const count = characters === undefined ? ' comes from ' : ` contains ${characters} character${characters === 1 ? '' : 's'} from `;
  const item = el('li', {}, said('code', part), count, said('code', from));
  if (node) item.append(' (', said('span', node), ')');
  return item;
}

/** A value in full: it scrolls inside its box, and a very large one has to be opened. */
function box(label, text, render) {
  const length = bytes(text);
  const pre = el('pre', { class: 'value', tabindex: '0', role: 'region', 'aria-label': label });
  if (length <= LARGE_BYTES) {
    pre.append(render());
    return noted(pre, length);
  }
  const open = el('button', { type: 'button' }, `Open all ${size(length)}`);
  const holder = el('div', { class: 'large', 'data-unopened': true },
    el('p', {}, `This value has ${size(length)}. It can be approved after you have opened it.`), open);
  open.addEventListener('click', () => {
    pre.append(render());
    holder.replaceWith(noted(pre, length));
    pre.focus();
    pre.dispatchEvent(new CustomEvent('opened', { bubbles: true }));
  });
  return holder;
}

function noted(pre, length) {
  const note = el('p', { class: 'more', hidden: true }, `${size(length)} in all: scroll to see the rest`);
  new ResizeObserver(() => {
    note.hidden = pre.scrollHeight <= pre.clientHeight + 1;
  }).observe(pre);
  return el('div', {}, pre, note);
}

function doubts(root, workflowId, question) {
  root.append(
    el('p', { class: 'when' }, 'PML was interrupted after these calls were sent, and nobody knows whether they took effect. Find out, then say for each what became of it.'),
  );
  for (const call of question.calls) {
    const name = `call-${workflowId}-${call.call}`;
    const choice = (value, text) =>
      el('label', { class: 'choice' }, el('input', { type: 'radio', name, value, 'data-call': call.call }), text);
    root.append(
      el('section', { class: 'call' }, title(call.tool),
        el('p', { class: 'fine' }, `Call ${call.call}, sent ${new Date(call.sentAt).toLocaleString()}`),
        el('h4', {}, 'Arguments'), box('Arguments', call.arguments, () => json(call.arguments)),
        el('div', { class: 'choices' },
          choice('again', 'It had no effect: send it again'), choice('failed', 'Tell the program that it failed'))),
    );
  }
  const command = question.calls.map((call) => `--call ${call.call}=JSON`).join(' ');
  root.append(
    el('p', { class: 'fine' }, 'If a call was done and you know its result, say so in a terminal:'),
    said('pre', `pml runs resume ${workflowId} ${command}`, { class: 'value' }),
  );
}

function signIn(root, question) {
  root.append(el('p', { class: 'when' }, 'These calls were not sent. They are sent when somebody has signed in, and the run goes on by itself.'));
  for (const server of [...new Set(question.calls.map((call) => call.server))]) {
    const calls = question.calls.filter((call) => call.server === server);
    root.append(
      el('section', { class: 'call' }, title(server), sentence('p', calls[0].because, { class: 'because' }),
        el('p', { class: 'fine' }, 'Sign in at a terminal of the machine that PML runs on:'),
        said('pre', `pml login ${server}`, { class: 'value' }),
        el('ul', { class: 'origins' }, ...calls.map((call) => el('li', {}, `Call ${call.call} of `, said('code', call.tool))))),
    );
  }
}

function heldBack(root, { why, difference }) {
  root.append(
    sentence('p', `Nobody finds or calls this tool: ${why}. Accept it if it still does what you want it to do.`, { class: 'when' }),
    el('h4', {}, 'What you would accept'),
    box('What you would accept', difference, () => el('span', {}, ...difference.split('\n').map(changed))),
    el('p', { class: 'fine' }, 'The words of the server. Nobody has checked them.'),
  );
}

function changed(line) {
  const style = { '+': 'added', '-': 'removed' }[line[0]];
  return el('span', { class: style }, said('span', line), '\n');
}

function layer(root, question) {
  root.append(el('p', { class: 'when' }, `Layer ${question.layerIndex + 1} of ${question.totalLayers} has run.`));
  for (const result of question.results) {
    const took = result.executionTimeMs === undefined ? '' : ` · ${result.executionTimeMs} ms`;
    const node = el('section', { class: 'call' },
      el('h3', {}, said('code', result.taskId, { class: 'tool' }), ' ', said('span', `${result.status}${took}`, { class: 'scope' })));
    if (result.resultPreview) {
      const shown = bytes(result.resultPreview);
      node.append(box('Result', result.resultPreview, () => said('span', result.resultPreview, {}, 'plain')));
      if (result.resultSize > shown) {
        node.append(el('p', { class: 'fine' }, `The beginning; the whole result has ${size(result.resultSize)}.`));
      }
    }
    root.append(node);
  }
  const next = question.next.length ? question.next.map((task) => said('li', task)) : [el('li', {}, 'nothing')];
  root.append(el('h4', {}, 'Next'), el('ul', {}, ...next));
}
