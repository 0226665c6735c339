// Fields that narrow a list. What they hold belongs into the address, so that it can be shared and survives a reload.

import { html, useEffect, useRef, useState } from '../html.js';
import { count as format } from './format.js';

const PAUSE_MS = 200;

/** A search field: `onChange(text)` after a pause in typing. `/` anywhere on the page leads to the first one. */
export function FilterField({ value = '', label, placeholder = label, onChange }) {
  const [text, setText] = useState(value);
  const timer = useRef(0);
  const sent = useRef(value);
  useEffect(() => {
    // The address changed by other means, such as going back; what is being typed stays.
    if (value !== sent.current) {
      sent.current = value;
      setText(value);
    }
  }, [value]);
  const tell = (next) => {
    sent.current = next;
    onChange(next);
  };
  const typed = (event) => {
    const next = event.currentTarget.value;
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => tell(next.trim()), PAUSE_MS);
  };
  const keyed = (event) => {
    if (event.key === 'Escape' && text) {
      event.preventDefault();
      clearTimeout(timer.current);
      setText('');
      tell('');
    }
  };
  return html`<input class="filter" type="search" data-filter aria-label=${label} placeholder=${placeholder} value=${text}
    spellcheck="false" autocomplete="off" onInput=${typed} onKeyDown=${keyed} />`;
}

/** A choice of few: `options` are `[value, text]`. */
export function Choice({ value, label, options, onChange }) {
  return html`<label class="choice-field"><span class="sr">${label}</span>
    <select aria-label=${label} value=${value} onChange=${(event) => onChange(event.currentTarget.value)}>
      ${options.map(([key, text]) => html`<option value=${key} selected=${key === value}>${text}</option>`)}
    </select></label>`;
}

/** Views of one thing: `tabs` are `[key, text, count?]`. Arrow keys move between them. */
export function Tabs({ value, label, tabs, onChange }) {
  const keyed = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = tabs.findIndex(([key]) => key === value);
    const next = tabs[(at + step + tabs.length) % tabs.length][0];
    onChange(next);
    event.currentTarget.querySelector(`[data-tab="${CSS.escape(next)}"]`)?.focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${keyed}>
    ${tabs.map(([key, text, count]) => html`<button type="button" role="tab" data-tab=${key} aria-selected=${key === value ? 'true' : 'false'}
      tabindex=${key === value ? 0 : -1} onClick=${() => onChange(key)}>${text}${count !== undefined && html` <span class="tab-count">${format(count)}</span>`}</button>`)}
  </div>`;
}
