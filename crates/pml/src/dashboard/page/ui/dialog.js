// Dialogs: modal, closed by Escape, focus returns to where it was.

import { html, signal, useEffect, useRef } from '../html.js';

/** A dialog that is open while it is drawn. `onClose` is called when the person leaves it. */
export function Dialog({ title, onClose, children, wide = false }) {
  const node = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    node.current.showModal();
    node.current.querySelector('[autofocus]')?.focus();
    return () => before?.focus?.();
  }, []);
  return html`<dialog ref=${node} class=${wide ? 'wide' : ''} aria-label=${title}
    onCancel=${(event) => { event.preventDefault(); onClose(); }}
    onClick=${(event) => { if (event.target === node.current) onClose(); }}>
    <div class="dialog-body"><h2>${title}</h2>${children}</div>
  </dialog>`;
}

/** The question that waits for a yes or no; the shell draws it. */
export const confirmation = signal(null);

/** Asks before something that cannot be undone. `text` may be of others: it is shown with `Text`. */
export function confirm({ title, text, yes, danger = false }) {
  return new Promise((decide) => {
    confirmation.value = { title, text, yes, danger, decide: (answer) => { confirmation.value = null; decide(answer); } };
  });
}
