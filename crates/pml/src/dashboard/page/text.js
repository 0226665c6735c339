// Puts text that others wrote into the page: as text nodes, with every character that does not show, or that
// moves others about, written out. Nothing here ever reads markup.

// Controls, formats (bidi marks among them), private and unassigned ones, half surrogates, separators, what fonts
// leave out, blanks that look like a space, and marks piled up to cover their neighbours.
const HIDDEN =
  /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|[^\S ]|(?<=\p{M}{3})\p{M}/gu;
const SHORT = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function escaped(character) {
  const code = character.codePointAt(0);
  const hex = code.toString(16);
  return SHORT[character] ?? (code > 0xffff ? `\\u{${hex}}` : `\\u${hex.padStart(4, '0')}`);
}

/** An element with a class, attributes by name, and children that are nodes or texts of ours. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, '');
    else if (value !== false && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/**
 * The pieces of `text`: strings that can be shown as they are, and `{ escape, common }` for characters that are written
 * out. With `breaks` a line break is one: as it is for texts whose lines mean something ('plain'), or after the sign for
 * it ('marked').
 */
export function* pieces(text, breaks = 'none', indent = '') {
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    const plain = match[0] === '\n' && breaks === 'plain';
    if (plain) continue;
    if (match.index > from) yield text.slice(from, match.index);
    yield { escape: escaped(match[0]), common: match[0] in SHORT };
    from = match.index + match[0].length;
    if (match[0] === '\n' && breaks === 'marked' && from < text.length) yield `\n${indent}`;
  }
  if (from < text.length) yield text.slice(from);
}

/** Appends the pieces of `text` to `node`. */
export function fill(node, text, breaks = 'none', indent = '') {
  for (const piece of pieces(text, breaks, indent)) {
    if (typeof piece === 'string') node.append(piece);
    else node.append(el('span', { class: piece.common ? 'escape common' : 'escape' }, piece.escape));
  }
  return node;
}

/** The same for a sentence of ours about others, with code between backticks. */
export function sentence(tag, text, attributes = {}) {
  const node = el(tag, attributes);
  const parts = text.split('`');
  if (parts.length % 2 === 0) return fill(node, text);
  parts.forEach((part, index) => (index % 2 ? node.append(said('code', part)) : fill(node, part)));
  return node;
}

/** An element that holds `text` of others and nothing else. */
export function said(tag, text, attributes = {}, breaks = 'none') {
  return fill(el(tag, attributes), text ?? '', breaks);
}

/**
 * JSON laid out, in full. The text itself is read and not a value made from it: numbers keep all their digits and
 * a name that stands twice is there twice.
 */
export function json(text) {
  const out = el('span');
  let depth = 0;
  let before = '';
  const indent = () => '  '.repeat(depth);
  for (const token of tokens(text)) {
    const opens = token === '{' || token === '[';
    const closes = token === '}' || token === ']';
    if (closes) depth -= 1;
    if ((closes && before !== '{' && before !== '[') || (before !== '' && '{[,'.includes(before) && !closes)) {
      out.append(`\n${indent()}`);
    }
    if (token[0] === '"') out.append(string(token, `${indent()}  `));
    else fill(out, token);
    if (token === ':') out.append(' ');
    if (opens) depth += 1;
    before = token;
  }
  return out;
}

function string(token, indent) {
  let decoded;
  try {
    decoded = JSON.parse(token);
  } catch {
    return said('span', token, { class: 'string' });
  }
  const quoted = decoded.replace(/[\\"]/g, '\\$&');
  const span = el('span', { class: 'string' }, '"');
  fill(span, quoted, 'marked', indent);
  span.append('"');
  return span;
}

/** The tokens of JSON without the blanks between them; what is no JSON comes out piece by piece all the same. */
function* tokens(text) {
  let at = 0;
  while (at < text.length) {
    const first = text[at];
    let end = at + 1;
    if (first === '"') {
      while (end < text.length && text[end] !== '"') end += text[end] === '\\' ? 2 : 1;
      end += 1;
    } else if (!'{}[],: \n\r\t'.includes(first)) {
      while (end < text.length && !'{}[],:" \n\r\t'.includes(text[end])) end += 1;
    }
    if (!' \n\r\t'.includes(first)) yield text.slice(at, end);
    at = end;
  }
}

/** How long something takes or took, in words. */
export function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

export function bytes(text) {
  return new TextEncoder().encode(text).length;
}

export function size(count) {
  if (count < 1024) return `${count} bytes`;
  if (count < 1048576) return `${(count / 1024).toFixed(count < 10240 ? 1 : 0)} KiB`;
  return `${(count / 1048576).toFixed(1)} MiB`;
}
