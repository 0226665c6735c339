//! A literal or some words as the value of a parameter, in the form its earlier value had.
//!
//! Nothing is guessed: where it is not clear how the earlier value was made of what was written, or the
//! new value does not fit the schema, there is no value.

use serde_json::Value;

use super::literals::{Class, Literal};
use super::vocabulary as table;
use super::words::{self, fold};
use super::{dates, kinds};

/// Whether `literal` says `value`.
pub(super) fn says(literal: &Literal, value: &Value) -> bool {
    match value {
        Value::String(text) => {
            literal.text == *text
                || literal.bare() == text
                || literal.value.as_str() == Some(text)
                || (loose(literal.class)
                    && (same_case(&literal.text, text) || same_case(literal.bare(), text)))
                || (matches!(literal.class, Class::Name | Class::Date) && same_text(&literal.text, text))
                || (literal.class == Class::Path && literal.text.trim_start_matches("./") == text)
        }
        Value::Number(number) => {
            let (said, wanted) = (literal.value.as_f64(), number.as_f64());
            let counts = matches!(literal.class, Class::Number | Class::Id);
            counts && (said == wanted || (literal.unit() == "%" && said.map(|said| said / 100.0) == wanted))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Classes that are the same thing however they are capitalised.
fn loose(class: Class) -> bool {
    matches!(
        class,
        Class::Name
            | Class::Quoted
            | Class::Channel
            | Class::Handle
            | Class::Email
            | Class::Zone
            | Class::Date
            | Class::Host
    )
}

fn same_case(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

/// Whether both are the same but for case and accents.
pub(super) fn same_text(a: &str, b: &str) -> bool {
    fold(a) == fold(b)
}

/// What `new` is as the value of a parameter that was `before` when the intent said `old`.
pub(super) fn fill(
    old: &Literal,
    before: &Value,
    new: &Literal,
    schema: &Value,
    strict: Strict,
) -> Option<Value> {
    let value = match before {
        _ if !alike(old, new, strict) => return None,
        _ if old.class == Class::Date => date(old, before, new)?,
        Value::String(text) if *text == old.bare() && *text != old.text => Value::from(new.bare()),
        Value::String(text) if *text == old.text || text.as_str() == old.text.trim_start_matches("./") => {
            Value::from(new.text.as_str())
        }
        Value::String(text) => Value::from(recase(&old.text, text, &new.text)?),
        Value::Number(_) if !new.value.is_number() => return None,
        Value::Number(number) if number.as_f64() == old.value.as_f64() => new.value.clone(),
        Value::Number(_) => serde_json::Number::from_f64(new.value.as_f64()? / 100.0).map(Value::Number)?,
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    fit(value, schema)
}

/// Whether a parameter may be filled where only the exact same form is beyond doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strict {
    /// The plan changes something.
    Writes,
    /// The plan only reads.
    Reads,
}

/// Whether `new` can stand where `old` stood.
pub(super) fn alike(old: &Literal, new: &Literal, strict: Strict) -> bool {
    let numbers = |class, text: &str| class == Class::Number || (class == Class::Id && text.starts_with('#'));
    match (old.class, new.class) {
        (Class::Path, Class::Path) => same_form(&old.text, &new.text, strict),
        (Class::Quoted, Class::Name) | (Class::Name, Class::Quoted) => true,
        (Class::Name, Class::Name) => !table::MANNER.contains(&fold(&new.text).as_str()),
        (one, other) if numbers(one, &old.text) && numbers(other, &new.text) => old.unit() == new.unit(),
        (one, other) => one == other,
    }
}

fn same_form(old: &str, new: &str, strict: Strict) -> bool {
    let glob = |path: &str| path.contains(['*', '?']);
    let folder = |path: &str| path.ends_with(['/', '\\']);
    let file = |path: &str| {
        path.rsplit(['/', '\\']).next().is_some_and(|name| name.trim_start_matches('.').contains('.'))
    };
    let outside = |path: &str| path.starts_with(['/', '~']) || path.contains("..") || path.contains(":\\");
    let form = |path: &str| (folder(path), file(path), outside(path));
    glob(old) == glob(new) && (strict == Strict::Reads || form(old) == form(new))
}

/// A date is put in as text only where it is written alike, else as the day it says.
fn date(old: &Literal, before: &Value, new: &Literal) -> Option<Value> {
    let (was, is) = (dates::read(&old.text), dates::read(&new.text));
    let text = before.as_str()?;
    if was.day.as_deref() == Some(text) {
        return is.day.map(Value::from);
    }
    (was.shape == is.shape && same_text(text, &old.text)).then(|| Value::from(new.text.as_str()))
}

/// `new` in the case in which `before` gives `old`.
fn recase(old: &str, before: &str, new: &str) -> Option<String> {
    match before {
        _ if before == old => Some(new.to_owned()),
        _ if before == old.to_lowercase() => Some(new.to_lowercase()),
        _ if before == old.to_uppercase() => Some(new.to_uppercase()),
        _ => None,
    }
}

/// Plain words, in the place of the words of an earlier value.
pub(super) struct Swap<'a> {
    /// What the earlier intent said.
    pub(super) old: &'a str,
    /// The value it stood for.
    pub(super) before: &'a str,
    /// What the new intent says in its place.
    pub(super) new: &'a str,
    /// Values the parameter has had.
    pub(super) examples: &'a [Value],
    /// What the parameter may be.
    pub(super) schema: &'a Value,
    /// Whether the new words begin the sentence, where a capital means nothing.
    pub(super) begins: bool,
}

/// The value that plain words are, where the words of an earlier value were replaced by them.
pub(super) fn swap(swap: &Swap<'_>, strict: Strict) -> Option<Value> {
    if same_text(swap.old, swap.new) {
        return Some(Value::from(swap.before));
    }
    if let Some(allowed) = swap.schema.get("enum").and_then(Value::as_array) {
        return member(allowed, swap.new);
    }
    let (was, is) = (fold(swap.old), fold(swap.new));
    let kinds = (kinds::kind(&was), kinds::kind(&is));
    let known =
        swap.examples.iter().find(|example| example.as_str().is_some_and(|text| same_text(text, swap.new)));
    if let Some(known) = known {
        return fit(known.clone(), swap.schema);
    }
    if kinds.0 != kinds.1 || opposite(swap.old, swap.new) || table::MANNER.contains(&is.as_str()) {
        return None;
    }
    let named = |text: &str| {
        text.starts_with(char::is_uppercase) || text.contains(|c: char| c.is_ascii_digit() || c == '_')
    };
    let certain = kinds.0.is_some() || (named(swap.new) && !swap.begins);
    // A word that tools are asked with is rather another request than another value: `current weather`.
    let asking = swap.begins || (words::known(swap.new) && !words::known(swap.old));
    if !certain && (strict == Strict::Writes || named(swap.old) || asking) {
        return None;
    }
    fit(Value::from(recase(swap.old, swap.before, swap.new)?), swap.schema)
}

/// The allowed value that `text` names: by spelling, else by meaning where only one means it.
fn member(allowed: &[Value], text: &str) -> Option<Value> {
    let spelled = |value: &&Value| value.as_str().is_some_and(|name| same_text(name, text));
    if let Some(value) = allowed.iter().find(spelled) {
        return Some(value.clone());
    }
    let wanted = words::concept(text);
    let mut meant =
        allowed.iter().filter(|value| value.as_str().is_some_and(|name| words::concept(name) == wanted));
    meant.next().filter(|_| meant.next().is_none()).cloned()
}

fn opposite(a: &str, b: &str) -> bool {
    super::similar::opposites(&words::concept(a), &words::concept(b))
}

/// `value` as the schema has it: numbers as text or text as numbers where the type says so. `None` where
/// it does not fit.
pub(super) fn fit(value: Value, schema: &Value) -> Option<Value> {
    let value = match (schema.get("type").and_then(Value::as_str), value) {
        (Some("string"), Value::Number(number)) => Value::from(number.to_string()),
        (Some("string"), value) if !value.is_string() => return None,
        (Some("integer"), Value::Number(number)) => Value::from(whole(number.as_f64()?)?),
        (Some("integer" | "number"), Value::String(text)) => return fit(plain_number(&text)?, schema),
        (Some("integer" | "number"), value) if !value.is_number() => return None,
        (Some("boolean"), value) if !value.is_boolean() => return None,
        (Some("array"), value) if !value.is_array() => return None,
        (Some("object"), value) if !value.is_object() => return None,
        (_, value) => value,
    };
    let allowed = schema.get("enum").and_then(Value::as_array);
    if let Some(allowed) = allowed {
        return match &value {
            Value::String(text) => member(allowed, text),
            value => allowed.contains(value).then(|| value.clone()),
        };
    }
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let number = value.as_f64();
    let low = bound("minimum").zip(number).is_some_and(|(least, number)| number < least);
    let high = bound("maximum").zip(number).is_some_and(|(most, number)| number > most);
    (!low && !high).then_some(value)
}

fn plain_number(text: &str) -> Option<Value> {
    text.parse::<i64>().map(Value::from).ok().or_else(|| text.parse::<f64>().ok().map(Value::from))
}

#[expect(clippy::cast_possible_truncation, reason = "only whole numbers that a float holds exactly get here")]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0).then_some(number as i64)
}
