// Long text in lines, of which only those in view exist: source, console, JSON of some megabytes.

import { html, useLayoutEffect, useMemo, useRef, useState } from '../html.js';
import { size } from './format.js';
import { linesOf, valueText } from './pretty.js';
import { Text } from './text.js';
import { windowOf } from './window.js';

const LINE_HEIGHT = 20;
/** Below this number all lines are drawn, so that the browser's own search finds them. */
const FEW = 400;

/**
 * `lines` are texts; `numbered` shows their numbers; `tones` has a class for some of them by index. `marked` is the index
 * of a line to show.
 */
export function Lines({ lines, label, numbered = false, tones, marked }) {
  const node = useRef(null);
  const [view, setView] = useState({ top: 0, height: 400 });
  useLayoutEffect(() => {
    const box = node.current;
    const measure = () => setView((known) => {
      const next = { top: box.scrollTop, height: box.clientHeight };
      return known.top === next.top && known.height === next.height ? known : next;
    });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    box.addEventListener('scroll', measure, { passive: true });
    return () => {
      observer.disconnect();
      box.removeEventListener('scroll', measure);
    };
  }, []);
  useLayoutEffect(() => {
    if (marked >= 0) node.current.scrollTop = Math.max(0, (marked - 4) * LINE_HEIGHT);
  }, [marked]);
  const all = lines.length <= FEW;
  const { from, to } = all ? { from: 0, to: lines.length } : windowOf({ ...view, rowHeight: LINE_HEIGHT, count: lines.length });
  const items = [];
  for (let index = from; index < to; index += 1) {
    items.push(html`<div key=${index} class=${`line ${tones?.[index] ?? ''} ${index === marked ? 'marked' : ''}`}>
      ${numbered && html`<span class="line-number" aria-hidden="true">${index + 1}</span>`}<span class="line-text"><${Text} text=${lines[index]} /></span></div>`);
  }
  return html`<pre class=${`lines ${numbered ? 'numbered' : ''}`} tabindex="0" role="region" aria-label=${label} ref=${node}><div
    class="lines-all" style=${{ height: `${lines.length * LINE_HEIGHT}px` }}><div style=${{ transform: `translateY(${from * LINE_HEIGHT}px)` }}>${items}</div></div></pre>`;
}

/** A value of others: JSON laid out, or text. `truncated` says that there is more than was sent. */
export function Value({ value, label, truncated = false, bytes }) {
  const text = useMemo(() => valueText(value), [value]);
  const lines = useMemo(() => linesOf(text), [text]);
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return html`<div class="value-box">
    <div class="value-head"><h4>${label}</h4><span class="fine">${bytes > 0 && size(bytes)}${truncated && ' · only the beginning'}</span>
      ${navigator.clipboard && html`<button type="button" class="quiet small" onClick=${copy} aria-label=${`Copy ${label.toLowerCase()}`}>${copied ? 'Copied' : 'Copy'}</button>`}</div>
    <${Lines} lines=${lines} label=${label} />
  </div>`;
}
