//! Copies a small part of a tool's schema for a lifted parameter.

use pml_model::name::truncate_text;
use serde_json::{Map, Value, json};
use smallvec::SmallVec;

use super::{JsonTypes, resolve, types};

/// Maximum number of `enum` values that are copied; a longer list is left out.
const MOST_VALUES: usize = 50;
/// Maximum number of characters of a description.
const DESCRIPTION: usize = 200;

/// A self-contained copy of `schema`: type, values, format, description and the type of its items. References are
/// resolved, alternatives become a list of types.
pub(crate) fn parameter_schema(root: &Value, schema: &Value) -> Value {
    let mut copy = outline(root, schema);
    let items = said(&stands_for(root, schema), "items").filter(|items| items.is_object());
    if let Some(items) = items {
        let mut items = outline(root, items);
        items.remove("description");
        copy.insert("items".to_owned(), Value::Object(items));
    }
    Value::Object(copy)
}

fn outline(root: &Value, schema: &Value) -> Map<String, Value> {
    let mut copy = Map::new();
    let schemas = stands_for(root, schema);
    if let Some(kind) = type_of(root, schema, &schemas) {
        copy.insert("type".to_owned(), kind);
    }
    for key in ["enum", "const", "format"] {
        if let Some(value) = said(&schemas, key).filter(|value| is_small(value)) {
            copy.insert(key.to_owned(), value.clone());
        }
    }
    // An `enum` with `null` as an alternative must still admit it.
    if let Some(Value::Array(values)) = copy.get_mut("enum")
        && types(root, schema).meets(JsonTypes::NULL)
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if let Some(text) = said(&schemas, "description").and_then(Value::as_str) {
        copy.insert("description".to_owned(), Value::String(truncate_text(text.trim(), DESCRIPTION)));
    }
    copy
}

fn is_small(value: &Value) -> bool {
    match value {
        Value::Array(values) => values.len() <= MOST_VALUES && values.iter().all(|value| !is_nested(value)),
        value => !is_nested(value),
    }
}

fn is_nested(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

/// The schema itself, then repeatedly the single schema that the last one stands for; at most four.
fn stands_for<'s>(root: &'s Value, schema: &'s Value) -> SmallVec<[&'s Value; 4]> {
    std::iter::successors(Some(schema), |here| sole(root, here)).take(4).collect()
}

/// Value of `key` in the first schema that has it.
fn said<'s>(schemas: &[&'s Value], key: &str) -> Option<&'s Value> {
    schemas.iter().find_map(|schema| schema.get(key))
}

/// The single schema that `schema` stands for: a reference, or one alternative beside `null`.
fn sole<'s>(root: &'s Value, schema: &'s Value) -> Option<&'s Value> {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return resolve(root, reference);
    }
    let branches = ["allOf", "anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.as_array())?;
    let mut real = branches.iter().filter(|branch| branch.get("type").is_none_or(|kind| kind != "null"));
    real.next().filter(|_| real.next().is_none())
}

fn type_of(root: &Value, schema: &Value, schemas: &[&Value]) -> Option<Value> {
    let allowed = types(root, schema);
    if allowed == JsonTypes::ALL {
        return said(schemas, "properties").map(|_| json!("object"));
    }
    let whole = said(schemas, "type").is_some_and(|kind| match kind {
        Value::Array(names) => names.iter().any(|name| name == "integer"),
        name => name == "integer",
    });
    let names = [
        (JsonTypes::STRING, "string"),
        (JsonTypes::NUMBER, if whole { "integer" } else { "number" }),
        (JsonTypes::BOOLEAN, "boolean"),
        (JsonTypes::ARRAY, "array"),
        (JsonTypes::OBJECT, "object"),
        (JsonTypes::NULL, "null"),
    ];
    let names: Vec<&str> =
        names.into_iter().filter(|(kind, _)| allowed.meets(*kind)).map(|(_, name)| name).collect();
    match names.as_slice() {
        [] => None,
        [only] => Some(Value::from(*only)),
        several => Some(json!(several)),
    }
}
