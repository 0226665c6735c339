// The map as something to move about in, with the pointer or with keys.

import { html, useEffect, useMemo, useRef, useState } from '../html.js';
import { fit, hit, pan, toView, zoom } from './camera.js';
import { draw, indexOf, palette } from './map-draw.js';
import { neighbourInDirection } from './marks.js';
import { shown } from './shown-text.js';

const PAN_PX = 60;
const ZOOM_STEP = 1.3;

/**
 * `layout` is the reply of the server. `selected` is an id; `neighbours` and `path` are sets of ids. `onPick(id)` is called with the id of a
 * node or `community:<id>`. `focusOn` is `{ id, stamp }`: when it changes, the view moves there.
 */
export function MapView({ layout, selected, neighbours, path, focusOn, onPick }) {
  const canvas = useRef(null);
  const state = useRef({ camera: null, view: { width: 800, height: 500, ratio: 1 }, hovered: null, colours: null, frame: 0 });
  const index = useMemo(() => indexOf(layout), [layout]);
  const [said, setSaid] = useState('');
  const latest = useRef(null);
  latest.current = { layout, index, marks: { selected, neighbours, path } };

  const paint = () => {
    const now = state.current;
    if (now.frame) return;
    now.frame = requestAnimationFrame(() => {
      now.frame = 0;
      const node = canvas.current;
      if (!node || !now.camera) return;
      now.colours ??= palette();
      const { layout: what, index: places, marks } = latest.current;
      draw(node.getContext('2d'), { layout: what, camera: now.camera, view: now.view, colours: now.colours, index: places, marks: { ...marks, hovered: now.hovered } });
      // Tests and people who measure can see when the first picture was there.
      if (!node.dataset.drawn) node.dataset.drawn = String(Math.round(performance.now()));
    });
  };
  const show = (camera) => {
    state.current.camera = camera;
    paint();
  };
  const fitAll = () => show(fit({ x: 0, y: 0, width: layout.width, height: layout.height }, state.current.view));

  useEffect(() => {
    const node = canvas.current;
    const measure = () => {
      const [width, height] = [node.clientWidth, node.clientHeight];
      const ratio = Math.min(2, devicePixelRatio || 1);
      state.current.view = { width, height, ratio };
      node.width = Math.round(width * ratio);
      node.height = Math.round(height * ratio);
      if (!state.current.camera) fitAll();
      paint();
    };
    measure();
    const sizes = new ResizeObserver(measure);
    sizes.observe(node);
    const recolour = () => {
      state.current.colours = null;
      paint();
    };
    const themes = new MutationObserver(recolour);
    themes.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', recolour);
    const wheel = (event) => {
      // Without a key the page scrolls: a map that swallows the wheel is a trap.
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== node) return;
      event.preventDefault();
      const box = node.getBoundingClientRect();
      show(zoom(state.current.camera, state.current.view, Math.exp(-event.deltaY / 300), { x: event.clientX - box.left, y: event.clientY - box.top }));
    };
    node.addEventListener('wheel', wheel, { passive: false });
    return () => {
      sizes.disconnect();
      themes.disconnect();
      scheme.removeEventListener('change', recolour);
      node.removeEventListener('wheel', wheel);
      cancelAnimationFrame(state.current.frame);
      state.current.frame = 0;
    };
  }, []);

  useEffect(paint, [layout, selected, neighbours, path]);
  useEffect(() => {
    const at = focusOn && index.places.get(focusOn.id);
    if (!at) return;
    const [view, now] = [state.current.view, state.current.camera];
    if (at.radius) show(fit({ x: at.x - at.radius, y: at.y - at.radius, width: at.radius * 2, height: at.radius * 2 }, view));
    else {
      const seen = toView(now, view, at);
      const inside = seen.x > 40 && seen.y > 40 && seen.x < view.width - 40 && seen.y < view.height - 40;
      if (!inside || now.scale < 0.6) show({ x: at.x, y: at.y, scale: Math.max(now.scale, 0.9) });
    }
  }, [focusOn?.stamp, index]);

  const pointOf = (event) => {
    const box = canvas.current.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const idAt = (event) => {
    const found = hit(layout, state.current.camera, state.current.view, pointOf(event));
    if (!found) return null;
    return found.node ? found.node.id : `community:${found.community.id}`;
  };
  const drag = useRef(null);
  const pressed = (event) => {
    if (event.button !== 0) return;
    drag.current = { x: event.clientX, y: event.clientY, moved: false };
    canvas.current.setPointerCapture(event.pointerId);
  };
  const moved = (event) => {
    if (drag.current) {
      const [dx, dy] = [event.clientX - drag.current.x, event.clientY - drag.current.y];
      if (!drag.current.moved && Math.hypot(dx, dy) < 4) return;
      drag.current = { x: event.clientX, y: event.clientY, moved: true };
      show(pan(state.current.camera, -dx, -dy));
      return;
    }
    const id = idAt(event);
    if (id === state.current.hovered) return;
    state.current.hovered = id;
    canvas.current.style.cursor = id ? 'pointer' : 'grab';
    canvas.current.title = id ? describe(index.places.get(id)) : '';
    paint();
  };
  const released = (event) => {
    const was = drag.current;
    drag.current = null;
    if (was && !was.moved) {
      const id = idAt(event);
      if (id) onPick(id);
    }
  };

  /** Everything that arrow keys can reach: nodes, and communities that are closed. */
  const stops = useMemo(() => [
    ...layout.nodes.map((node) => ({ id: node.id, x: node.x, y: node.y })),
    ...layout.communities.filter((community) => !community.expanded).map((community) => ({ id: `community:${community.id}`, x: community.x, y: community.y })),
  ], [layout]);
  const keyed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { camera, view } = state.current;
    const pans = { ArrowUp: [0, -PAN_PX], ArrowDown: [0, PAN_PX], ArrowLeft: [-PAN_PX, 0], ArrowRight: [PAN_PX, 0] };
    if (event.key === '+' || event.key === '=') show(zoom(camera, view, ZOOM_STEP));
    else if (event.key === '-') show(zoom(camera, view, 1 / ZOOM_STEP));
    else if (event.key === '0') fitAll();
    else if (pans[event.key] && event.shiftKey) show(pan(camera, ...pans[event.key]));
    else if (pans[event.key]) moveTo(event.key);
    else if (event.key === 'Enter' && state.current.hovered) onPick(state.current.hovered);
    else return;
    event.preventDefault();
  };
  const moveTo = (key) => {
    const now = state.current;
    const current = stops.find((stop) => stop.id === (now.hovered ?? selected));
    const next = current ? neighbourInDirection(stops, current, key) : nearest(stops, now.camera);
    if (!next) return;
    now.hovered = next.id;
    setSaid(describe(index.places.get(next.id)));
    const seen = toView(now.camera, now.view, next);
    const inside = seen.x > 30 && seen.y > 30 && seen.x < now.view.width - 30 && seen.y < now.view.height - 30;
    show(inside ? now.camera : { ...now.camera, x: next.x, y: next.y });
  };
  return html`<div class="map-box">
    <canvas ref=${canvas} class="map" tabindex="0" role="application" aria-label="Map of tools and capabilities. Arrow keys move between them, Enter opens one, Shift and arrow keys move the map, plus and minus zoom, 0 shows all."
      onPointerDown=${pressed} onPointerMove=${moved} onPointerUp=${released} onPointerCancel=${() => { drag.current = null; }} onKeyDown=${keyed}></canvas>
    <p class="sr" role="status">${said}</p>
    <div class="map-tools">
      <button type="button" aria-label="Zoom in" onClick=${() => show(zoom(state.current.camera, state.current.view, ZOOM_STEP))}>+</button>
      <button type="button" aria-label="Zoom out" onClick=${() => show(zoom(state.current.camera, state.current.view, 1 / ZOOM_STEP))}>−</button>
      <button type="button" onClick=${fitAll}>Fit</button>
    </div>
  </div>`;
}

function nearest(stops, camera) {
  let [best, least] = [null, Infinity];
  for (const stop of stops) {
    const away = Math.hypot(stop.x - camera.x, stop.y - camera.y);
    if (away < least) [best, least] = [stop, away];
  }
  return best;
}

function describe(item) {
  if (!item) return '';
  if (item.size !== undefined) return `${shown(item.label)}: ${item.size} tools and capabilities, closed`;
  return `${shown(item.label)}: ${item.kind}, ${item.degree} neighbours`;
}
