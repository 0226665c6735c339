// Text of others as elements: names, intents, errors, code. Everything that PML did not write goes through here.

import { html } from '../html.js';
import { pieces } from '../text.js';

/** `text` with hidden, control and bidirectional characters written out. `breaks="plain"` keeps line breaks. */
export function Text({ text, breaks = 'none' }) {
  const whole = text === null || text === undefined ? '' : String(text);
  return [...pieces(whole, breaks)].map((piece) =>
    typeof piece === 'string' ? piece : html`<span class=${piece.common ? 'escape common' : 'escape'}>${piece.escape}</span>`);
}

/** The same for what holds text and no elements: titles, labels. */
export function plain(text) {
  return [...pieces(String(text ?? ''))].map((piece) => (typeof piece === 'string' ? piece : piece.escape)).join('');
}

/** A sentence of PML about others, with code between backticks. */
export function Sentence({ text }) {
  const parts = String(text ?? '').split('`');
  if (parts.length % 2 === 0) return html`<${Text} text=${text} />`;
  return parts.map((part, index) => (index % 2 ? html`<code><${Text} text=${part} /></code>` : html`<${Text} text=${part} />`));
}

/** A name in code, isolated from the direction of the text around it. */
export function Code({ text, title }) {
  return html`<code class="name" title=${title && plain(title)}><${Text} text=${text} /></code>`;
}

/** The message of an error and its hint. */
export function Problem({ error, retry }) {
  if (!error) return null;
  return html`<div class="problem" role="alert">
    <p><${Sentence} text=${error.message} />${error.hint && html`<br /><span class="hint"><${Sentence} text=${error.hint} /></span>`}</p>
    ${retry && html`<button type="button" onClick=${retry}>Try again</button>`}
  </div>`;
}
