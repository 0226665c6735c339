// Which part of the map is seen, and what of it can be labelled. Pure, so that Node tests it.
//
// A camera is `{ x, y, scale }`: the point of the map in the middle of the view, and pixels for one unit of the map.

const SMALLEST = 0.02;
const LARGEST = 6;

/** The camera that shows a box `{ x, y, width, height }` of the map whole. */
export function fit(box, view, margin = 24) {
  const across = Math.max(1, view.width - margin * 2) / Math.max(1, box.width);
  const down = Math.max(1, view.height - margin * 2) / Math.max(1, box.height);
  return { x: box.x + box.width / 2, y: box.y + box.height / 2, scale: clamp(Math.min(across, down, 2)) };
}

/** A point of the map in pixels of the view. */
export function toView(camera, view, point) {
  return { x: (point.x - camera.x) * camera.scale + view.width / 2, y: (point.y - camera.y) * camera.scale + view.height / 2 };
}

/** A point of the view in units of the map. */
export function toMap(camera, view, point) {
  return { x: (point.x - view.width / 2) / camera.scale + camera.x, y: (point.y - view.height / 2) / camera.scale + camera.y };
}

/** Zooms by a factor; the point of the map below `at` (in the view) stays where it is. */
export function zoom(camera, view, factor, at = { x: view.width / 2, y: view.height / 2 }) {
  const scale = clamp(camera.scale * factor);
  const fixed = toMap(camera, view, at);
  return { scale, x: fixed.x - (at.x - view.width / 2) / scale, y: fixed.y - (at.y - view.height / 2) / scale };
}

/** Moves by pixels of the view. */
export function pan(camera, dx, dy) {
  return { ...camera, x: camera.x + dx / camera.scale, y: camera.y + dy / camera.scale };
}

function clamp(scale) {
  return Math.max(SMALLEST, Math.min(LARGEST, scale));
}

/**
 * The labels that do not cover each other: `candidates` are `{ x, y, width, height }` in pixels, the most important first. A label is
 * left out where an earlier one is.
 */
export function withoutOverlaps(candidates, most = 400) {
  const taken = new Map();
  const CELL = 64;
  const kept = [];
  for (const label of candidates) {
    if (kept.length >= most) break;
    const cells = [];
    for (let column = Math.floor(label.x / CELL); column <= Math.floor((label.x + label.width) / CELL); column += 1) {
      for (let row = Math.floor(label.y / CELL); row <= Math.floor((label.y + label.height) / CELL); row += 1) cells.push(`${column} ${row}`);
    }
    const covers = (other) => other.x < label.x + label.width && label.x < other.x + other.width && other.y < label.y + label.height && label.y < other.y + other.height;
    if (cells.some((cell) => taken.get(cell)?.some(covers))) continue;
    for (const cell of cells) {
      if (!taken.has(cell)) taken.set(cell, []);
      taken.get(cell).push(label);
    }
    kept.push(label);
  }
  return kept;
}

/** Radius of a node in pixels, by its importance (0 to 1) and the scale. */
export function nodeRadius(node, scale) {
  return Math.max(2.5, Math.min(14, (5 + (node.importance ?? 0) * 6) * Math.sqrt(Math.max(0.25, scale))));
}

/** What is at a point of the view: a node, else the smallest closed community, else nothing. */
export function hit(layout, camera, view, point) {
  const at = toMap(camera, view, point);
  let best = null;
  let least = Infinity;
  for (const node of layout.nodes) {
    const away = Math.hypot(node.x - at.x, node.y - at.y) * camera.scale;
    if (away <= nodeRadius(node, camera.scale) + 5 && away < least) [best, least] = [{ node }, away];
  }
  if (best) return best;
  for (const community of layout.communities) {
    if (community.expanded) continue;
    const inside = Math.hypot(community.x - at.x, community.y - at.y) <= Math.max(community.radius, 10 / camera.scale);
    if (inside && community.radius < least) [best, least] = [{ community }, community.radius];
  }
  return best;
}
