//! JSON that keeps its original bytes.
//!
//! A gateway that parses a value and prints it again changes numbers (`10e110`, forty digits) and drops members it
//! does not know. So objects are parsed one level at a time and every member keeps its bytes. [`Fields`] is the only
//! way in which PML edits a message that it forwards.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::name::is_plain;

/// Maximum nesting depth of values that enter the program.
pub const MAX_DEPTH: usize = 128;

/// The members of one JSON object, in order, each as raw bytes.
#[derive(Debug, Default, Clone)]
pub struct Fields<'a> {
    members: Vec<(Cow<'a, str>, Cow<'a, RawValue>)>,
}

impl<'a> Fields<'a> {
    /// Parses an object one level deep.
    ///
    /// # Errors
    /// The text is not a JSON object.
    pub fn parse(text: &'a str) -> Result<Fields<'a>, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The member `key`. If the object repeats it, the last one counts, as in every parser that PML talks to.
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.members.iter().rev().find(|(name, _)| name == key).map(|(_, value)| &**value)
    }

    /// The member `key` as `T`; `None` if it is absent, null or of another type.
    pub fn read<T: for<'de> Deserialize<'de>>(&self, key: &str) -> Option<T> {
        self.get(key).and_then(|raw| serde_json::from_str(raw.get()).ok())
    }

    /// Sets the member `key`, replacing an existing one.
    pub fn set(&mut self, key: impl Into<Cow<'a, str>>, value: Box<RawValue>) {
        let key = key.into();
        self.remove(&key);
        self.members.push((key, Cow::Owned(value)));
    }

    /// Sets the member `key` to a borrowed value, replacing an existing one.
    pub fn set_borrowed(&mut self, key: impl Into<Cow<'a, str>>, value: &'a RawValue) {
        let key = key.into();
        self.remove(&key);
        self.members.push((key, Cow::Borrowed(value)));
    }

    /// Sets the member `key` unless it exists.
    pub fn set_default(&mut self, key: impl Into<Cow<'a, str>>, value: &impl Serialize) {
        let key = key.into();
        if self.get(&key).is_none() {
            self.members.push((key, Cow::Owned(raw(value))));
        }
    }

    /// Removes the member `key` and returns whether it existed.
    pub fn remove(&mut self, key: &str) -> bool {
        let before = self.members.len();
        self.members.retain(|(name, _)| name != key);
        self.members.len() != before
    }

    /// All members, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.members.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Whether the object has no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The object as JSON text.
    pub fn to_raw(&self) -> Box<RawValue> {
        raw(self)
    }
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(8);
                while let Some((key, value)) = map.next_entry::<FieldKey<'de>, &'de RawValue>()? {
                    members.push((key.0, Cow::Borrowed(value)));
                }
                Ok(Fields { members })
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// A key that borrows from the text unless it has escapes; plain `Cow<str>` would always allocate.
struct FieldKey<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for FieldKey<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldKeyVisitor;
        impl<'de> Visitor<'de> for FieldKeyVisitor {
            type Value = FieldKey<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(FieldKey(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(FieldKey(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(FieldKeyVisitor)
    }
}

/// Serialises `value` as raw JSON.
///
/// # Panics
/// Only for a `Serialize` that fails or a map whose keys are not strings; PML's types are neither.
pub fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("types of this program serialise to JSON")
}

/// The text `{}`.
pub fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).expect("`{}` is JSON")
}

/// Nesting depth of arrays and objects in `text`, computed without recursion.
pub fn nesting_depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The canonical form of a JSON text: sorted keys, no white space, one escaping of strings. Numbers keep their
/// spelling, because a reader may distinguish `1` and `1.0`.
///
/// # Errors
/// The text is not JSON, or nests deeper than [`MAX_DEPTH`].
pub fn canonical_json(text: &str) -> Result<String, CanonicalError> {
    if nesting_depth(text) > MAX_DEPTH {
        return Err(CanonicalError::Deep);
    }
    let mut out = String::with_capacity(text.len());
    write_canonical(text, &mut out)?;
    Ok(out)
}

/// Why a text has no canonical form.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// The text nests deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    Deep,
    /// The text is not JSON.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
}

fn write_canonical(text: &str, out: &mut String) -> Result<(), serde_json::Error> {
    match text.trim_start().as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
            out.push('{');
            for (index, (key, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&serde_json::to_string(&key)?);
                out.push(':');
                write_canonical(value.get(), out)?;
            }
            out.push('}');
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text)?;
            out.push('[');
            for (index, item) in items.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item.get(), out)?;
            }
            out.push(']');
        }
        Some(b'"') => out.push_str(&serde_json::to_string(&serde_json::from_str::<String>(text)?)?),
        _ => out.push_str(serde_json::from_str::<&RawValue>(text)?.get()),
    }
    Ok(())
}

/// Removes control, zero-width and direction characters from the strings and keys of a JSON text. Without such
/// characters the text is unchanged, so that numbers keep their spelling.
pub fn strip_hidden_characters(json: &RawValue) -> Box<RawValue> {
    let text = json.get();
    if !text.contains("\\u") && text.chars().all(|c| shows(c) || c == '\r') {
        return json.to_owned();
    }
    match serde_json::from_str(text) {
        Ok(value) => raw(&strip(value)),
        Err(_) => json.to_owned(),
    }
}

fn shows(c: char) -> bool {
    is_plain(c) || c == '\n' || c == '\t'
}

fn strip(value: Value) -> Value {
    let clean = |mut text: String| {
        text.retain(shows);
        text
    };
    match value {
        Value::String(text) => Value::String(clean(text)),
        Value::Array(items) => items.into_iter().map(strip).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(key, value)| (clean(key), strip(value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_unknown_members_survive_an_edit() {
        let text = r#"{"n":10e110,"big":1234567890123456789012345678901234567890,"x":{"b":1,"a":[ ]}}"#;
        let mut fields = Fields::parse(text).unwrap();
        fields.set("added", raw(&true));
        assert_eq!(fields.to_raw().get(), text.replace("]}}", r#"]},"added":true}"#));
    }

    #[test]
    fn the_last_of_repeated_keys_counts() {
        let fields = Fields::parse(r#"{"a":1,"\u0061":2}"#).unwrap();
        assert_eq!(fields.get("a").unwrap().get(), "2");
    }

    #[test]
    fn depth_ignores_brackets_in_strings() {
        assert_eq!(nesting_depth(r#"{"a":"[[[\"{","b":[{}]}"#), 3);
    }

    #[test]
    fn canonical_form_sorts_keys_and_keeps_number_spelling() {
        let text = r#" { "b" : [ 1.0 , 10e110 ], "a" : "\u00e9\/" } "#;
        assert_eq!(canonical_json(text).unwrap(), r#"{"a":"é/","b":[1.0,10e110]}"#);
    }

    #[test]
    fn what_does_not_show_is_taken_out_and_the_rest_is_not_touched() {
        let json = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let harmless = json(r#"{"a":10e110,"b":"é"}"#);
        assert_eq!(strip_hidden_characters(&harmless).get(), harmless.get());
        let hidden = json(r#"{"a\u200b":["x\u200by\u001b[31m"]}"#);
        assert_eq!(strip_hidden_characters(&hidden).get(), r#"{"a":["xy[31m"]}"#);
    }

    #[test]
    fn canonical_refuses_a_nesting_bomb_without_recursing() {
        let bomb = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        assert!(matches!(canonical_json(&bomb), Err(CanonicalError::Deep)));
    }
}
