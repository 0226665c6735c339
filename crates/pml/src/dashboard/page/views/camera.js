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
 * The labels that cover neither each other nor an obstacle: `candidates` are `{ width, height, places, must }` in pixels, the most
 * important first, with `places` the `{ x, y }` where it may stand, the best first. A label that finds no place in the view is left
 * out; one that `must` be there may cover obstacles, but no label.
 */
export function placeLabels(candidates, obstacles = [], view = { width: Infinity, height: Infinity }, most = 400) {
  const inView = (box) => box.x >= 0 && box.y >= 0 && box.x + box.width <= view.width && box.y + box.height <= view.height;
  const taken = grid();
  const blocked = grid();
  for (const obstacle of obstacles) blocked.add(obstacle);
  const kept = [];
  for (const { places, ...label } of candidates) {
    if (kept.length >= most) break;
    const boxes = places.map(({ x, y }) => ({ ...label, x, y }));
    const free = boxes.filter((box) => !taken.covers(box));
    const seen = free.filter(inView);
    const box = seen.find((one) => !blocked.covers(one)) ?? (label.must ? seen[0] ?? free[0] : undefined);
    if (!box) continue;
    taken.add(box);
    kept.push(box);
  }
  return kept;
}

/** Whether a box lies within a circle, `{ x, y, radius }`; its corners may stand out a little. */
export function isInside(box, circle, slack = 4) {
  const across = Math.max(Math.abs(box.x - circle.x), Math.abs(box.x + box.width - circle.x));
  const down = Math.max(Math.abs(box.y - circle.y), Math.abs(box.y + box.height - circle.y));
  return Math.hypot(across, down) <= circle.radius + slack;
}

/** Whether the middle of a box lies within a circle: it belongs there, though it stands out. */
export function isBeside(box, circle) {
  return Math.hypot(box.x + box.width / 2 - circle.x, box.y + box.height / 2 - circle.y) <= circle.radius;
}

/** Whether a box touches a circle. */
export function touches(box, circle) {
  const across = circle.x - Math.max(box.x, Math.min(circle.x, box.x + box.width));
  const down = circle.y - Math.max(box.y, Math.min(circle.y, box.y + box.height));
  return Math.hypot(across, down) <= circle.radius;
}

/** Boxes by the squares of a grid that they touch, so that few are compared. */
function grid() {
  const CELL = 64;
  const byCell = new Map();
  const cells = (box) => {
    const found = [];
    for (let column = Math.floor(box.x / CELL); column <= Math.floor((box.x + box.width) / CELL); column += 1) {
      for (let row = Math.floor(box.y / CELL); row <= Math.floor((box.y + box.height) / CELL); row += 1) found.push(`${column} ${row}`);
    }
    return found;
  };
  return {
    add(box) {
      for (const cell of cells(box)) {
        if (!byCell.has(cell)) byCell.set(cell, []);
        byCell.get(cell).push(box);
      }
    },
    covers(box) {
      const covers = (other) => other.x < box.x + box.width && box.x < other.x + other.width && other.y < box.y + box.height && box.y < other.y + other.height;
      return cells(box).some((cell) => byCell.get(cell)?.some(covers));
    },
  };
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
