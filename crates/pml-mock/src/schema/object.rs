//! Objects.

use serde_json::{Map, Value};

use super::{Choice, Generator, Place};
use crate::names;
use crate::pattern::Pattern;
use crate::random::Random;

/// The keyword of a text that repeats other members and arguments: `"/{owner}/{repo}"`. PML's own, for connectors.
const TEMPLATE: &str = "x-template";
/// Maximum number of members that a `minProperties` makes an object have.
const MAX_MEMBERS: usize = 200;
/// Members of an object that is a map from any name to values.
const USUAL_ENTRIES: usize = 2;

impl Generator<'_> {
    /// An object that satisfies `schema`.
    pub(super) fn object(
        &self,
        schema: &Map<String, Value>,
        place: &Place,
        choice: Choice,
        random: &mut Random,
    ) -> Option<Value> {
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let size = |keyword: &str| {
            schema.get(keyword).and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok())
        };
        let max = size("maxProperties").unwrap_or(MAX_MEMBERS).max(required.len());
        let mut members = Map::new();
        for (name, of) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let is_required = required.contains(&name.as_str());
            let still_required = required.iter().filter(|name| !members.contains_key(**name)).count();
            let has_room = members.len() + still_required < max;
            if !is_required && (!has_room || self.leaves_out(name, place, choice)) {
                continue;
            }
            match self.value(of, &place.member(name)) {
                Some(value) => drop(members.insert(name.clone(), value)),
                None if is_required => return None,
                None => {}
            }
        }
        for name in required {
            if !members.contains_key(name) {
                let value = self.value(self.schema_of(schema, name)?, &place.member(name))?;
                members.insert(name.to_owned(), value);
            }
        }
        self.fill_up(schema, place, choice, random, &mut members)?;
        self.fill_templates(schema, &mut members);
        Some(Value::Object(members))
    }

    /// Whether an optional member is left out.
    fn leaves_out(&self, name: &str, place: &Place, choice: Choice) -> bool {
        self.is_minimal(place)
            || match choice {
                Choice::Usual | Choice::Highest => false,
                Choice::Lowest => true,
                // Every second one, for conditions that ask for one of several members.
                Choice::Other => self.variant > 3 && self.base.at(&place.path, 7).at(name, 0).below(2) == 0,
            }
    }

    /// The schema of a member that `properties` does not name; `None` if it is not allowed.
    fn schema_of<'s>(&self, schema: &'s Map<String, Value>, name: &str) -> Option<&'s Value> {
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let matching = patterns
            .into_iter()
            .flatten()
            .find(|(pattern, _)| regex::Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(name)));
        let others = || schema.get("additionalProperties").unwrap_or(&Value::Bool(true));
        Some(matching.map_or_else(others, |(_, of)| of)).filter(|of| **of != Value::Bool(false))
    }

    /// Adds members that the schema does not name: as many as it wants, and some if it is a map.
    fn fill_up(
        &self,
        schema: &Map<String, Value>,
        place: &Place,
        choice: Choice,
        random: &mut Random,
        members: &mut Map<String, Value>,
    ) -> Option<()> {
        let size = |keyword: &str| {
            schema.get(keyword).and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok())
        };
        let min = size("minProperties").unwrap_or(0).min(MAX_MEMBERS);
        let is_map = schema.get("properties").is_none()
            && (schema.get("additionalProperties").is_some_and(Value::is_object)
                || schema.get("patternProperties").is_some());
        let usual =
            if is_map && choice != Choice::Lowest && !self.is_minimal(place) { USUAL_ENTRIES } else { 0 };
        let wanted = usual.min(size("maxProperties").unwrap_or(MAX_MEMBERS)).max(min);
        for attempt in 0..wanted * 4 {
            if members.len() >= wanted {
                break;
            }
            let Some(name) = self.new_name(schema, attempt, random) else { continue };
            if members.contains_key(&name) {
                continue;
            }
            let Some(of) = self.schema_of(schema, &name) else { continue };
            if let Some(value) = self.value(of, &place.member(&name)) {
                members.insert(name, value);
            }
        }
        (members.len() >= min).then_some(())
    }

    /// A name for a member that the schema does not name.
    fn new_name(&self, schema: &Map<String, Value>, attempt: usize, random: &mut Random) -> Option<String> {
        if let Some(of) = schema.get("propertyNames").and_then(Value::as_object) {
            let listed = of.get("enum").and_then(Value::as_array).filter(|names| !names.is_empty());
            if let Some(listed) = listed {
                return listed[attempt % listed.len()].as_str().map(str::to_owned);
            }
            return Some(super::text::text(of, "", "key", Choice::Usual, random));
        }
        // Optional members of `properties` that were left out count too.
        let optional = schema.get("properties").and_then(Value::as_object);
        if let Some(name) = optional.and_then(|named| named.keys().nth(attempt)) {
            return Some(name.clone());
        }
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        match patterns.and_then(|patterns| patterns.keys().nth(attempt % patterns.len().max(1))) {
            Some(pattern) => Some(Pattern::parse(pattern)?.draw(random, 1, 40)),
            None => Some(names::key(attempt)),
        }
    }

    /// Fills the templates of the members in, now that all others are there.
    fn fill_templates(&self, schema: &Map<String, Value>, members: &mut Map<String, Value>) {
        for (name, of) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let Some(template) = of.get(TEMPLATE).and_then(Value::as_str) else { continue };
            if !members.contains_key(name) {
                continue;
            }
            if let Some(filled) = self.filled(template, members) {
                members.insert(name.clone(), Value::String(filled));
            }
        }
    }

    /// The template with each `{name}` replaced by an argument or a member of that name; `None` if one is missing.
    fn filled(&self, template: &str, members: &Map<String, Value>) -> Option<String> {
        let mut out = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}')?;
            out.push_str(before);
            let own = members.get(name).and_then(|value| match value {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            });
            out.push_str(&own.or_else(|| self.echo.text(name))?);
            rest = after;
        }
        out.push_str(rest);
        Some(out)
    }
}
