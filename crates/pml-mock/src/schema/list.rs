//! Lists.

use serde_json::{Map, Value};

use super::{Choice, Generator, Place};
use crate::random::Random;

/// Elements of a list of which the schema says nothing.
const USUAL_ELEMENTS: usize = 3;
/// Maximum number of elements that a `minItems` makes a list have.
const MAX_ELEMENTS: usize = 1_000;
/// Attempts to find an element that is not in the list yet.
const UNIQUE_ATTEMPTS: usize = 20;

impl Generator<'_> {
    /// A list that satisfies `schema`.
    pub(super) fn list(
        &self,
        schema: &Map<String, Value>,
        place: &Place,
        choice: Choice,
        random: &mut Random,
    ) -> Option<Value> {
        let size = |keyword: &str| {
            schema.get(keyword).and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok())
        };
        // Before draft 2020-12, `items` was a list of schemas and `additionalItems` the rest.
        let tuple = schema.get("prefixItems").or(schema.get("items")).and_then(Value::as_array);
        let tuple = tuple.map(Vec::as_slice).unwrap_or_default();
        let rest = match schema.get("items") {
            Some(Value::Array(_)) => schema.get("additionalItems"),
            rest => rest,
        };
        let contained = schema.get("contains").map(|_| size("minContains").unwrap_or(1)).unwrap_or(0);
        let min = size("minItems").unwrap_or(0).min(MAX_ELEMENTS);
        let mut max = size("maxItems").unwrap_or(MAX_ELEMENTS).min(MAX_ELEMENTS);
        if rest == Some(&Value::Bool(false)) {
            max = max.min(tuple.len());
        }
        let wanted = self.length(tuple.len(), place, choice, random);
        let length = wanted.max(contained).clamp(min.min(max), max);
        let unique = schema.get("uniqueItems").and_then(Value::as_bool).unwrap_or(false);
        let anything = Value::Bool(true);
        let mut elements: Vec<Value> = Vec::with_capacity(length.min(64));
        for index in 0..length {
            let of = match tuple.get(index) {
                Some(own) => own,
                None if index < tuple.len() + contained => {
                    schema.get("contains").or(rest).unwrap_or(&anything)
                }
                None => rest.unwrap_or(&anything),
            };
            match self.element(of, place, index, unique.then_some(elements.as_slice())) {
                Some(element) => elements.push(element),
                None if elements.len() >= min.max(contained) => break,
                None => return None,
            }
        }
        Some(Value::Array(elements))
    }

    /// How many elements a list has if its schema leaves it open.
    fn length(&self, tuple: usize, place: &Place, choice: Choice, random: &mut Random) -> usize {
        let minimal = self.is_minimal(place);
        let limit = self.echo.limit().unwrap_or(usize::MAX);
        match choice {
            Choice::Lowest => 0,
            // A tuple is a record whose members happen to have numbers.
            _ if tuple > 0 => tuple,
            _ if minimal && place.depth > 1 => 0,
            Choice::Usual => (USUAL_ELEMENTS - random.below(2)).min(limit),
            Choice::Other => 1.min(limit),
            Choice::Highest => (USUAL_ELEMENTS + 2).min(limit),
        }
    }

    /// One element; `None` if there is none that differs from all in `others`.
    fn element(
        &self,
        schema: &Value,
        place: &Place,
        index: usize,
        others: Option<&[Value]>,
    ) -> Option<Value> {
        let mut at = place.element(index);
        for attempt in 0..UNIQUE_ATTEMPTS {
            let value = self.value(schema, &at)?;
            if !others.unwrap_or_default().contains(&value) {
                return Some(value);
            }
            at.path = format!("{}/{index}~{attempt}", place.path);
        }
        // Of a small enumeration everything may be taken but one.
        let of = self.combined(schema, place, &mut { super::MAX_COMBINED })?;
        let others = others.unwrap_or_default();
        let mut listed = of.get("enum").and_then(Value::as_array).into_iter().flatten();
        listed.find(|value| !others.contains(value)).cloned().or_else(|| distinct(&of, others))
    }
}

/// A value of a simple type that is not in `others`: the first integer, text or flag that is missing.
fn distinct(schema: &Map<String, Value>, others: &[Value]) -> Option<Value> {
    let low = schema.get("minimum").and_then(Value::as_i64).unwrap_or(0);
    let candidates: Box<dyn Iterator<Item = Value>> = match schema.get("type").and_then(Value::as_str) {
        Some("integer" | "number") => Box::new((0..2_000).map(move |step| Value::from(low + step))),
        Some("boolean") => Box::new([true, false].into_iter().map(Value::from)),
        _ => return None,
    };
    candidates.into_iter().find(|value| !others.contains(value))
}
