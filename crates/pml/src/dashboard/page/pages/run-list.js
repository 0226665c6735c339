// Keeps a list of runs up to date, newest first. No DOM here, so that Node tests it.

/** Pages that are read for one refresh. A tab that was away for longer begins anew with them. */
export const MOST_PAGES = 10;
/** A run with one of these statuses works or waits, so that what is shown of it may change. */
export const LIVE = new Set(['running', 'waiting', 'interrupted']);

/**
 * The list `known` with a page that was read: `items`, in order, are the runs after the run `after`, or the newest ones. Those of the
 * stretch that the page does not have are gone, and with `end` all behind it. `first` is the run that should have been the first one.
 */
export function withStretch(known, { after, items, end, first }) {
  const places = new Map(known.map((run, index) => [run.id, index]));
  const from = after === undefined ? 0 : (places.get(after) ?? known.length - 1) + 1;
  let to = from;
  for (const run of items) to = Math.max(to, (places.get(run.id) ?? -1) + 1);
  if (end) to = known.length;
  const read = new Set([first, ...items.map((run) => run.id)]);
  const besides = (run) => !read.has(run.id);
  return [...known.slice(0, from).filter(besides), ...items, ...known.slice(to).filter(besides)];
}

/**
 * Reads what is new in the list `known`: the newest runs until they meet the known ones, and the older ones that go on and of which
 * `changed` says that they may have changed. `read(cursor)` gives the page after the run `cursor`. Gives `{ stretches, rest }`, where
 * `rest` are runs that were too many to read now; or `{ items, cursor }` where so much is new that the list begins anew.
 */
export async function readChanges(known, changed, read) {
  const stretches = [];
  const seen = new Set();
  const next = async (after, first) => {
    const page = await read(after);
    stretches.push({ after, items: page.items, end: page.nextCursor === undefined, first });
    for (const run of page.items) seen.add(run.id);
    return page;
  };
  let page = await next(undefined);
  while (page.nextCursor !== undefined && known.length > 0 && !known.some((run) => seen.has(run.id))) {
    if (stretches.length === MOST_PAGES) return { items: stretches.flatMap(({ items }) => items), cursor: page.nextCursor };
    page = await next(page.nextCursor);
  }
  const rest = [];
  if (page.nextCursor === undefined) return { stretches, rest };
  for (const [index, run] of known.entries()) {
    if (index === 0 || seen.has(run.id) || !LIVE.has(run.status) || !changed(run.id)) continue;
    if (stretches.length >= MOST_PAGES) rest.push(run.id);
    else await next(known[index - 1].id, run.id);
  }
  return { stretches, rest };
}

/** The list with a page that follows it. */
export function withMore(known, items) {
  const fresh = new Map(items.map((run) => [run.id, run]));
  const kept = known.map((run) => {
    const again = fresh.get(run.id) ?? run;
    fresh.delete(run.id);
    return again;
  });
  return [...kept, ...fresh.values()];
}
