// Draws the map of tools and capabilities on a canvas.

import { isBeside, isInside, nodeRadius, placeLabels, toView, touches } from './camera.js';
import { shown } from './shown-text.js';

/** Dashes that differ without colour too: solid, dashed, dotted, dash and dot. The legend has the same. */
const EDGES = { dependency: [], provides: [6, 5], contains: [1.5, 3.5], sequence: [9, 3, 2, 3] };
const HUES = [214, 150, 32, 275, 340, 190, 95, 12, 245, 60];

/** The colours of the present theme. */
export function palette(root = document.documentElement) {
  const style = getComputedStyle(root);
  const value = (name) => style.getPropertyValue(name).trim();
  const dark = style.colorScheme.includes('dark');
  return {
    dark,
    ground: value('--surface'),
    ink: value('--ink'),
    soft: value('--soft'),
    line: value('--line-strong'),
    accent: value('--accent'),
    edges: { dependency: value('--accent'), provides: value('--string'), contains: value('--bar-cached'), sequence: value('--soft') },
    community: (index, alpha) => `hsl(${HUES[index % HUES.length]} ${dark ? '38% 62%' : '52% 44%'} / ${alpha})`,
    node: (index) => `hsl(${HUES[index % HUES.length]} ${dark ? '42% 64%' : '48% 42%'})`,
  };
}

/**
 * Draws all of it. `marks` is `{ selected, hovered, neighbours: Set, path: Set }` of ids; `colours` comes from `palette`.
 */
export function draw(context, { layout, camera, view, marks, colours, index }) {
  context.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  context.fillStyle = colours.ground;
  context.fillRect(0, 0, view.width, view.height);
  const place = (item) => toView(camera, view, item);
  const visible = ({ x, y }, room) => x > -room && y > -room && x < view.width + room && y < view.height + room;

  layout.communities.forEach((community, number) => {
    const at = place(community);
    const radius = Math.max(6, community.radius * camera.scale);
    if (!visible(at, radius)) return;
    const chosen = marks.selected === `community:${community.id}` || marks.hovered === `community:${community.id}`;
    context.beginPath();
    context.arc(at.x, at.y, radius, 0, Math.PI * 2);
    context.fillStyle = colours.community(number, community.expanded ? 0.05 : 0.16);
    context.fill();
    context.lineWidth = chosen ? 2.5 : 1;
    context.strokeStyle = chosen ? colours.accent : colours.community(number, community.expanded ? 0.3 : 0.65);
    context.stroke();
  });

  drawEdges(context, { layout, place, visible, marks, colours, index });

  const focus = marks.selected && marks.neighbours.size > 0;
  for (const node of layout.nodes) {
    const at = place(node);
    if (!visible(at, 20)) continue;
    const radius = nodeRadius(node, camera.scale);
    const near = node.id === marks.selected || marks.neighbours.has(node.id) || marks.path.has(node.id);
    context.globalAlpha = focus && !near ? 0.4 : 1;
    context.fillStyle = colours.node(index.communityNumber.get(node.community) ?? 0);
    context.beginPath();
    // Capabilities are squares, so that they are told from tools without colour.
    if (node.kind === 'capability') context.rect(at.x - radius * 0.9, at.y - radius * 0.9, radius * 1.8, radius * 1.8);
    else context.arc(at.x, at.y, radius, 0, Math.PI * 2);
    context.fill();
    if (node.id === marks.selected || node.id === marks.hovered || marks.path.has(node.id)) {
      context.lineWidth = 2.5;
      context.strokeStyle = colours.ink;
      context.stroke();
    }
  }
  context.globalAlpha = 1;
  drawLabels(context, { layout, camera, view, place, visible, marks, colours, index });
}

function drawEdges(context, { layout, place, visible, marks, colours, index }) {
  const focus = marks.selected !== null && marks.selected !== undefined;
  // One path for each kind and emphasis: thousands of strokes of their own would take a second.
  const groups = new Map();
  for (const edge of layout.edges) {
    const [from, to] = [index.places.get(edge.from), index.places.get(edge.to)];
    if (!from || !to) continue;
    const [one, other] = [place(from), place(to)];
    if (!visible(one, 4000) && !visible(other, 4000)) continue;
    const near = focus && (edge.from === marks.selected || edge.to === marks.selected);
    const onPath = marks.path.has(edge.from) && marks.path.has(edge.to);
    const heavy = edge.edges > 3 ? 1 : 0;
    const key = `${edge.kind} ${near || onPath ? 2 : focus ? 0 : 1} ${heavy}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(one, other);
  }
  for (const [key, points] of [...groups].sort((a, b) => a[0].split(' ')[1] - b[0].split(' ')[1])) {
    const [kind, emphasis, heavy] = key.split(' ');
    context.beginPath();
    for (let at = 0; at < points.length; at += 2) {
      context.moveTo(points[at].x, points[at].y);
      context.lineTo(points[at + 1].x, points[at + 1].y);
    }
    context.setLineDash(EDGES[kind] ?? []);
    context.strokeStyle = colours.edges[kind] ?? colours.line;
    context.globalAlpha = [0.12, points.length > 3000 ? 0.22 : 0.45, 0.95][emphasis];
    context.lineWidth = (emphasis === '2' ? 1.8 : 1) + (heavy === '1' ? 0.8 : 0);
    context.stroke();
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}

function drawLabels(context, { layout, camera, view, place, visible, marks, colours, index }) {
  const family = getComputedStyle(document.body).fontFamily;
  const candidates = [];
  const add = (text, size, weight, priority, must, placesOf) => {
    const [width, height] = [text.length * size * 0.56, size + 3];
    candidates.push({ text, places: placesOf(width, height), width, height, size, weight, priority, must });
  };
  for (const community of layout.communities) {
    const at = place(community);
    const radius = community.radius * camera.scale;
    if (!visible(at, radius + 60)) continue;
    const text = `${shown(community.label)} (${community.size})`;
    if (community.expanded) add(text, 12, 600, 2 + radius / 1e4, true, (width) => [{ x: at.x - width / 2, y: at.y - radius - 16 }]);
    else if (radius > 8) add(text, 12, 600, 3 + radius / 1e4, true, (width) => [{ x: at.x - width / 2, y: at.y - 7 }]);
  }
  const circles = layout.communities.map((community) => ({ ...place(community), id: community.id, radius: community.radius * camera.scale }));
  const others = (circle) => circles.filter((other) => other.id !== circle?.id);
  const obstacles = [];
  const close = camera.scale > 0.45;
  for (const node of layout.nodes) {
    const at = place(node);
    if (!visible(at, 80)) continue;
    const radius = nodeRadius(node, camera.scale);
    obstacles.push({ x: at.x - radius, y: at.y - radius, width: radius * 2, height: radius * 2 });
    const special = node.id === marks.selected || node.id === marks.hovered;
    const near = marks.neighbours.has(node.id) || marks.path.has(node.id);
    if (!special && !near && !close && (node.importance ?? 0) < 0.3) continue;
    const away = radius + 2;
    // Below, above, beside, then further off: where the map is dense, the place below is rarely free.
    const around = (width, height) => [
      { x: at.x - width / 2, y: at.y + away }, { x: at.x - width / 2, y: at.y - away - height },
      { x: at.x + away + 2, y: at.y - height / 2 }, { x: at.x - away - 2 - width, y: at.y - height / 2 },
      { x: at.x + away, y: at.y - height - radius / 2 }, { x: at.x + away, y: at.y + radius / 2 },
      { x: at.x - away - width, y: at.y - height - radius / 2 }, { x: at.x - away - width, y: at.y + radius / 2 },
      ...(special || near ? [{ x: at.x - width / 2, y: at.y + away + height }, { x: at.x - width / 2, y: at.y - away - 2 * height }] : []),
    ];
    const circle = circles[index.communityNumber.get(node.community)];
    // In its circle if possible. Outside it must not read as if it belonged to another one, unless it is what is looked at.
    const within = (width, height) => {
      const places = around(width, height).map((spot) => ({ ...spot, width, height }));
      const inside = places.filter((box) => !circle || isInside(box, circle));
      const beside = places.filter((box) => !inside.includes(box) && (special || near || (isBeside(box, circle) && !others(circle).some((other) => touches(box, other)))));
      return [...inside, ...beside];
    };
    add(shown(node.label), special ? 13 : 11, special ? 700 : 400, special ? 10 : near ? 5 : node.importance ?? 0, special || near, within);
  }
  candidates.sort((one, other) => other.priority - one.priority);
  context.textAlign = 'left';
  context.textBaseline = 'top';
  context.lineJoin = 'round';
  for (const label of placeLabels(candidates, obstacles, view)) {
    context.font = `${label.weight} ${label.size}px ${family}`;
    context.strokeStyle = colours.ground;
    context.lineWidth = 3;
    context.strokeText(label.text, label.x, label.y);
    context.fillStyle = colours.ink;
    context.fillText(label.text, label.x, label.y);
  }
}

/** Places of ends of edges by id, and the number of each community. */
export function indexOf(layout) {
  const places = new Map(layout.nodes.map((node) => [node.id, node]));
  const communityNumber = new Map();
  layout.communities.forEach((community, number) => {
    communityNumber.set(community.id, number);
    places.set(`community:${community.id}`, community);
  });
  return { places, communityNumber };
}
