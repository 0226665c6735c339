//! Whether the declared output of one tool could fill the declared input of another.
//!
//! The check is deliberately strict. A member counts only under the same name (`userId` is `user_id`) and with
//! compatible types declared on both sides. An `enum` input is filled only by an output that is limited to some of its
//! values. At least one member must be distinctive: booleans and names that every tool uses prove nothing by
//! themselves.

use pml_model::structure::Coverage;
use serde_json::Value;

use super::nearest::tokens;
use super::{JsonTypes, MemberLookup, properties, property, required, types};

/// Members of a result that only wrap the actual value.
const WRAPPERS: [&str; 10] = [
    "content",
    "data",
    "output",
    "payload",
    "response",
    "result",
    "results",
    "structuredContent",
    "structured_content",
    "value",
];

/// Generic names, in joined form, that say nothing about their content.
const GENERIC: [&str; 26] = [
    "code",
    "count",
    "description",
    "error",
    "errors",
    "format",
    "id",
    "index",
    "kind",
    "limit",
    "message",
    "mode",
    "name",
    "offset",
    "ok",
    "page",
    "size",
    "state",
    "status",
    "success",
    "timestamp",
    "title",
    "total",
    "type",
    "value",
    "version",
];

/// How much of the input `input_root` a value of `output_root` could provide; `None` for nothing.
pub(crate) fn provides(output_root: &Value, input_root: &Value) -> Option<Coverage> {
    let given = given(output_root);
    let wanted = properties(input_root, input_root);
    let filled: Vec<&str> =
        wanted.into_iter().filter(|name| fills(&given, output_root, input_root, name)).collect();
    if !filled.iter().any(|name| is_telling(input_root, name)) {
        return None;
    }
    let required = required(input_root, input_root);
    match required.iter().filter(|name| filled.contains(*name)).count() {
        0 => Some(Coverage::Optional),
        count if count == required.len() => Some(Coverage::Strict),
        _ => Some(Coverage::Partial),
    }
}

/// Members of a result and of the value it wraps, by joined name.
fn given(root: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for name in properties(root, root) {
        let MemberLookup::Found(schema) = property(root, root, name) else { continue };
        found.push((joined(name), schema));
        if WRAPPERS.contains(&name) {
            let inner = properties(root, schema).into_iter();
            found.extend(inner.filter_map(|name| match property(root, schema, name) {
                MemberLookup::Found(schema) => Some((joined(name), schema)),
                MemberLookup::Unknown | MemberLookup::Absent { .. } => None,
            }));
        }
    }
    found
}

fn fills(given: &[(String, &Value)], output_root: &Value, input_root: &Value, name: &str) -> bool {
    let MemberLookup::Found(wanted) = property(input_root, input_root, name) else { return false };
    let name = joined(name);
    given.iter().any(|(other, schema)| *other == name && can_be(output_root, schema, input_root, wanted))
}

/// Whether a value of the output schema can be one of the input schema.
fn can_be(output_root: &Value, output: &Value, input_root: &Value, input: &Value) -> bool {
    let (from, to) = (declared(output_root, output), declared(input_root, input));
    if from == JsonTypes::ALL
        || to == JsonTypes::ALL
        || !from.without(JsonTypes::NULL).meets(to.without(JsonTypes::NULL))
    {
        return false;
    }
    match (values(output_root, output), values(input_root, input)) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(from), Some(to)) => from.iter().any(|value| to.contains(value)),
    }
}

/// Types of a schema, including those implied by `properties` or `items`.
fn declared(root: &Value, schema: &Value) -> JsonTypes {
    match types(root, schema) {
        JsonTypes::ALL if schema.get("properties").is_some() => JsonTypes::OBJECT,
        JsonTypes::ALL if schema.get("items").is_some() => JsonTypes::ARRAY,
        types => types,
    }
}

/// The only values a schema allows.
fn values<'s>(root: &'s Value, schema: &'s Value) -> Option<Vec<&'s Value>> {
    let place = super::SchemaPlace::new(root, schema);
    place.parts.iter().find_map(|part| match (part.map.get("const"), part.map.get("enum")) {
        (Some(value), _) => Some(vec![value]),
        (None, Some(Value::Array(values))) => Some(values.iter().collect()),
        _ => None,
    })
}

/// Whether a shared member of this name is distinctive.
fn is_telling(root: &Value, name: &str) -> bool {
    let MemberLookup::Found(schema) = property(root, root, name) else { return false };
    !GENERIC.contains(&joined(name).as_str())
        && types(root, schema).without(JsonTypes::NULL) != JsonTypes::BOOLEAN
}

fn joined(name: &str) -> String {
    tokens(name).concat()
}
