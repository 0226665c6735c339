// A form from a JSON Schema: its fields, and the values of what was typed. Pure, so that Node tests it.

/**
 * The fields of an object schema: `{ name, kind, required, description, options?, initial, minimum?, maximum? }`; `kind` is
 * `text`, `number`, `integer`, `boolean`, `choice` or `json`. What a field cannot express is typed as JSON.
 */
export function fieldsOf(schema) {
  const required = new Set(Array.isArray(schema?.required) ? schema.required : []);
  return Object.entries(schema?.properties ?? {}).map(([name, given]) => {
    const property = typeof given === 'object' && given !== null ? given : {};
    const kind = kindOf(property);
    const options = kind === 'choice' ? property.enum ?? [property.const] : undefined;
    const first = property.default ?? (Array.isArray(property.examples) ? property.examples[0] : undefined);
    return {
      name, kind, required: required.has(name), description: typeof property.description === 'string' ? property.description : '', options, minimum: property.minimum, maximum: property.maximum,
      initial: textOf(first, kind, options),
    };
  });
}

function kindOf(property) {
  if ('const' in property) return 'choice';
  if (Array.isArray(property.enum) && property.enum.length > 0) return 'choice';
  const types = [property.type].flat().filter((type) => type !== undefined && type !== 'null');
  if (types.length !== 1) return 'json';
  return { string: 'text', number: 'number', integer: 'integer', boolean: 'boolean' }[types[0]] ?? 'json';
}

/** What stands in a field for a value. */
export function textOf(value, kind, options) {
  if (value === undefined) return '';
  if (kind === 'text' && typeof value === 'string') return value;
  if (kind === 'choice') {
    const index = (options ?? []).findIndex((option) => JSON.stringify(option) === JSON.stringify(value));
    return index < 0 ? '' : String(index);
  }
  return kind === 'json' ? JSON.stringify(value, null, 2) : String(value);
}

/**
 * The values of the fields: `{ values, errors }`, `errors` by name. An empty field that is not required is left out; an
 * empty text that is required is an empty text only if the person says so in JSON (`""`).
 */
export function readFields(fields, texts) {
  // A parameter may have any name, `__proto__` too.
  const values = Object.create(null);
  const errors = Object.create(null);
  for (const field of fields) {
    const text = Object.hasOwn(texts, field.name) ? texts[field.name] : '';
    if (text.trim() === '') {
      if (field.required) errors[field.name] = 'give a value';
      continue;
    }
    const [value, error] = readField(field, text);
    if (error) errors[field.name] = error;
    else values[field.name] = value;
  }
  return { values: { ...values }, errors: { ...errors } };
}

function readField({ kind, options, minimum, maximum }, text) {
  if (kind === 'text') return [text === '""' ? '' : text];
  if (kind === 'boolean') return [text === 'true'];
  if (kind === 'choice') return [options[Number(text)]];
  if (kind === 'json') {
    try {
      return [JSON.parse(text)];
    } catch (error) {
      return [undefined, `not JSON: ${error.message}`];
    }
  }
  const value = Number(text);
  if (!Number.isFinite(value)) return [undefined, 'give a number'];
  if (kind === 'integer' && !Number.isInteger(value)) return [undefined, 'give a whole number'];
  if (value < minimum) return [undefined, `at least ${minimum}`];
  if (value > maximum) return [undefined, `at most ${maximum}`];
  return [value];
}
