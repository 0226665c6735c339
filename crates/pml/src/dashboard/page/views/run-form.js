// Runs a capability with arguments from a form that is made from its JSON Schema.

import { send } from '../api.js';
import { html, useEffect, useMemo, useRef, useState } from '../html.js';
import { navigate } from '../navigation.js';
import { href } from '../router.js';
import { Dialog } from '../ui/dialog.js';
import { SchemaFields } from '../ui/form.js';
import { fieldsOf, readFields } from '../ui/schema.js';
import { Problem } from '../ui/text.js';
import { shown } from './shown-text.js';

export function RunForm({ capability, onClose }) {
  const fields = useMemo(() => {
    const found = fieldsOf(capability.parametersSchema);
    return found.sort((one, other) => Number(other.required) - Number(one.required));
  }, [capability]);
  const [texts, setTexts] = useState(() => Object.fromEntries(fields.map((field) => [field.name, field.initial])));
  const [errors, setErrors] = useState({});
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const form = useRef(null);
  useEffect(() => form.current.querySelector('[aria-invalid="true"]')?.focus(), [errors]);
  const submit = async (event) => {
    event.preventDefault();
    const { values, errors: found } = readFields(fields, texts);
    setErrors(found);
    if (Object.keys(found).length > 0) return;
    setBusy(true);
    setProblem(null);
    try {
      const { run } = await send('POST', '/api/execute', { capability: capability.id, args: values });
      onClose();
      navigate(href('run', { id: run }));
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${`Run ${shown(capability.name)}`} onClose=${onClose} wide=${fields.length > 6}>
    <form class="stack run-form" ref=${form} onSubmit=${submit} novalidate>
      ${fields.length === 0 && html`<p class="soft">It takes no arguments.</p>`}
      <${SchemaFields} fields=${fields} texts=${texts} errors=${errors} onInput=${(name, text) => setTexts({ ...texts, [name]: text })} />
      <${Problem} error=${problem} />
      <p class="fine">It runs as an agent's request would: calls that need an approval wait in the <a href="/inbox">inbox</a>.</p>
      <div class="actions"><button type="submit" class="primary" disabled=${busy} autofocus=${fields.length === 0}>Run</button><button type="button" onClick=${onClose}>Cancel</button></div>
    </form>
  </${Dialog}>`;
}
