// Where the bars of a chart stand. Pure, so that Node tests it.

/** A round number that is at least `most`, for the top of an axis. */
export function roundTop(most) {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  const step = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= most);
  return step * power;
}

/**
 * Bars for the values of `keys`, one above the other for each item: `{ bars: [{ index, key, x, y, width, height }], top }` in a
 * box of `width` by `height`.
 */
export function stackedBars({ items, keys, width, height }) {
  const top = roundTop(Math.max(0, ...items.map((item) => keys.reduce((sum, key) => sum + (item[key] ?? 0), 0))));
  const slot = width / Math.max(1, items.length);
  const bar = Math.max(1, Math.min(28, slot * 0.72));
  const bars = [];
  items.forEach((item, index) => {
    let base = height;
    for (const key of keys) {
      const tall = ((item[key] ?? 0) / top) * height;
      if (tall > 0) bars.push({ index, key, x: index * slot + (slot - bar) / 2, y: base - tall, width: bar, height: tall });
      base -= tall;
    }
  });
  return { bars, top };
}

/** All tools together: `made` calls ahead, the share that was `used`, and what was `wasted`. */
export function aheadTotals(tools) {
  const sum = (name) => tools.reduce((total, tool) => total + (tool[name] ?? 0), 0);
  const made = sum('hits') + sum('misses') + sum('wasted');
  return { made, used: made > 0 ? sum('hits') / made : 0, wasted: sum('wasted'), savedMs: sum('savedMs') };
}

const DAY_MS = 86_400_000;

/** Every day of the period up to `now`, oldest first: days on which nothing happened are not in the reply. Days begin in UTC. */
export function everyDay(series, days, now) {
  const known = new Map(series.map((item) => [Math.floor(item.day / DAY_MS), item]));
  const today = Math.floor(now / DAY_MS);
  return Array.from({ length: days }, (_, index) => {
    const day = today - days + 1 + index;
    return known.get(day) ?? { day: day * DAY_MS, runs: 0, cacheHits: 0, speculatedHits: 0, savedMs: 0, tokensSaved: 0 };
  });
}
