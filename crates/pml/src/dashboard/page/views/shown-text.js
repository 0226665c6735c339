// Text of others where only characters fit: labels in pictures, titles, names for screen readers.

import { pieces } from '../text.js';

/** `text` in one line, with hidden, control and bidirectional characters written out. */
export function shown(text) {
  return [...pieces(String(text ?? ''))].map((piece) => (typeof piece === 'string' ? piece : piece.escape)).join('');
}
