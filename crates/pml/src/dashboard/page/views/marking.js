// Marks what belongs to the thing under the pointer or the focus, in every view below one element.
//
// Marks are set on elements and not drawn anew: a program of 500 nodes has thousands of them, and a hover must be instant.

import { useEffect } from '../html.js';
import { shares } from './marks.js';

/** What may be marked has `data-ids` (its tokens); what marks when pointed at has `data-point` (tokens to mark). */
export function useMarking(root, pinned, shown) {
  useEffect(() => {
    const node = root.current;
    let last = '';
    const mark = (tokens) => {
      const text = tokens || pinned.value || '';
      if (text === last) return;
      last = text;
      const wanted = new Set(text.split(' ').filter(Boolean));
      for (const element of node.querySelectorAll('[data-ids]')) {
        element.classList.toggle('marked', wanted.size > 0 && shares(element.dataset.ids.split(' '), wanted));
      }
      node.classList.toggle('marking', wanted.size > 0);
      if (tokens) reveal(node, tokens);
    };
    const pointed = (event) => mark(event.target.closest?.('[data-point]')?.dataset.point);
    const left = () => mark('');
    mark('');
    node.addEventListener('pointerover', pointed);
    node.addEventListener('pointerleave', left);
    node.addEventListener('focusin', pointed);
    node.addEventListener('focusout', left);
    return () => {
      node.removeEventListener('pointerover', pointed);
      node.removeEventListener('pointerleave', left);
      node.removeEventListener('focusin', pointed);
      node.removeEventListener('focusout', left);
    };
  }, [pinned.value, ...shown]);
}

/** Scrolls the source to the first marked place, unless the pointer is in it: nothing moves under the cursor. */
function reveal(root) {
  const source = root.querySelector('.source');
  const first = source?.querySelector('.marked');
  if (!first || source.matches(':hover')) return;
  const [box, place] = [source.getBoundingClientRect(), first.getBoundingClientRect()];
  if (place.top < box.top || place.bottom > box.bottom) source.scrollTop += place.top - box.top - box.height / 3;
}
