//! One schema from several that a value must satisfy together.

use serde_json::{Map, Value};

/// A schema that values of both `left` and `right` satisfy. Keywords that cannot be joined are taken from `left`; the
/// generated value is validated in the end.
pub(super) fn merge(mut left: Map<String, Value>, right: Map<String, Value>) -> Map<String, Value> {
    for (keyword, theirs) in right {
        let joined = match left.remove(&keyword) {
            None => theirs,
            Some(ours) => join(&keyword, ours, theirs),
        };
        left.insert(keyword, joined);
    }
    left
}

fn join(keyword: &str, ours: Value, theirs: Value) -> Value {
    match (keyword, ours, theirs) {
        (
            "properties" | "patternProperties" | "$defs" | "definitions",
            Value::Object(mut ours),
            Value::Object(theirs),
        ) => {
            for (name, schema) in theirs {
                let joined = match ours.remove(&name) {
                    None => schema,
                    Some(known) => both(known, schema),
                };
                ours.insert(name, joined);
            }
            Value::Object(ours)
        }
        ("items" | "additionalProperties" | "contains" | "propertyNames", ours, theirs) => both(ours, theirs),
        ("required", Value::Array(mut ours), Value::Array(theirs)) => {
            ours.extend(theirs.into_iter().filter(|name| !ours.contains(name)).collect::<Vec<_>>());
            Value::Array(ours)
        }
        ("enum" | "examples", Value::Array(ours), Value::Array(theirs)) => {
            let common: Vec<Value> = ours.iter().filter(|value| theirs.contains(value)).cloned().collect();
            Value::Array(if common.is_empty() { ours } else { common })
        }
        ("type", ours, theirs) => join_types(ours, &theirs),
        ("minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties", ours, theirs) => {
            if theirs.as_f64() > ours.as_f64() {
                theirs
            } else {
                ours
            }
        }
        ("maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties", ours, theirs) => {
            if theirs.as_f64() < ours.as_f64() {
                theirs
            } else {
                ours
            }
        }
        ("uniqueItems", Value::Bool(ours), Value::Bool(theirs)) => Value::Bool(ours || theirs),
        (_, ours, _) => ours,
    }
}

/// A schema of the values that satisfy both.
fn both(ours: Value, theirs: Value) -> Value {
    match (ours, theirs) {
        (Value::Bool(true), other) | (other, Value::Bool(true)) => other,
        (Value::Bool(false), _) | (_, Value::Bool(false)) => Value::Bool(false),
        (ours, theirs) if ours == theirs => ours,
        // Joined when a value is generated, since either may be a reference.
        (ours, theirs) => serde_json::json!({"allOf": [ours, theirs]}),
    }
}

fn join_types(ours: Value, theirs: &Value) -> Value {
    let (left, right) = (types(&ours), types(theirs));
    let accepts =
        |set: &[&str], name: &str| set.contains(&name) || (name == "integer" && set.contains(&"number"));
    let mut common: Vec<&str> = left.iter().filter(|name| accepts(&right, name)).copied().collect();
    common.extend(right.iter().filter(|name| accepts(&left, name) && !left.contains(name)));
    match common.as_slice() {
        [] => ours.clone(),
        [one] => Value::from(*one),
        several => Value::from(several.to_vec()),
    }
}

/// The names in a `type` keyword.
pub(super) fn types(keyword: &Value) -> Vec<&str> {
    match keyword {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}
