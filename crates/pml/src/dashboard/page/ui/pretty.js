// Values as lines of text. Pure, so that Node tests it.

/** A line of more characters is broken: a browser is slow with lines of megabytes. */
const LONGEST_LINE = 400;

/** JSON laid out, or the text itself. A text that is JSON is laid out too. */
export function valueText(value) {
  if (value === undefined) return '';
  if (typeof value !== 'string') return JSON.stringify(value, null, 2);
  const first = value.trimStart()[0];
  if (first !== '{' && first !== '[') return value;
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}

/** The lines of a text; very long ones go on in the next. */
export function linesOf(text) {
  const lines = [];
  for (const line of text.split('\n')) {
    if (line.length <= LONGEST_LINE) {
      lines.push(line);
      continue;
    }
    for (let from = 0; from < line.length;) {
      let to = from + LONGEST_LINE;
      // A pair of surrogates is one character.
      if (/[\uD800-\uDBFF]/.test(line[to - 1] ?? '')) to += 1;
      lines.push(line.slice(from, to));
      from = to;
    }
  }
  return lines;
}

/** A value in one line, for rows and columns. */
export function oneLine(value, most = 160) {
  const text = typeof value === 'string' ? value : JSON.stringify(value) ?? '';
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
