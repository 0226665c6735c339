// What stands where nothing is: what this place is for, and what to do so that there is something.

import { html } from '../html.js';

export function Empty({ title, children }) {
  return html`<section class="empty">
    <h2>${title}</h2>
    <div>${children}</div>
  </section>`;
}

/** While the first data is on its way. It shows only after a moment, so that quick replies do not flicker. */
export function Loading() {
  return html`<p class="loading" role="status">Loading…</p>`;
}

/** The head of a page: its name, what it is about in a few words, and what can be done. */
export function PageHead({ title, note, children }) {
  return html`<header class="page-head">
    <div class="page-title"><h1>${title}</h1>${note && html`<p>${note}</p>`}</div>
    ${children && html`<div class="page-actions">${children}</div>`}
  </header>`;
}
