// The definition of a capability: boxes and lines at the places that the server computed.

import { html, useMemo, useRef, useState } from '../html.js';
import { percent } from '../ui/format.js';
import { definitionTokens, neighbourInDirection } from './marks.js';
import { shown } from './shown-text.js';
import { linePath } from './lines.js';

const KIND_WORDS = {
  tool: 'tool', capability: 'capability', branch: 'branch', loop: 'loop', parallel: 'parallel', operation: 'operation', input: 'input', return: 'return',
};
const ZOOMS = [0.25, 0.35, 0.5, 0.7, 0.85, 1, 1.25, 1.6, 2];
const MARGIN = 12;
/** A small program is drawn larger where there is room, so that it can be read from afar. */
const MOST_FITTED = 1.25;

export function DefinitionView({ definition, selected, onSelect }) {
  const box = useRef(null);
  const [zoom, setZoom] = useState(null);
  const { nodes, edges } = definition;
  const drawn = useMemo(() => prepare(nodes, edges), [definition]);
  const [focused, setFocused] = useState(drawn.order[0]?.id);
  const [width, height] = [definition.width + MARGIN * 2, definition.height + MARGIN * 2];

  const step = (direction) => {
    const present = zoom ?? fitted(box.current, width);
    const next = direction > 0 ? ZOOMS.find((value) => value > present + 0.01) : ZOOMS.findLast((value) => value < present - 0.01);
    if (next) setZoom(next);
  };
  const keyed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const current = drawn.byId.get(event.target.closest('[data-node]')?.dataset.node);
    if (event.key === '+' || event.key === '=') step(1);
    else if (event.key === '-') step(-1);
    else if (event.key === '0') setZoom(null);
    else if (!current) return;
    else if (event.key === 'Enter' || event.key === ' ') onSelect(current.id);
    else if (event.key === 'Home' || event.key === 'End') focusOn((event.key === 'Home' ? drawn.order[0] : drawn.order.at(-1)).id);
    else if (event.key.startsWith('Arrow')) {
      const next = neighbourInDirection(drawn.order, drawn.order.find((node) => node.id === current.id), event.key);
      if (next) focusOn(next.id);
    } else return;
    event.preventDefault();
  };
  const focusOn = (id) => {
    setFocused(id);
    box.current.querySelector(`[data-node="${CSS.escape(id)}"]`)?.focus();
  };
  const scale = zoom === null ? { width: '100%', maxWidth: `${width * MOST_FITTED}px` } : { width: `${width * zoom}px` };
  return html`<div class="picture">
    <div class="picture-tools">
      <${Legend} edges=${edges} nodes=${nodes} />
      <span class="push"></span>
      <button type="button" class="quiet" aria-label="Smaller" onClick=${() => step(-1)}>−</button>
      <button type="button" class="quiet" onClick=${() => setZoom(null)} aria-pressed=${zoom === null ? 'true' : 'false'}>Fit</button>
      <button type="button" class="quiet" aria-label="Larger" onClick=${() => step(1)}>+</button>
    </div>
    <div class="picture-scroll" ref=${box} onKeyDown=${keyed}>
      <svg class="definition" style=${scale} viewBox=${`${-MARGIN} ${-MARGIN} ${width} ${height}`} role="group" aria-label="Definition: arrow keys move between nodes">
        <defs>${['dependency', 'provides'].map((kind) => html`<marker id=${`arrow-${kind}`} class=${`arrow ${kind}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0.5 L8 4 L0 7.5 z" /></marker>`)}</defs>
        ${drawn.boxes.map((node) => html`<${Node} key=${node.id} node=${node} isBox selected=${selected === node.id} tabbable=${focused === node.id} onSelect=${onSelect} onFocus=${setFocused} />`)}
        ${drawn.lines.map((edge) => html`<${Line} key=${`${edge.from} ${edge.to} ${edge.kind} ${edge.label}`} edge=${edge} />`)}
        ${drawn.boxes.map((node) => html`<text key=${node.id} aria-hidden="true" class="box-heading" x=${node.x + 12} y=${node.y + 17}>${texts(node).main}</text>`)}
        ${drawn.leaves.map((node) => html`<${Node} key=${node.id} node=${node} selected=${selected === node.id} tabbable=${focused === node.id} onSelect=${onSelect} onFocus=${setFocused} />`)}
        ${drawn.lines.filter((edge) => edge.text).map((edge) => html`<${LineText} key=${`${edge.from} ${edge.to} ${edge.label}`} edge=${edge} />`)}
      </svg>
    </div>
  </div>`;
}

function fitted(node, width) {
  return Math.min(MOST_FITTED, (node?.clientWidth ?? width) / width);
}

/** Boxes are drawn before what they hold, the outermost first; lines lie between, and no line crosses the heading of a box. */
function prepare(nodes, edges) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Set(nodes.map((node) => node.parent).filter(Boolean));
  const depth = (node) => {
    let [level, at] = [0, node];
    while (at?.parent && level < nodes.length) [level, at] = [level + 1, byId.get(at.parent)];
    return level;
  };
  const boxes = nodes.filter((node) => parents.has(node.id)).sort((one, other) => depth(one) - depth(other));
  const leaves = nodes.filter((node) => !parents.has(node.id));
  const lines = edges
    .map((edge) => (edge.kind === 'contains' ? { ...edge, points: outsideOf(byId.get(edge.from), byId.get(edge.to), byId) } : edge))
    .filter((edge) => edge.points.length > 1)
    .map((edge) => ({ ...edge, text: edgeText(edge) }));
  const isBox = (node) => parents.has(node.id);
  const order = nodes
    .map((node) => ({ id: node.id, x: node.x + node.width / 2, y: node.y + (isBox(node) ? 13 : node.height / 2) }))
    .sort((one, other) => one.y - other.y || one.x - other.x);
  return { byId, boxes, leaves, lines, order };
}

/** A box holds a node that is drawn elsewhere, because other places call it as well: then a line says so. */
function outsideOf(box, node, byId) {
  let at = node;
  for (let level = 0; at && level < byId.size; level += 1) {
    if (at.parent === box.id) return [];
    at = byId.get(at.parent);
  }
  const right = node.x + node.width / 2 > box.x + box.width / 2;
  return [[right ? box.x + box.width : box.x, box.y + 13], [node.x + node.width / 2, node.y]];
}

function edgeText(edge) {
  const share = edge.share === undefined ? '' : percent(edge.share);
  return [edge.label, share].filter(Boolean).join(' ');
}

/** The name of a node for a screen reader is its title, which is a tooltip as well; the texts in it would say the same again. */
function Node({ node, isBox = false, selected, tabbable, onSelect, onFocus }) {
  const { main, note } = texts(node);
  const tokens = definitionTokens(node).join(' ');
  const never = node.coverage === 0;
  const classes = ['node', node.kind, isBox ? 'box' : '', selected ? 'selected' : '', node.usual ? 'usual' : '', never ? 'never' : ''].filter(Boolean).join(' ');
  const label = `${KIND_WORDS[node.kind]} ${shown(node.detail ?? node.label)}${note ? `, ${note}${node.coverage > 0 ? ' of runs' : ''}` : ''}`;
  return html`<g class=${classes} data-node=${node.id} data-ids=${tokens} data-point=${tokens} transform=${`translate(${node.x} ${node.y})`} role="button" tabindex=${tabbable ? 0 : -1}
    aria-pressed=${selected ? 'true' : 'false'} onClick=${() => onSelect(node.id)} onFocus=${() => onFocus(node.id)}>
    <title>${label}</title>
    <rect width=${node.width} height=${node.height} rx=${node.kind === 'operation' ? node.height / 2 : node.kind === 'input' ? 14 : node.kind === 'branch' && !isBox ? 12 : 6} />
    ${!isBox && node.coverage > 0 && html`<rect class="coverage" x="1" y=${node.height - 4} width=${Math.max(2, (node.width - 2) * node.coverage)} height="3" rx="1.5" />`}
    ${!isBox && html`<text aria-hidden="true" x="12" y=${note ? 19 : node.height / 2 + 4.5}>${main}</text>${note && html`<text aria-hidden="true" x="12" y="34" class="note">${note}</text>`}`}
  </g>`;
}

/** What stands in a node: its name, and what is known of it. */
function texts(node) {
  const parts = [];
  if (node.count > 1) parts.push(`${node.count} places`);
  if (node.coverage === 0) parts.push('never reached');
  else if (Number.isFinite(node.coverage)) parts.push(percent(node.coverage));
  return { main: `${node.kind === 'operation' ? 'ƒ ' : ''}${shown(node.label)}`, note: parts.join(' · ') };
}

function Line({ edge }) {
  const words = { dependency: 'comes before', provides: 'gives data to', contains: 'contains' };
  return html`<path class=${`edge ${edge.kind} ${edge.upwards ? 'upwards' : ''} ${edge.share === 0 ? 'never' : ''}`} d=${linePath(edge.points)} marker-end=${edge.kind === 'contains' ? undefined : `url(#arrow-${edge.kind})`}
    style=${edge.share > 0 ? { strokeWidth: `${1 + edge.share * 2}px` } : undefined}>
    <title>${`${shown(edge.from)} ${words[edge.kind] ?? edge.kind} ${shown(edge.to)}${edge.text ? `: ${shown(edge.text)}` : ''}`}</title></path>`;
}

function LineText({ edge }) {
  const middle = Math.max(1, Math.floor((edge.points.length - 1) / 2));
  const [[x1, y1], [x2, y2]] = [edge.points[middle - 1], edge.points[middle]];
  return html`<text class=${`edge-text ${edge.kind}`} x=${(x1 + x2) / 2 + 4} y=${(y1 + y2) / 2 + 4}>${shown(edge.text)}</text>`;
}

function Legend({ edges, nodes }) {
  const has = (kind) => edges.some((edge) => edge.kind === kind);
  return html`<ul class="picture-legend" aria-label="Lines">
    <li><i class="swatch dependency"></i>dependency</li>
    ${has('provides') && html`<li><i class="swatch provides"></i>provides data</li>`}
    ${has('contains') && html`<li><i class="swatch contains"></i>contains</li>`}
    <li><i class="swatch coverage"></i>share of runs</li>
    ${nodes.some((node) => node.kind === 'operation') && html`<li><i class="sign">ƒ</i>computed by the program</li>`}
  </ul>`;
}
