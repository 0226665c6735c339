//! Observed shapes of values: types, optional members, a few short examples.
//!
//! Values are merged one after the other, or as shapes of several; the same values in the same order give the same
//! shape. The size of a shape is bounded, whatever values it is given.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

/// Maximum depth to which values are inspected.
const DEPTH: usize = 8;
/// Maximum number of members of one object that are distinguished.
const MOST_MEMBERS: usize = 60;
/// Maximum number of members and elements in a whole shape.
const MOST_PLACES: usize = 200;
/// Maximum number of elements of an array that are inspected.
const MOST_ELEMENTS: usize = 100;
/// Maximum length of a member name, in bytes.
const LONGEST_NAME: usize = 80;
/// Maximum number of examples per place.
const MOST_EXAMPLES: usize = 3;
/// Maximum length of an example, in bytes.
const LONGEST_EXAMPLE: usize = 40;
/// Maximum size of a schema, in bytes.
const LARGEST_SCHEMA: usize = 3 * 1024;

/// The observed shape of the values at one place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedShape {
    /// Number of values.
    #[serde(rename = "n")]
    count: u64,
    /// Bit set of their types, as in `TYPES`.
    #[serde(rename = "t")]
    types: u8,
    /// Number of objects among them.
    #[serde(rename = "o", default, skip_serializing_if = "is_none")]
    objects: u64,
    /// Members of the objects, in the order in which they were first seen.
    #[serde(rename = "m", default, skip_serializing_if = "Vec::is_empty")]
    members: Vec<(String, ObservedShape)>,
    /// The combined elements of the arrays.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    elements: Option<Box<ObservedShape>>,
    /// A few short values, as examples.
    #[serde(rename = "x", default, skip_serializing_if = "Vec::is_empty")]
    examples: Vec<Value>,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// The bits of the types, and their names in JSON Schema.
const TYPES: [(u8, &str); 7] = [
    (NULL, "null"),
    (BOOLEAN, "boolean"),
    (INTEGER, "integer"),
    (NUMBER, "number"),
    (STRING, "string"),
    (ARRAY, "array"),
    (OBJECT, "object"),
];
const NULL: u8 = 1;
const BOOLEAN: u8 = 1 << 1;
const INTEGER: u8 = 1 << 2;
const NUMBER: u8 = 1 << 3;
const STRING: u8 = 1 << 4;
const ARRAY: u8 = 1 << 5;
const OBJECT: u8 = 1 << 6;

impl ObservedShape {
    /// The shape of one value.
    pub fn of(value: &Value) -> ObservedShape {
        let mut shape = ObservedShape::default();
        shape.see(value, DEPTH, &mut { MOST_PLACES });
        shape
    }

    /// Number of values it was made from.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Merges another shape into this one.
    pub fn merge(&mut self, other: &ObservedShape) {
        let mut left = MOST_PLACES.saturating_sub(self.places());
        self.join(other, &mut left);
    }

    /// The shape as a JSON Schema. If it would be too large, examples or levels are left out.
    pub fn schema(&self) -> Value {
        let fits = |schema: &Value| schema.to_string().len() <= LARGEST_SCHEMA;
        let whole = self.written(DEPTH, true);
        if fits(&whole) {
            return whole;
        }
        let bare = (1..=DEPTH).rev().map(|depth| self.written(depth, false)).find(fits);
        bare.unwrap_or_else(|| self.written(0, false))
    }

    /// Number of places in the shape.
    fn places(&self) -> usize {
        let members: usize = self.members.iter().map(|(_, shape)| 1 + shape.places()).sum();
        members + self.elements.as_ref().map_or(0, |elements| 1 + elements.places())
    }

    fn see(&mut self, value: &Value, depth: usize, left: &mut usize) {
        self.count += 1;
        self.types |= type_of(value);
        self.add_example(value);
        match value {
            Value::Object(object) => {
                self.objects += 1;
                if depth > 0 {
                    for (place, (name, value)) in object.iter().enumerate() {
                        if let Some(member) = self.member(place, name, left) {
                            member.see(value, depth - 1, left);
                        }
                    }
                }
            }
            Value::Array(array) if depth > 0 && !array.is_empty() => {
                if let Some(elements) = self.element(left) {
                    for value in array.iter().take(MOST_ELEMENTS) {
                        elements.see(value, depth - 1, left);
                    }
                }
            }
            Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn join(&mut self, other: &ObservedShape, left: &mut usize) {
        self.count += other.count;
        self.types |= other.types;
        self.objects += other.objects;
        for example in &other.examples {
            self.add_example(example);
        }
        for (place, (name, shape)) in other.members.iter().enumerate() {
            if let Some(member) = self.member(place, name, left) {
                member.join(shape, left);
            }
        }
        if let Some(shape) = &other.elements
            && let Some(elements) = self.element(left)
        {
            elements.join(shape, left);
        }
    }

    /// The member `name`, looked for first at index `place`, where other objects had it; `None` if there is no room.
    fn member(&mut self, place: usize, name: &str, left: &mut usize) -> Option<&mut ObservedShape> {
        let is_it = |member: &(String, ObservedShape)| member.0 == name;
        let found = match self.members.get(place) {
            Some(member) if is_it(member) => Some(place),
            _ => self.members.iter().position(is_it),
        };
        let place = match found {
            Some(place) => place,
            None if *left == 0 || self.members.len() >= MOST_MEMBERS || name.len() > LONGEST_NAME => {
                return None;
            }
            None => {
                *left -= 1;
                self.members.push((name.to_owned(), ObservedShape::default()));
                self.members.len() - 1
            }
        };
        self.members.get_mut(place).map(|(_, shape)| shape)
    }

    fn element(&mut self, left: &mut usize) -> Option<&mut ObservedShape> {
        if self.elements.is_none() {
            *left = left.checked_sub(1)?;
        }
        Some(self.elements.get_or_insert_default())
    }

    fn add_example(&mut self, value: &Value) {
        let is_short = match value {
            Value::String(text) => text.len() <= LONGEST_EXAMPLE,
            Value::Number(_) | Value::Bool(_) => true,
            Value::Null | Value::Array(_) | Value::Object(_) => false,
        };
        if is_short && self.examples.len() < MOST_EXAMPLES && !self.examples.contains(value) {
            self.examples.push(value.clone());
        }
    }

    fn written(&self, depth: usize, examples: bool) -> Value {
        let mut schema = Map::new();
        if let Some(types) = self.types_written() {
            schema.insert("type".to_owned(), types);
        }
        if let Some(depth) = depth.checked_sub(1) {
            if !self.members.is_empty() {
                let written =
                    self.members.iter().map(|(name, shape)| (name.clone(), shape.written(depth, examples)));
                schema.insert("properties".to_owned(), Value::Object(written.collect()));
                let always = self.members.iter().filter(|(_, shape)| shape.count == self.objects);
                let required: Vec<Value> = always.map(|(name, _)| Value::String(name.clone())).collect();
                if !required.is_empty() {
                    schema.insert("required".to_owned(), Value::Array(required));
                }
            }
            if let Some(elements) = &self.elements {
                schema.insert("items".to_owned(), elements.written(depth, examples));
            }
        }
        if examples && !self.examples.is_empty() {
            schema.insert("examples".to_owned(), Value::Array(self.examples.clone()));
        }
        Value::Object(schema)
    }

    fn types_written(&self) -> Option<Value> {
        // Integers are numbers, so `number` covers `integer`.
        let types = if self.types & NUMBER == 0 { self.types } else { self.types & !INTEGER };
        let mut words: Vec<Value> =
            TYPES.iter().filter(|(bit, _)| types & bit != 0).map(|(_, word)| Value::from(*word)).collect();
        match words.len() {
            0 => None,
            1 => words.pop(),
            _ => Some(Value::Array(words)),
        }
    }
}

fn type_of(value: &Value) -> u8 {
    match value {
        Value::Null => NULL,
        Value::Bool(_) => BOOLEAN,
        Value::Number(number) => number_type(number),
        Value::String(_) => STRING,
        Value::Array(_) => ARRAY,
        Value::Object(_) => OBJECT,
    }
}

fn number_type(number: &Number) -> u8 {
    if number.is_f64() { NUMBER } else { INTEGER }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn folded(values: &[Value]) -> ObservedShape {
        let mut shape = ObservedShape::default();
        values.iter().for_each(|value| shape.merge(&ObservedShape::of(value)));
        shape
    }

    #[test]
    fn members_that_were_missing_once_are_not_required() {
        let shape = folded(&[
            json!({ "id": 1, "name": "a", "tags": ["x"] }),
            json!({ "id": 2.5, "tags": [], "owner": null }),
            json!({ "id": 3, "tags": ["y", 1] }),
        ]);
        let expected = json!({
            "type": "object",
            "properties": {
                "id": { "type": "number", "examples": [1, 2.5, 3] },
                "name": { "type": "string", "examples": ["a"] },
                "tags": { "type": "array", "items": { "type": ["integer", "string"], "examples": ["x", "y", 1] } },
                "owner": { "type": "null" },
            },
            "required": ["id", "tags"],
        });
        assert_eq!(shape.schema(), expected);
        assert_eq!(shape.count(), 3);
    }

    #[test]
    fn elements_of_an_array_share_a_schema() {
        let shape = ObservedShape::of(&json!([{ "a": 1 }, { "a": 2, "b": true }, "text"]));
        let expected = json!({
            "type": "array",
            "items": {
                "type": ["string", "object"],
                "properties": {
                    "a": { "type": "integer", "examples": [1, 2] },
                    "b": { "type": "boolean", "examples": [true] },
                },
                "required": ["a"],
                "examples": ["text"],
            },
        });
        assert_eq!(shape.schema(), expected);
    }

    #[test]
    fn a_shape_survives_being_stored() {
        let shape = folded(&[json!({ "a": [{ "b": 0.1 }, null] }), json!("text"), json!(7)]);
        let text = serde_json::to_string(&shape).unwrap();
        let stored: ObservedShape = serde_json::from_str(&text).unwrap();
        assert_eq!(stored, shape);
        assert_eq!(serde_json::to_string(&stored).unwrap(), text);
    }

    #[test]
    fn there_is_an_end_to_what_is_kept() {
        let wide: Map<String, Value> =
            (0..1000).map(|number| (format!("m{number}"), json!(number))).collect();
        let mut deep = json!("bottom");
        for _ in 0..50 {
            deep = json!({ "below": deep, "wide": wide.clone() });
        }
        let long = json!({ "x".repeat(100): 1, "text": "y".repeat(100) });
        let shape = folded(&[Value::Object(wide), deep, long, json!({ "late": 1 })]);
        assert!(shape.places() <= MOST_PLACES);
        assert_eq!(shape.members.len(), MOST_MEMBERS);
        let schema = shape.schema();
        assert!(schema.to_string().len() <= LARGEST_SCHEMA, "{}", schema.to_string().len());
        assert_eq!(schema["properties"]["m1"]["type"], "integer");
    }
}
