//! Arguments of a task: raw JSON with references in it.
//!
//! A part without references keeps its bytes. `{"$ref": "t1.content"}` and a text that is exactly `{{t1.content}}`
//! stand for the value; inside a longer text the value is inserted into the text. Nothing inside `{"$literal": …}` is
//! interpreted.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::reference::{Reference, ReferenceRoot, TextPart};

/// Arguments of a task.
#[derive(Debug, Clone)]
pub enum TaskArguments {
    /// JSON without references, as written.
    Literal(Box<RawValue>),
    /// JSON that is not interpreted, as written.
    Escaped(Box<RawValue>),
    /// A value from a task or from `args`.
    Reference(Reference),
    /// A text with inserted values.
    Text(Vec<TextPart>),
    /// An object with references somewhere inside.
    Object(Vec<(String, TaskArguments)>),
    /// A list with references somewhere inside.
    Array(Vec<TaskArguments>),
}

impl TaskArguments {
    /// Every reference, in order.
    pub fn references(&self) -> Vec<&Reference> {
        let mut found = Vec::new();
        self.collect(&mut found);
        found
    }

    fn collect<'a>(&'a self, found: &mut Vec<&'a Reference>) {
        match self {
            TaskArguments::Literal(_) | TaskArguments::Escaped(_) => {}
            TaskArguments::Reference(reference) => found.push(reference),
            TaskArguments::Text(parts) => found.extend(parts.iter().filter_map(TextPart::reference)),
            TaskArguments::Object(members) => members.iter().for_each(|(_, value)| value.collect(found)),
            TaskArguments::Array(items) => items.iter().for_each(|item| item.collect(found)),
        }
    }

    /// Writes it in document notation.
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            TaskArguments::Literal(raw) => out.push_str(raw.get()),
            TaskArguments::Escaped(raw) => {
                out.push_str("{\"$literal\":");
                out.push_str(raw.get());
                out.push('}');
            }
            TaskArguments::Reference(reference) => push_reference(reference, &str::to_owned, out),
            TaskArguments::Text(parts) => push_parts(parts, &str::to_owned, out),
            TaskArguments::Object(members) => write_list(out, ('{', '}'), members, |(key, value), out| {
                push_json_string(key, out);
                out.push(':');
                value.write(out);
            }),
            TaskArguments::Array(items) => write_list(out, ('[', ']'), items, TaskArguments::write),
        }
    }
}

impl Serialize for TaskArguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::new();
        self.write(&mut text);
        RawValue::from_string(text).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// Writes items separated by commas, in brackets.
pub(crate) fn write_list<T>(
    out: &mut String,
    (open, close): (char, char),
    items: &[T],
    mut write: impl FnMut(&T, &mut String),
) {
    out.push(open);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(close);
}

/// Writes a JSON string.
pub(crate) fn push_json_string(text: &str, out: &mut String) {
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&serde_json::Value::from(text).to_string());
    }
}

/// Whether JSON might be mistaken for references. Escaping too much does no harm, so searching the text is enough; a
/// key or brace can also be spelled with `\u`.
pub(crate) fn needs_escape(json: &str) -> bool {
    ["{{", "\"$ref\"", "\"$literal\"", "\\u"].iter().any(|sign| json.contains(sign))
}

/// Writes a reference; `name` maps task ids.
pub(crate) fn push_reference(reference: &Reference, name: &dyn Fn(&str) -> String, out: &mut String) {
    out.push_str("{\"$ref\":");
    push_json_string(&renamed(reference, name), out);
    out.push('}');
}

/// Writes a text with inserted values.
pub(crate) fn push_parts(parts: &[TextPart], name: &dyn Fn(&str) -> String, out: &mut String) {
    let text: String = parts
        .iter()
        .map(|part| match part {
            TextPart::Text(text) => text.clone(),
            TextPart::Reference(reference) => format!("{{{{{}}}}}", renamed(reference, name)),
        })
        .collect();
    push_json_string(&text, out);
}

fn renamed(reference: &Reference, name: &dyn Fn(&str) -> String) -> String {
    match &reference.of {
        ReferenceRoot::Task(id) => {
            Reference { of: ReferenceRoot::Task(name(id)), path: reference.path.clone() }.to_string()
        }
        ReferenceRoot::Arguments => reference.to_string(),
    }
}
