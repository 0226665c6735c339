// Files for the tasks: always the same, about as large as such files are.

const WORDS =
  'the review of our release plan showed that most customers wait for better reports before they renew their contract and the team agreed to move integration work into a later sprint while support keeps answering open questions about billing access rights and slow exports'.split(
    ' ',
  );

/** Numbers from 0 up to 1, always the same for a seed. */
export function random(seed) {
  let state = seed * 2654435761 + 12345;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** `count` words in lines of twelve. */
export function prose(seed, count) {
  const next = random(seed);
  const words = Array.from({ length: count }, () => WORDS[Math.floor(next() * WORDS.length)]);
  const lines = [];
  while (words.length) lines.push(words.splice(0, 12).join(' '));
  return `${lines.join('\n')}\n`;
}

/** CSV text of rows that are objects. */
export function csv(rows) {
  return `${[Object.keys(rows[0]), ...rows.map(Object.values)].map((row) => row.join(',')).join('\n')}\n`;
}

/** The rows of such CSV text. */
export function rows(text) {
  const [heading, ...lines] = text
    .trim()
    .split('\n')
    .map((line) => line.split(','));
  return lines.map((cells) => Object.fromEntries(heading.map((name, i) => [name, cells[i]])));
}

/** `count` sales with an amount in cents precision. */
export function sales(seed, count) {
  const next = random(seed);
  const products = ['desk', 'chair', 'lamp', 'shelf', 'monitor'];
  return csv(
    Array.from({ length: count }, (_, i) => ({
      id: 1000 * seed + i,
      product: products[Math.floor(next() * products.length)],
      quantity: 1 + Math.floor(next() * 9),
      amount: (10 + next() * 490).toFixed(2),
    })),
  );
}

/** An object of what `make` gives for each of `names`. */
export function each(names, make) {
  return Object.fromEntries(names.map((name, i) => [name, make(i, name)]));
}

/** A sum in cents precision. */
export function total(values) {
  return Math.round(values.reduce((sum, value) => sum + Number(value), 0) * 100) / 100;
}
