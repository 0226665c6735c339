//! Describes schemas, values and paths in messages for people.

use pml_model::name::{printable, truncate_text};
use pml_model::structure::PathStep;
use serde_json::{Map, Value};

use super::{resolve, unique};

/// Maximum number of names or values listed.
const MOST_LISTED: usize = 8;

/// Short description of a value: `the text "5"`, `the number 5`, `a list`.
pub(super) fn value_words(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the text {:?}", truncate_text(&printable(text), 40)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(map) => object_words(map.keys().map(String::as_str)),
    }
}

/// ``an object with `id` ``, or without names when there are none.
pub(super) fn object_words<'n>(names: impl Iterator<Item = &'n str>) -> String {
    match listed(names).as_str() {
        "" => "an object".to_owned(),
        names => format!("an object with {names}"),
    }
}

/// Description of what a schema requires: `text or null`, ``one of `a`, `b` ``, ``an object with `id` ``.
pub(super) fn schema_words(root: &Value, schema: &Value) -> String {
    let words = words(root, schema, 4);
    if words.is_empty() { "something else".to_owned() } else { alternatives(&words) }
}

/// ``a``, ``a or b``, ``a, b or c``.
pub(super) fn alternatives(words: &[String]) -> String {
    let words = unique(words.iter().map(String::as_str));
    match words.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}

fn words(root: &Value, schema: &Value, depth: u32) -> Vec<String> {
    let Some(map) = schema.as_object() else { return Vec::new() };
    if depth == 0 {
        return Vec::new();
    }
    let mut found = own_words(map);
    if found.is_empty() {
        let target = map.get("$ref").and_then(Value::as_str).and_then(|reference| resolve(root, reference));
        found.extend(target.into_iter().flat_map(|target| words(root, target, depth - 1)));
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if found.is_empty() {
            let branches = map.get(key).and_then(Value::as_array).into_iter().flatten();
            found.extend(branches.take(MOST_LISTED).flat_map(|branch| words(root, branch, depth - 1)));
        }
    }
    found
}

/// What a schema itself requires, one phrase per kind of value; empty when it only refers to others.
pub(super) fn own_words(map: &Map<String, Value>) -> Vec<String> {
    if let Some(value) = map.get("const") {
        return vec![quoted(value)];
    }
    if let Some(Value::Array(values)) = map.get("enum") {
        return vec![one_of(values)];
    }
    let mut found = match map.get("type") {
        Some(Value::String(name)) => vec![type_words(name, map)],
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).map(|name| type_words(name, map)).collect()
        }
        _ if map.contains_key("properties") => vec![type_words("object", map)],
        _ => Vec::new(),
    };
    if map.get("nullable") == Some(&Value::Bool(true)) && !found.is_empty() {
        found.push("null".to_owned());
    }
    found
}

fn type_words(name: &str, map: &Map<String, Value>) -> String {
    match name {
        "boolean" => "true or false".to_owned(),
        "number" => "a number".to_owned(),
        "integer" => "a whole number".to_owned(),
        "string" => "text".to_owned(),
        "array" => "a list".to_owned(),
        "object" => object_words(
            map.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str),
        ),
        other => name_words(other),
    }
}

/// The allowed values of an `enum`, as text.
pub(super) fn one_of(values: &[Value]) -> String {
    match values {
        [only] => quoted(only),
        _ => format!("one of {}", shown(values.iter(), quoted)),
    }
}

/// The first few names in backticks.
pub(super) fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    shown(names, |name| format!("`{}`", name_words(name)))
}

fn shown<T>(mut all: impl Iterator<Item = T>, word: impl Fn(T) -> String) -> String {
    let first: Vec<String> = all.by_ref().take(MOST_LISTED).map(word).collect();
    let (first, more) = (first.join(", "), all.count());
    if more == 0 { first } else { format!("{first} and {more} more") }
}

fn quoted(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{}`", name_words(text)),
        other => format!("`{}`", name_words(&other.to_string())),
    }
}

/// An untrusted name, made printable.
pub(super) fn name_words(name: &str) -> String {
    truncate_text(&printable(name), 60)
}

/// Path as text: `options.tags[0]["odd key"]`; empty for the whole value.
pub(super) fn path_words(path: &[PathStep]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            PathStep::Index(index) => text += &format!("[{index}]"),
            PathStep::Any => text += "[]",
            PathStep::Key(name) if !is_plain(name) => text += &format!("[{:?}]", name_words(name)),
            PathStep::Key(name) if text.is_empty() => text += &name_words(name),
            PathStep::Key(name) => text += &format!(".{}", name_words(name)),
        }
    }
    text
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'))
}
