// The source of a capability with its lines numbered, coloured, and each place of a node to point at.

import { html, useMemo } from '../html.js';
import { Text } from '../ui/text.js';
import { lines } from './highlight.js';

/** Longer sources are cut: nobody reads more, and every piece is an element. */
const MOST_LINES = 3000;

export function Source({ definition }) {
  const shown = useMemo(() => {
    const sites = definition.nodes.flatMap((node) => node.sites).filter((site) => Number.isInteger(site.from));
    return lines(definition.source, definition.language, sites);
  }, [definition]);
  const rest = shown.length - MOST_LINES;
  return html`<div class="source" role="region" aria-label="Source" tabindex="0">
    <ol>${shown.slice(0, MOST_LINES).map((line) => html`<li><code>${line.map((piece) => {
      const attributes = piece.ids.length > 0 ? { 'data-ids': piece.ids.join(' '), 'data-point': piece.ids[0] } : {};
      return html`<span class=${piece.kind ?? ''} ...${attributes}><${Text} text=${piece.text} /></span>`;
    })}</code></li>`)}</ol>
    ${rest > 0 && html`<p class="fine">${rest} more lines are not shown.</p>`}
  </div>`;
}
