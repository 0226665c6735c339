// Which rows of a long list are in view. Pure, so that Node tests it.

/** Rows drawn before and after those in view, so that scrolling does not show blanks. */
const SPARE = 8;

/** `{ from, to }` of the rows to draw. */
export function windowOf({ top, height, rowHeight, count, spare = SPARE }) {
  const first = Math.floor(Math.max(0, top) / rowHeight);
  const last = Math.ceil((Math.max(0, top) + height) / rowHeight);
  const to = Math.min(count, last + spare);
  return { from: Math.max(0, Math.min(first - spare, to)), to };
}
