// The source of a capability in pieces: words of the language in their colours, and the places of nodes. Pure, so that
// Node tests it.

const WORDS = new Set(('as async await break case catch class const continue default delete do else extends false finally for from function '
  + 'if in instanceof interface let new null of return static super switch this throw true try type typeof undefined var void while yield').split(' '));

const TS = /(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|("(?:[^"\\\n]|\\[\s\S])*"?|'(?:[^'\\\n]|\\[\s\S])*'?|`(?:[^`\\]|\\[\s\S])*`?)|([A-Za-z_$][\w$]*)|(\d[\w.]*)/g;
const JSON_TEXT = /()("(?:[^"\\\n]|\\[\s\S])*"?)|(true|false|null)|(-?\d[\d.eE+-]*)/g;

/** The coloured parts of a text: `{ from, to, kind }`; what lies between them is plain. */
export function tokens(text, language) {
  const found = [];
  const pattern = language === 'json' ? JSON_TEXT : TS;
  for (const match of text.matchAll(pattern)) {
    const [whole, comment, string, word, number] = match;
    let kind = null;
    if (comment) kind = 'comment';
    else if (string) kind = language === 'json' && /^\s*:/.test(text.slice(match.index + whole.length, match.index + whole.length + 4)) ? 'key' : 'text';
    else if (word) kind = language === 'json' || WORDS.has(word) ? 'word' : null;
    else if (number) kind = 'number';
    if (kind) found.push({ from: match.index, to: match.index + whole.length, kind });
  }
  return found;
}

/**
 * The lines of a text, each a list of `{ text, kind, ids }`: `ids` are the nodes whose places hold this piece, the innermost
 * first. `sites` are `{ nodeId, from, to }` in UTF-16 units.
 */
export function lines(text, language, sites) {
  const parts = tokens(text, language);
  const places = sites.filter((site) => site.from < site.to && site.to <= text.length).sort((one, other) => one.from - other.from || other.to - one.to);
  const cuts = new Set([0, text.length]);
  for (const { from, to } of [...parts, ...places]) cuts.add(from).add(to);
  const edges = [...cuts].sort((one, other) => one - other);
  const result = [[]];
  let part = 0;
  let next = 0;
  let open = [];
  for (let index = 0; index + 1 < edges.length; index += 1) {
    const [from, to] = [edges[index], edges[index + 1]];
    while (part < parts.length && parts[part].to <= from) part += 1;
    open = open.filter((site) => site.to > from);
    while (next < places.length && places[next].from <= from) {
      open.push(places[next]);
      next += 1;
    }
    const kind = parts[part] && parts[part].from <= from ? parts[part].kind : null;
    const ids = [...open].sort((one, other) => (one.to - one.from) - (other.to - other.from)).map((site) => site.nodeId);
    text.slice(from, to).split('\n').forEach((piece, line) => {
      if (line > 0) result.push([]);
      if (piece) result.at(-1).push({ text: piece, kind, ids });
    });
  }
  return result;
}
