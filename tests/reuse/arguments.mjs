// The same tasks as a model writes them that gives values as `context`: programs read them from `args`.

const mark = (key) => `⟦${key}⟧`;
const MARKED = /⟦(\w+)⟧/;
const STRING = /"((?:[^"\\]|\\.)*)"/g;

/**
 * The task with its values in `args`, each under its own name. Nothing where there are none in the program's text, or where
 * they stand in a regular expression or are written out one by one.
 */
export function withArguments(task) {
  if (task.args || task.given) return undefined;
  const values = task.first[1];
  const keys = Object.keys(values);
  if (keys.some((key) => typeof values[key] === 'object')) return undefined;
  const marked = task.code(Object.fromEntries(keys.map((key) => [key, mark(key)])));
  if (/\/\^[^\n]*⟦/.test(marked)) return undefined;
  const code = outsideStrings(marked.replace(STRING, (literal, text) => (MARKED.test(text) ? inString(text, values) : literal)));
  return { ...task, args: Object.fromEntries(keys.map((key) => [key, key])), code: () => code };
}

/** A string literal as an expression: what stands around the values stays text. */
function inString(text, values) {
  const parts = text
    .split(/(⟦\w+⟧)/)
    .filter(Boolean)
    .map((part) => (MARKED.test(part) ? `args.${part.match(MARKED)[1]}` : `"${part}"`));
  if (parts.length > 1) return `(${parts.join(' + ')})`;
  const [, key] = text.match(MARKED);
  return typeof values[key] === 'number' ? `String(args.${key})` : `args.${key}`;
}

/** Values outside of strings: in template literals, as members and as numbers. */
function outsideStrings(code) {
  return code
    .split('`')
    .map((part, i) => (i % 2 ? part.replace(/⟦(\w+)⟧/g, '${args.$1}') : part))
    .join('`')
    .replace(/\.⟦(\w+)⟧/g, '[args.$1]')
    .replace(/⟦(\w+)⟧/g, 'args.$1');
}
