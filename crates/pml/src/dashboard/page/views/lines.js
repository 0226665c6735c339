// Lines through given points with rounded corners. Pure, so that Node tests it.

const RADIUS = 8;

/** The `d` of a path through `points` ([x, y] each). */
export function linePath(points) {
  if (points.length < 2) return '';
  const parts = [`M${points[0].join(' ')}`];
  for (let index = 1; index + 1 < points.length; index += 1) {
    const [before, at, after] = [points[index - 1], points[index], points[index + 1]];
    const into = toward(at, before);
    const out = toward(at, after);
    parts.push(`L${into.join(' ')}`, `Q${at.join(' ')} ${out.join(' ')}`);
  }
  parts.push(`L${points.at(-1).join(' ')}`);
  return parts.join('');
}

/** The point on the way from `at` to `other`, at most the radius and half of the way off. */
function toward(at, other) {
  const [dx, dy] = [other[0] - at[0], other[1] - at[1]];
  const length = Math.hypot(dx, dy);
  if (length === 0) return at;
  const part = Math.min(RADIUS, length / 2) / length;
  return [round(at[0] + dx * part), round(at[1] + dy * part)];
}

function round(value) {
  return Math.round(value * 10) / 10;
}
