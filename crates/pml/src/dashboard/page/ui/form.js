// Fields of a form made from a JSON Schema.

import { html, useId } from '../html.js';
import { Sentence, Text } from './text.js';

/** `texts` holds what is typed, by name; `onInput(name, text)` hears changes. */
export function SchemaFields({ fields, texts, errors = {}, onInput }) {
  const prefix = useId();
  return html`<div class="form-fields">${fields.map((field) => html`<${Field} key=${field.name} id=${`${prefix}-${field.name}`} field=${field}
    text=${texts[field.name] ?? ''} error=${Object.hasOwn(errors, field.name) && errors[field.name]} onInput=${(text) => onInput(field.name, text)} />`)}</div>`;
}

function Field({ id, field, text, error, onInput }) {
  const note = `${id}-note`;
  const common = { id, name: field.name, 'aria-describedby': note, 'aria-invalid': error ? 'true' : undefined, 'aria-required': field.required ? 'true' : undefined };
  const typed = (event) => onInput(event.currentTarget.value);
  return html`<div class="form-field">
    <label for=${id}><code><${Text} text=${field.name} /></code> <span class="fine">${field.kind === 'json' ? 'JSON' : field.kind === 'choice' ? '' : field.kind}${field.required ? ', required' : ''}</span></label>
    ${input(field, text, common, typed)}
    <p id=${note} class=${error ? 'field-error' : 'fine'}>${error ? html`<${Text} text=${error} />` : html`<${Sentence} text=${field.description} />`}</p>
  </div>`;
}

function input(field, text, common, typed) {
  if (field.kind === 'choice' || field.kind === 'boolean') {
    const options = field.kind === 'boolean' ? [['true', 'true'], ['false', 'false']] : field.options.map((option, index) => [String(index), typeof option === 'string' ? option : JSON.stringify(option)]);
    return html`<select ...${common} value=${text} onChange=${typed}><option value="" selected=${text === ''}>–</option>
      ${options.map(([value, label]) => html`<option value=${value} selected=${value === text}><${Text} text=${label} /></option>`)}</select>`;
  }
  if (field.kind === 'json') return html`<textarea ...${common} rows="3" spellcheck="false" value=${text} onInput=${typed}></textarea>`;
  return html`<input ...${common} type="text" inputmode=${field.kind === 'text' ? undefined : 'decimal'} autocomplete="off" value=${text} onInput=${typed} />`;
}
