//! Checks single JSON values against the simple limits of a schema.

use serde_json::{Map, Value};

use super::JsonTypes;
use super::nearest::closest_names;
use super::words::name_words;

/// Hint for a number or boolean that is written as a string.
pub(super) fn unquoted(wanted: JsonTypes, given: Option<&Value>) -> Option<String> {
    let text = given?.as_str()?;
    let value: Value = serde_json::from_str(text).ok()?;
    let plain = matches!(value, Value::Number(_) | Value::Bool(_)) && wanted.meets(JsonTypes::of(&value));
    plain.then(|| format!("write `{}` without quotes", name_words(text)))
}

/// Hint with the allowed value most similar to a wrong one.
pub(super) fn near_value(values: &[Value], given: &Value) -> Option<String> {
    let near = closest_names(given.as_str()?, values.iter().filter_map(Value::as_str));
    let first = near.first()?;
    Some(format!("did you mean `{}`?", name_words(first)))
}

/// JSON equality, where `1` and `1.0` are the same number.
pub(super) fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same_value(a, b)))
        }
        (a, b) => a == b,
    }
}

/// Expected value in words, when a fraction is given where only `integer` is allowed.
pub(super) fn not_whole(map: &Map<String, Value>, value: &Value) -> Option<String> {
    let whole = |name: &Value| name == "integer";
    let fraction = value.as_f64().is_some_and(|number| number.fract() != 0.0);
    let wanted = match map.get("type")? {
        Value::Array(names) => names.iter().any(whole) && !names.iter().any(|name| name == "number"),
        name => whole(name),
    };
    (fraction && wanted).then(|| "a whole number".to_owned())
}

/// Expected value in words, when a number, text or list is outside its bounds.
pub(super) fn out_of_bounds(map: &Map<String, Value>, value: &Value) -> Option<String> {
    let limit = |key: &str| map.get(key).and_then(Value::as_f64);
    let strict = |key: &str| map.get(key) == Some(&Value::Bool(true));
    let counted = |what: &str, unit: &str, size: usize, least: &str, most: &str| {
        let size = size as f64;
        let few = limit(least).filter(|least| size < *least);
        let many = limit(most).filter(|most| size > *most);
        let units = |count: f64| if count == 1.0 { unit.to_owned() } else { format!("{unit}s") };
        few.map(|least| format!("{what} of at least {least} {}", units(least)))
            .or_else(|| many.map(|most| format!("{what} of at most {most} {}", units(most))))
    };
    match value {
        Value::Number(number) => {
            let number = number.as_f64()?;
            let above = |least: f64| number > least || (number == least && !strict("exclusiveMinimum"));
            let below = |most: f64| number < most || (number == most && !strict("exclusiveMaximum"));
            if let Some(least) = limit("minimum").filter(|least| !above(*least)) {
                return Some(format!("a number of at least {least}"));
            }
            if let Some(most) = limit("maximum").filter(|most| !below(*most)) {
                return Some(format!("a number of at most {most}"));
            }
            if let Some(least) = limit("exclusiveMinimum").filter(|least| number <= *least) {
                return Some(format!("a number above {least}"));
            }
            let most = limit("exclusiveMaximum").filter(|most| number >= *most)?;
            Some(format!("a number below {most}"))
        }
        Value::String(text) => counted("text", "character", text.chars().count(), "minLength", "maxLength"),
        Value::Array(items) => counted("a list", "item", items.len(), "minItems", "maxItems"),
        Value::Null | Value::Bool(_) | Value::Object(_) => None,
    }
}
