//! What a task is given: raw JSON with references in it.
//!
//! Whatever holds no reference stays the bytes that were written. `{"$ref": "t1.content"}` and a text that is
//! `{{t1.content}}` and nothing else stand for the value; inside a longer text the value is put into the text;
//! nothing inside `{"$literal": …}` is looked at.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::reference::{Part, Reference, Source};
use super::text::write_canonical;

/// What a task is given.
#[derive(Debug, Clone)]
pub enum Given {
    /// JSON without references, as it was written.
    Literal(Box<RawValue>),
    /// A value that comes from elsewhere.
    Reference(Reference),
    /// A text with values in it.
    Text(Vec<Part>),
    /// An object with references somewhere inside.
    Object(Vec<(String, Given)>),
    /// A list with references somewhere inside.
    Array(Vec<Given>),
}

/// How literals are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// Byte for byte.
    AsWritten,
    /// The same for every spelling of a value.
    Canonical,
}

impl Given {
    /// Every reference, in order.
    pub fn references(&self) -> Vec<&Reference> {
        let mut found = Vec::new();
        self.collect(&mut found);
        found
    }

    /// The same, with no more structure than references need: what holds none becomes a literal.
    pub(crate) fn collapsed(self) -> Given {
        let literal = |value: &Given| matches!(value, Given::Literal(_));
        let all = match &self {
            Given::Object(members) => members.iter().all(|(_, value)| literal(value)),
            Given::Array(items) => items.iter().all(literal),
            Given::Literal(_) | Given::Reference(_) | Given::Text(_) => false,
        };
        if !all {
            return self;
        }
        let mut text = String::new();
        match &self {
            Given::Object(members) => between(&mut text, ('{', '}'), members, |(key, value), out| {
                push_text(key, out);
                out.push(':');
                value.push_literal(out);
            }),
            Given::Array(items) => between(&mut text, ('[', ']'), items, Given::push_literal),
            Given::Literal(_) | Given::Reference(_) | Given::Text(_) => {}
        }
        Given::Literal(RawValue::from_string(text).expect("put together from JSON values and JSON strings"))
    }

    fn push_literal(&self, out: &mut String) {
        if let Given::Literal(raw) = self {
            out.push_str(raw.get());
        }
    }

    fn collect<'a>(&'a self, found: &mut Vec<&'a Reference>) {
        match self {
            Given::Literal(_) => {}
            Given::Reference(reference) => found.push(reference),
            Given::Text(parts) => found.extend(parts.iter().filter_map(Part::reference)),
            Given::Object(members) => members.iter().for_each(|(_, value)| value.collect(found)),
            Given::Array(items) => items.iter().for_each(|item| item.collect(found)),
        }
    }

    /// The document's form of it, tasks called as `name` says.
    pub(crate) fn write(&self, name: &dyn Fn(&str) -> String, spelling: Spelling, out: &mut String) {
        match self {
            Given::Literal(raw) if spelling == Spelling::Canonical => {
                out.push_str("{\"$literal\":");
                write_canonical(raw.get(), out);
                out.push('}');
            }
            Given::Literal(raw) if needs_escape(raw.get()) => {
                out.push_str("{\"$literal\":");
                out.push_str(raw.get());
                out.push('}');
            }
            Given::Literal(raw) => out.push_str(raw.get()),
            Given::Reference(reference) => {
                out.push_str("{\"$ref\":");
                push_text(&renamed(reference, name), out);
                out.push('}');
            }
            Given::Text(parts) => {
                let text: String = parts
                    .iter()
                    .map(|part| match part {
                        Part::Text(text) => text.clone(),
                        Part::Reference(reference) => format!("{{{{{}}}}}", renamed(reference, name)),
                    })
                    .collect();
                push_text(&text, out);
            }
            Given::Object(members) => {
                let mut members: Vec<&(String, Given)> = members.iter().collect();
                if spelling == Spelling::Canonical {
                    members.sort_by_key(|(key, _)| key);
                }
                between(out, ('{', '}'), &members, |(key, value), out| {
                    push_text(key, out);
                    out.push(':');
                    value.write(name, spelling, out);
                });
            }
            Given::Array(items) => {
                between(out, ('[', ']'), items, |item, out| item.write(name, spelling, out));
            }
        }
    }
}

impl Serialize for Given {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::new();
        self.write(&str::to_owned, Spelling::AsWritten, &mut text);
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

fn renamed(reference: &Reference, name: &dyn Fn(&str) -> String) -> String {
    match &reference.of {
        Source::Task(id) => {
            Reference { of: Source::Task(name(id)), path: reference.path.clone() }.to_string()
        }
        Source::Arguments => reference.to_string(),
    }
}
