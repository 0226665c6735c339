// A table for any number of rows: only those in view exist.
//
//   <${Table} label="Runs" columns=${columns} rows=${rows} rowKey=${(row) => row.id} onOpen=${(row) => …} />
//
// A column is `{ key, title, width, cell(row, index), align?, narrow? }`; `width` is a CSS grid track, `narrow: false`
// leaves it out on a phone. Rows have one height. One row takes part in the tab order (roving focus): arrows, Page up and
// down, Home and End move it, Enter opens. `live` lists hold new rows back while the pointer or the focus is in the table.

import { Component, html, useEffect, useLayoutEffect, useMemo, useRef, useState } from '../html.js';
import { plural } from './format.js';
import { windowOf } from './window.js';

/** Rows that the list is scrolled by before it is drawn anew. */
const STEP = 4;
/** Room for the lines of the frame. */
const SPARE_PX = 3;
const NARROW = '(max-width: 46rem)';

export function Table({
  label, columns, rows, rowKey, rowHeight = 32, onOpen, hrefOf, selected, rowClass, fill = true, live = false, onEnd, empty = null,
}) {
  const scroller = useRef(null);
  /** The row that the focus is on its way to: keys may come faster than it. */
  const moving = useRef(null);
  /** Rows are not drawn anew for a handler that is a new function each time. */
  const opener = useRef(onOpen);
  opener.current = onOpen;
  const [view, setView] = useState({ top: 0, height: 600 });
  const [focused, setFocused] = useState(null);
  const held = useHeldRows(rows, rowKey, live);
  const shown = held.rows;
  const narrow = useMedia(NARROW);
  const visible = useMemo(() => (narrow ? columns.filter((column) => column.narrow !== false) : columns), [narrow, columns]);
  const template = visible.map((column) => (narrow && column.narrowWidth) || column.width || '1fr').join(' ');
  const { from, to } = windowOf({ top: view.top, height: view.height, rowHeight, count: shown.length });

  const nothing = shown.length === 0 && held.fresh === 0 && empty !== null;
  useLayoutEffect(() => {
    const node = scroller.current;
    if (!node) return undefined;
    const measure = () => setView((known) => {
      // In whole rows: nothing has to be drawn anew while a row moves by some pixels.
      const next = { top: Math.floor(node.scrollTop / (STEP * rowHeight)) * STEP * rowHeight, height: node.clientHeight + STEP * rowHeight };
      return known.top === next.top && known.height === next.height ? known : next;
    });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(node);
    node.addEventListener('scroll', measure, { passive: true });
    return () => {
      observer.disconnect();
      node.removeEventListener('scroll', measure);
    };
  }, [nothing]);

  useEffect(() => {
    if (onEnd && to >= shown.length - 20) onEnd();
  }, [to, shown.length, onEnd]);

  const position = useMemo(() => {
    const wanted = focused ?? selected;
    if (wanted === null || wanted === undefined) return 0;
    const first = shown.slice(from, to).findIndex((row) => rowKey(row) === wanted);
    return first >= 0 ? from + first : Math.max(0, shown.findIndex((row) => rowKey(row) === wanted));
  }, [focused, selected, shown, from, to]);
  // The row in the tab order must exist, or Tab would pass the table by.
  const tabbable = position >= from && position < to ? position : from;

  const move = (index) => {
    const next = Math.max(0, Math.min(shown.length - 1, index));
    const node = scroller.current;
    const top = next * rowHeight;
    const head = node.querySelector('.thead')?.offsetHeight ?? 0;
    if (top < node.scrollTop) node.scrollTop = top;
    else if (top + rowHeight + head > node.scrollTop + node.clientHeight) node.scrollTop = top + rowHeight + head - node.clientHeight;
    setView({ top: node.scrollTop, height: node.clientHeight });
    setFocused(rowKey(shown[next]));
    moving.current = next;
    requestAnimationFrame(() => {
      moving.current = null;
      node.querySelector(`[data-index="${next}"]`)?.focus({ preventScroll: true });
    });
  };
  const keyed = (event) => {
    const index = moving.current ?? Number(event.target.closest('[data-index]')?.dataset.index);
    if (!Number.isInteger(index) || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(view.height / rowHeight) - 1);
    const next = {
      ArrowDown: index + 1, ArrowUp: index - 1, j: index + 1, k: index - 1, PageDown: index + page, PageUp: index - page, Home: 0, End: shown.length - 1,
    }[event.key];
    if (next !== undefined) {
      event.preventDefault();
      move(next);
    } else if (event.key === 'Enter' && onOpen && event.target.dataset.index !== undefined) {
      event.preventDefault();
      onOpen(shown[index], event);
    }
  };

  if (nothing) return empty;
  const items = [];
  for (let index = from; index < to; index += 1) {
    const row = shown[index];
    const key = rowKey(row);
    const chosen = selected !== undefined && key === selected;
    items.push(html`<${Row} key=${key} row=${row} id=${key} index=${index} columns=${visible} template=${template} top=${index * rowHeight}
      height=${rowHeight} tabbable=${index === tabbable} chosen=${chosen} opener=${opener} opens=${Boolean(onOpen)} link=${hrefOf} variant=${rowClass?.(row)} onFocus=${setFocused} />`);
  }
  // Few rows leave the rest of the page to what follows.
  const most = fill ? { maxHeight: `calc(2rem + ${shown.length * rowHeight + SPARE_PX}px)` } : undefined;
  return html`<div class=${`table-box ${fill ? 'fill' : ''}`} style=${most} ...${held.watch}>
    ${held.fresh > 0 && html`<button type="button" class="fresh" onClick=${held.release}>${plural(held.fresh, 'new row')}, show</button>`}
    <div class="table" role="grid" aria-label=${label} aria-rowcount=${shown.length + 1} aria-colcount=${visible.length} ref=${scroller} onKeyDown=${keyed}>
      <div class="thead" role="row" aria-rowindex="1" style=${{ gridTemplateColumns: template }}>
        ${visible.map((column) => html`<span role="columnheader" class=${column.align === 'right' ? 'num' : ''} title=${column.hint}>${column.title}</span>`)}
      </div>
      <div class="tbody" role="rowgroup" style=${{ height: `${shown.length * rowHeight}px` }}>${items}</div>
    </div>
  </div>`;
}

/** One row. It is drawn anew only if something of it changes: scrolling would draw fifty rows for each that comes into view. */
class Row extends Component {
  shouldComponentUpdate(next) {
    return REDRAWN_FOR.some((name) => next[name] !== this.props[name]);
  }

  render({ row, id, index, columns, template, top, height, tabbable, chosen, opener, opens, link, variant, onFocus }) {
    const clicked = (event) => {
      if (event.target.closest('a, button, input') || String(getSelection())) return;
      if (link && (event.ctrlKey || event.metaKey)) window.open(link(row), '_blank', 'noopener');
      else opener.current?.(row, event);
    };
    return html`<div role="row" style=${{ transform: `translateY(${top}px)`, height: `${height}px`, gridTemplateColumns: template }} class=${`trow ${opens ? 'opens' : ''} ${variant ?? ''}`} aria-rowindex=${index + 2} data-index=${index}
      aria-selected=${chosen ? 'true' : undefined} tabindex=${tabbable ? 0 : -1} onClick=${clicked} onFocus=${() => onFocus(id)}>
      ${columns.map((column) => html`<span role="gridcell" class=${column.align === 'right' ? 'num' : ''}>${column.cell(row, index)}</span>`)}
    </div>`;
  }
}

const REDRAWN_FOR = ['row', 'index', 'columns', 'template', 'top', 'tabbable', 'chosen', 'variant'];

/**
 * Holds new rows back while the pointer or the focus is in the table, so that nothing moves under either. Rows that
 * change stay where they are and change there; rows that are gone leave when the table is left alone.
 */
function useHeldRows(rows, rowKey, live) {
  const inside = useRef(false);
  const kept = useRef(rows);
  const filter = useRef(rows);
  const [, redraw] = useState(0);
  if (!live) kept.current = rows;
  else if (!inside.current) kept.current = rows;
  else {
    const current = new Map(rows.map((row) => [rowKey(row), row]));
    const known = new Set(kept.current.map(rowKey));
    // New rows at the end push nothing away; those before the first known one would.
    const lastKnown = rows.findLastIndex((row) => known.has(rowKey(row)));
    const more = rows.slice(lastKnown + 1);
    const same = kept.current.map((row) => current.get(rowKey(row)) ?? row);
    kept.current = lastKnown < 0 ? rows : [...same, ...more.filter((row) => !known.has(rowKey(row)))];
  }
  filter.current = rows;
  const known = new Set(kept.current.map(rowKey));
  const fresh = live && inside.current ? rows.reduce((sum, row) => sum + (known.has(rowKey(row)) ? 0 : 1), 0) : 0;
  const release = () => {
    kept.current = filter.current;
    redraw((value) => value + 1);
  };
  const leave = (event) => {
    if (event.type === 'focusout' && event.currentTarget.contains(event.relatedTarget)) return;
    if (event.type === 'pointerleave' && event.currentTarget.contains(document.activeElement)) return;
    inside.current = false;
    redraw((value) => value + 1);
  };
  const enter = () => { inside.current = true; };
  const watch = live ? { onPointerEnter: enter, onPointerLeave: leave, onFocusIn: enter, onFocusOut: leave } : {};
  return { rows: kept.current, fresh, release, watch };
}

/** Whether a media query holds, kept up to date. */
export function useMedia(query) {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const changed = () => setMatches(list.matches);
    list.addEventListener('change', changed);
    return () => list.removeEventListener('change', changed);
  }, [query]);
  return matches;
}
