//! What a task is given: raw JSON with references in it.
//!
//! Whatever holds no reference stays the bytes that were written. `{"$ref": "t1.content"}` and a text that is
//! `{{t1.content}}` and nothing else stand for the value; inside a longer text the value is put into the text;
//! nothing inside `{"$literal": …}` is looked at.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::reference::{Part, Reference, Source};

/// What a task is given.
#[derive(Debug, Clone)]
pub enum Given {
    /// JSON without references, as it was written.
    Literal(Box<RawValue>),
    /// JSON in which nothing is looked at, as it was written.
    Escaped(Box<RawValue>),
    /// A value that comes from elsewhere.
    Reference(Reference),
    /// A text with values in it.
    Text(Vec<Part>),
    /// An object with references somewhere inside.
    Object(Vec<(String, Given)>),
    /// A list with references somewhere inside.
    Array(Vec<Given>),
}

impl Given {
    /// Every reference, in order.
    pub fn references(&self) -> Vec<&Reference> {
        let mut found = Vec::new();
        self.collect(&mut found);
        found
    }

    fn collect<'a>(&'a self, found: &mut Vec<&'a Reference>) {
        match self {
            Given::Literal(_) | Given::Escaped(_) => {}
            Given::Reference(reference) => found.push(reference),
            Given::Text(parts) => found.extend(parts.iter().filter_map(Part::reference)),
            Given::Object(members) => members.iter().for_each(|(_, value)| value.collect(found)),
            Given::Array(items) => items.iter().for_each(|item| item.collect(found)),
        }
    }

    /// The document's form of it.
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Given::Literal(raw) => out.push_str(raw.get()),
            Given::Escaped(raw) => {
                out.push_str("{\"$literal\":");
                out.push_str(raw.get());
                out.push('}');
            }
            Given::Reference(reference) => push_reference(reference, &str::to_owned, out),
            Given::Text(parts) => push_parts(parts, &str::to_owned, out),
            Given::Object(members) => between(out, ('{', '}'), members, |(key, value), out| {
                push_text(key, out);
                out.push(':');
                value.write(out);
            }),
            Given::Array(items) => between(out, ('[', ']'), items, Given::write),
        }
    }
}

impl Serialize for Given {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::new();
        self.write(&mut text);
        RawValue::from_string(text).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// Writes items with commas between brackets.
pub(crate) fn between<T>(
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
pub(crate) fn push_text(text: &str, out: &mut String) {
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&serde_json::Value::from(text).to_string());
    }
}

/// Whether JSON could be taken for something with references. Escaping too much does no harm, so a look at
/// the text is enough; a key or brace can also be spelled with `\u`.
pub(crate) fn needs_escape(json: &str) -> bool {
    ["{{", "\"$ref\"", "\"$literal\"", "\\u"].iter().any(|sign| json.contains(sign))
}

/// Writes a reference, tasks called as `name` says.
pub(crate) fn push_reference(reference: &Reference, name: &dyn Fn(&str) -> String, out: &mut String) {
    out.push_str("{\"$ref\":");
    push_text(&renamed(reference, name), out);
    out.push('}');
}

/// Writes a text with values in it.
pub(crate) fn push_parts(parts: &[Part], name: &dyn Fn(&str) -> String, out: &mut String) {
    let text: String = parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Reference(reference) => format!("{{{{{}}}}}", renamed(reference, name)),
        })
        .collect();
    push_text(&text, out);
}

fn renamed(reference: &Reference, name: &dyn Fn(&str) -> String) -> String {
    match &reference.of {
        Source::Task(id) => {
            Reference { of: Source::Task(name(id)), path: reference.path.clone() }.to_string()
        }
        Source::Arguments => reference.to_string(),
    }
}
