// What is said of how two versions of a capability differ. Pure, so that Node tests it.

/** Lines around a change that are shown with it. */
const AROUND = 3;

/** The two versions to compare for one of them, the earlier first: with the one in force, or the one in force with the one before. */
export function comparedWith(version, versions) {
  const current = versions.find((one) => one.current);
  const latest = versions.filter((one) => one !== version).reduce((best, one) => (best && best.version > one.version ? best : one), null);
  const earlier = versions.filter((one) => one.version < version.version).reduce((best, one) => (best && best.version > one.version ? best : one), null);
  const other = current && current !== version ? current : earlier ?? latest;
  return { from: Math.min(version.version, other.version), to: Math.max(version.version, other.version) };
}

/** The tools that `version` calls and the other version of a difference does not. */
export function addedTools(diff, version) {
  return (diff.effects ?? []).filter((effect) => effect.added === (version === diff.to)).map((effect) => effect.tool);
}

/** The lines of a difference, `{ side, text }`, with long stretches that are the same as one `{ side: 'skipped', count }`. */
export function codeLines(lines) {
  const near = new Set();
  lines.forEach((line, index) => {
    if (line.side === 'both') return;
    for (let at = index - AROUND; at <= index + AROUND; at += 1) near.add(at);
  });
  const shown = [];
  lines.forEach((line, index) => {
    const last = shown.at(-1);
    if (line.side !== 'both' || near.has(index)) shown.push(line);
    else if (last?.side === 'skipped') last.count += 1;
    else shown.push({ side: 'skipped', count: 1 });
  });
  return near.size === 0 ? lines : shown;
}
