// Keeps a list of runs up to date. Pure, so that Node tests it.

/**
 * The list `known` with what `fresh`, the newest page, says: changed runs are replaced, new ones are added, newest first.
 * With `whole` the page is all there is, so that what it does not have is gone.
 */
export function mergeRuns(known, fresh, whole) {
  if (whole) return fresh;
  const byId = new Map(known.map((run) => [run.id, run]));
  for (const run of fresh) byId.set(run.id, run);
  return [...byId.values()].sort((one, other) => other.startedAt - one.startedAt || (one.id < other.id ? 1 : -1));
}
