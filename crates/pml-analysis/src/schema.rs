//! Queries on JSON Schemas of tools: members, required members, whether a value is allowed.
//!
//! Schemas are untrusted. Every query takes bounded work whatever the schema refers to. What a schema leaves open, or
//! expresses in a way not supported here (`not`, `if`, patterns, references to other documents), never counts against a
//! program.

mod check;
mod nearest;
mod parameter;
mod provide;
mod values;
mod words;

use std::ptr;

use pml_model::structure::PathStep;
use serde_json::{Map, Value};

pub(crate) use check::check_arguments;
pub use nearest::closest_names;
pub(crate) use parameter::parameter_schema;
pub(crate) use provide::provides;

/// Members of every object, whatever its schema.
const INHERITED: [&str; 8] = [
    "__proto__",
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
];

/// Maximum number of schemas that apply to one place (through references and alternatives).
const MOST_PARTS: usize = 256;

/// What a schema says about a member.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MemberLookup<'s> {
    /// Schema of the member.
    Found(&'s Value),
    /// Nothing certain: the member may exist, with any type.
    Unknown,
    /// The schema names other members, and not this one.
    Absent {
        /// Whether the schema forbids further members.
        closed: bool,
        /// The members it names.
        known: Vec<&'s str>,
    },
}

/// What `schema` says about its member `name`. References are looked up in `root`.
pub(crate) fn property<'s>(root: &'s Value, schema: &'s Value, name: &str) -> MemberLookup<'s> {
    if let Some(found) = plain_member(schema, name) {
        return MemberLookup::Found(found);
    }
    let place = SchemaPlace::new(root, schema);
    let types = types(root, schema);
    let other_kinds = JsonTypes::ALL.without(JsonTypes::OBJECT).without(JsonTypes::NULL);
    // Text and lists have members of their own, such as `length`.
    if INHERITED.contains(&name) || (types != JsonTypes::ALL && types.meets(other_kinds)) {
        return MemberLookup::Unknown;
    }
    place.member(name)
}

/// Fast path: a member of a schema that is only a list of members, as most are.
fn plain_member<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    let map = schema.as_object()?;
    let mut properties = None;
    for (key, value) in map {
        match key.as_str() {
            "properties" => properties = Some(value),
            "type" if value != "object" => return None,
            "type"
            | "required"
            | "additionalProperties"
            | "title"
            | "description"
            | "$schema"
            | "$defs"
            | "definitions" => {}
            _ => return None,
        }
    }
    member_of(properties?.as_object()?, name)
}

/// A member of an object. Most objects are small, where a linear search is faster than hashing.
fn member_of<'s>(map: &'s Map<String, Value>, name: &str) -> Option<&'s Value> {
    if map.len() > 8 {
        return map.get(name);
    }
    map.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// What `schema` says about the part of its values at `step`.
pub(crate) fn step_into<'s>(root: &'s Value, schema: &'s Value, step: &PathStep) -> MemberLookup<'s> {
    match step {
        PathStep::Key(name) => property(root, schema, name),
        PathStep::Index(index) => SchemaPlace::new(root, schema).item(usize::try_from(*index).ok()),
        PathStep::Any => SchemaPlace::new(root, schema).item(None),
    }
}

/// The schema at the end of a path; `None` when nothing certain is known. The error tells how many steps exist.
pub(crate) fn follow<'s>(
    root: &'s Value,
    schema: &'s Value,
    path: &[PathStep],
) -> Result<Option<&'s Value>, MissingMember<'s>> {
    let mut here = schema;
    for (taken, step) in path.iter().enumerate() {
        match step_into(root, here, step) {
            MemberLookup::Found(next) => here = next,
            MemberLookup::Unknown => return Ok(None),
            MemberLookup::Absent { closed, known } => return Err(MissingMember { taken, closed, known }),
        }
    }
    Ok(Some(here))
}

/// A path to a missing member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissingMember<'s> {
    /// Number of steps that exist: the next one is missing.
    pub(crate) taken: usize,
    /// Whether the schema forbids the member; otherwise it only names others.
    pub(crate) closed: bool,
    /// The members that exist there.
    pub(crate) known: Vec<&'s str>,
}

/// Members that every value of `schema` must have, in order.
pub(crate) fn required<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s str> {
    if let Some(map) = alone(root, schema) {
        let names = member_of(map, "required").and_then(Value::as_array).into_iter().flatten();
        return unique(names.filter_map(Value::as_str));
    }
    let place = SchemaPlace::new(root, schema);
    let lists = place.parts.iter().filter(|part| part.certain).filter_map(|part| part.map.get("required"));
    unique(lists.filter_map(Value::as_array).flatten().filter_map(Value::as_str))
}

/// Members that `schema` names, including its alternatives, in order.
pub(crate) fn properties<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s str> {
    SchemaPlace::new(root, schema).known()
}

/// Whether only certain values are allowed.
pub(crate) fn is_enum(root: &Value, schema: &Value) -> bool {
    let limits = |map: &Map<String, Value>| map.contains_key("enum") || map.contains_key("const");
    if let Some(map) = alone(root, schema) {
        return limits(map);
    }
    let place = SchemaPlace::new(root, schema);
    if place.parts.iter().any(|part| part.certain && limits(part.map)) {
        return true;
    }
    // Some generators write an enum as `anyOf` of constants and null.
    let mut leaves = place.parts.iter().filter(|part| !part.certain && is_leaf(part.map)).peekable();
    leaves.peek().is_some()
        && leaves.all(|part| limits(part.map) || part.map.get("type").is_some_and(|kind| kind == "null"))
}

/// A schema without references and alternatives, as most are.
fn alone<'s>(root: &Value, schema: &'s Value) -> Option<&'s Map<String, Value>> {
    schema.as_object().filter(|map| !leads_on(map) && !is_foreign(root, map))
}

/// Whether it constrains values itself rather than through other schemas.
fn is_leaf(map: &Map<String, Value>) -> bool {
    !["$ref", "allOf", "anyOf", "oneOf"].iter().any(|key| map.contains_key(*key))
}

fn unique<'s>(names: impl Iterator<Item = &'s str>) -> Vec<&'s str> {
    let mut found = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for name in names {
        // A linear search is faster as long as there are few, as is usual.
        let is_new = match found.len() {
            0..16 => !found.contains(&name),
            _ => {
                seen.extend(found[seen.len()..].iter().copied());
                !seen.contains(name)
            }
        };
        if is_new {
            found.push(name);
        }
    }
    found
}

/// Whether other schemas apply to the same place.
fn leads_on(map: &Map<String, Value>) -> bool {
    map.keys().any(|key| {
        matches!(
            key.as_str(),
            "$ref"
                | "$dynamicRef"
                | "$recursiveRef"
                | "allOf"
                | "anyOf"
                | "oneOf"
                | "if"
                | "then"
                | "else"
                | "dependentSchemas"
        )
    })
}

/// Target of a reference within the document.
fn resolve<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let fragment = reference.strip_prefix('#')?;
    if fragment.contains('%') { root.pointer(&percent_decoded(fragment)?) } else { root.pointer(fragment) }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

/// Whether a schema begins a document of its own, whose references resolve elsewhere.
fn is_foreign(root: &Value, map: &Map<String, Value>) -> bool {
    !root.as_object().is_some_and(|root| ptr::eq(root, map)) && map.keys().any(|key| key == "$id")
}

/// All schemas that apply to the same place of a value.
struct SchemaPlace<'s> {
    parts: Vec<SchemaPart<'s>>,
    /// Whether some of them are not supported, so that there may be more constraints.
    opaque: bool,
}

/// One of the schemas that apply to a place.
#[derive(Clone, Copy)]
struct SchemaPart<'s> {
    map: &'s Map<String, Value>,
    /// Whether it always applies, rather than being one of several alternatives.
    certain: bool,
}

/// What a schema says about members that it does not name.
enum UnnamedMembers<'s> {
    /// The schema forbids them.
    Refused,
    /// The schema says nothing about them.
    Unsaid,
    /// All are allowed.
    Welcome,
    /// They must fit this schema.
    Described(&'s Value),
    /// They are allowed depending on their names.
    ByName,
}

fn others(map: &Map<String, Value>) -> UnnamedMembers<'_> {
    if map.get("patternProperties").and_then(Value::as_object).is_some_and(|patterns| !patterns.is_empty()) {
        return UnnamedMembers::ByName;
    }
    match map.get("additionalProperties") {
        Some(Value::Bool(false)) => UnnamedMembers::Refused,
        Some(Value::Bool(true)) => UnnamedMembers::Welcome,
        Some(Value::Object(schema)) if schema.is_empty() => UnnamedMembers::Welcome,
        Some(schema @ Value::Object(_)) => UnnamedMembers::Described(schema),
        _ => UnnamedMembers::Unsaid,
    }
}

impl<'s> SchemaPlace<'s> {
    fn new(root: &'s Value, schema: &'s Value) -> SchemaPlace<'s> {
        let mut place = SchemaPlace { parts: Vec::new(), opaque: false };
        place.gather(root, schema, true);
        place
    }

    fn of_map(root: &'s Value, map: &'s Map<String, Value>) -> SchemaPlace<'s> {
        let mut place = SchemaPlace { parts: Vec::new(), opaque: false };
        place.gather_map(root, map, true);
        place
    }

    fn gather(&mut self, root: &'s Value, schema: &'s Value, certain: bool) {
        if let Some(map) = schema.as_object() {
            self.gather_map(root, map, certain);
        }
    }

    fn gather_map(&mut self, root: &'s Value, map: &'s Map<String, Value>, certain: bool) {
        if self.parts.iter().any(|part| ptr::eq(part.map, map) && (part.certain || !certain)) {
            return;
        }
        if self.parts.len() == MOST_PARTS || is_foreign(root, map) {
            self.opaque = true;
            return;
        }
        self.parts.push(SchemaPart { map, certain });
        if !leads_on(map) {
            return;
        }
        if let Some(reference) = map.get("$ref") {
            match reference.as_str().and_then(|reference| resolve(root, reference)) {
                Some(target) => self.gather(root, target, certain),
                None => self.opaque = true,
            }
        }
        self.opaque |= map.contains_key("$dynamicRef") || map.contains_key("$recursiveRef");
        for (key, certain) in [("allOf", certain), ("anyOf", false), ("oneOf", false)] {
            for branch in map.get(key).and_then(Value::as_array).into_iter().flatten() {
                self.gather(root, branch, certain);
            }
        }
        for key in ["if", "then", "else"] {
            if let Some(branch) = map.get(key) {
                self.gather(root, branch, false);
            }
        }
        for branch in map.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(Map::values)
        {
            self.gather(root, branch, false);
        }
    }

    fn member(&self, name: &str) -> MemberLookup<'s> {
        let named = self.parts.iter().filter_map(|part| part.map.get("properties")?.get(name));
        if let Some(found) = agreed(named) {
            return found;
        }
        let described = self.parts.iter().filter_map(|part| match others(part.map) {
            UnnamedMembers::Described(schema) => Some(schema),
            UnnamedMembers::Refused
            | UnnamedMembers::Unsaid
            | UnnamedMembers::Welcome
            | UnnamedMembers::ByName => None,
        });
        if let Some(found) = agreed(described) {
            return found;
        }
        if self.refuses_others() {
            return MemberLookup::Absent { closed: true, known: self.known() };
        }
        let known = self.known();
        if self.opaque || self.welcomes_others() || known.is_empty() {
            return MemberLookup::Unknown;
        }
        MemberLookup::Absent { closed: false, known }
    }

    /// Whether a member that no schema names is forbidden.
    fn refuses_others(&self) -> bool {
        let closes = |map: &Map<String, Value>| {
            matches!(others(map), UnnamedMembers::Refused)
                || (!self.opaque && map.get("unevaluatedProperties") == Some(&Value::Bool(false)))
        };
        self.parts.iter().any(|part| part.certain && closes(part.map))
    }

    fn welcomes_others(&self) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(others(part.map), UnnamedMembers::Welcome | UnnamedMembers::ByName))
    }

    fn known(&self) -> Vec<&'s str> {
        let maps = self.parts.iter().filter_map(|part| part.map.get("properties")?.as_object());
        unique(maps.flat_map(Map::keys).map(String::as_str))
    }

    fn item(&self, index: Option<usize>) -> MemberLookup<'s> {
        agreed(self.parts.iter().flat_map(|part| items(part.map, index))).unwrap_or(MemberLookup::Unknown)
    }
}

/// Schemas of the item at `index`, or of any item.
fn items(map: &Map<String, Value>, index: Option<usize>) -> Vec<&Value> {
    let (first, rest) = match map.get("items") {
        Some(Value::Array(first)) => (first.as_slice(), map.get("additionalItems")),
        rest => (map.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice), rest),
    };
    match index {
        Some(index) => first.get(index).or(rest).into_iter().collect(),
        None => first.iter().chain(rest).collect(),
    }
}

/// The schema that all of them equal; nothing certain when they differ.
fn agreed<'s>(schemas: impl Iterator<Item = &'s Value>) -> Option<MemberLookup<'s>> {
    let mut schemas = schemas;
    let first = schemas.next()?;
    Some(if schemas.all(|other| other == first) { MemberLookup::Found(first) } else { MemberLookup::Unknown })
}

/// A set of JSON types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct JsonTypes(u8);

impl JsonTypes {
    const NULL: JsonTypes = JsonTypes(1);
    const BOOLEAN: JsonTypes = JsonTypes(2);
    const NUMBER: JsonTypes = JsonTypes(4);
    const STRING: JsonTypes = JsonTypes(8);
    const ARRAY: JsonTypes = JsonTypes(16);
    const OBJECT: JsonTypes = JsonTypes(32);
    const ALL: JsonTypes = JsonTypes(63);

    fn named(name: &str) -> JsonTypes {
        match name {
            "null" => JsonTypes::NULL,
            "boolean" => JsonTypes::BOOLEAN,
            "number" | "integer" => JsonTypes::NUMBER,
            "string" => JsonTypes::STRING,
            "array" => JsonTypes::ARRAY,
            "object" => JsonTypes::OBJECT,
            // An unknown type name: everything is allowed.
            _ => JsonTypes::ALL,
        }
    }

    fn of(value: &Value) -> JsonTypes {
        match value {
            Value::Null => JsonTypes::NULL,
            Value::Bool(_) => JsonTypes::BOOLEAN,
            Value::Number(_) => JsonTypes::NUMBER,
            Value::String(_) => JsonTypes::STRING,
            Value::Array(_) => JsonTypes::ARRAY,
            Value::Object(_) => JsonTypes::OBJECT,
        }
    }

    const fn meets(self, other: JsonTypes) -> bool {
        self.0 & other.0 != 0
    }

    const fn without(self, other: JsonTypes) -> JsonTypes {
        JsonTypes(self.0 & !other.0)
    }

    const fn and(self, other: JsonTypes) -> JsonTypes {
        JsonTypes(self.0 & other.0)
    }

    const fn or(self, other: JsonTypes) -> JsonTypes {
        JsonTypes(self.0 | other.0)
    }
}

/// Types that values of `schema` can have.
fn types(root: &Value, schema: &Value) -> JsonTypes {
    types_within(root, schema, &mut 500)
}

fn types_within(root: &Value, schema: &Value, fuel: &mut u32) -> JsonTypes {
    let Some(map) = schema.as_object() else { return JsonTypes::ALL };
    if *fuel == 0 || is_foreign(root, map) {
        return JsonTypes::ALL;
    }
    *fuel -= 1;
    let mut allowed = own_types(map);
    if !leads_on(map) {
        return allowed;
    }
    let target = map.get("$ref").and_then(Value::as_str).and_then(|reference| resolve(root, reference));
    for branch in target.into_iter().chain(map.get("allOf").and_then(Value::as_array).into_iter().flatten()) {
        allowed = allowed.and(types_within(root, branch, fuel));
    }
    for branches in ["anyOf", "oneOf"].iter().filter_map(|key| map.get(*key)?.as_array()) {
        let union =
            branches.iter().fold(JsonTypes(0), |all, branch| all.or(types_within(root, branch, fuel)));
        allowed = if branches.is_empty() { allowed } else { allowed.and(union) };
    }
    allowed
}

/// Types by `type`, `nullable`, `enum`, `const` and `default`, without referenced schemas.
fn own_types(map: &Map<String, Value>) -> JsonTypes {
    let listed =
        |values: &[Value]| values.iter().fold(JsonTypes(0), |all, value| all.or(JsonTypes::of(value)));
    let (mut declared, mut constant, mut choice, mut more) = (None, None, None, JsonTypes(0));
    for (key, said) in map {
        match (key.as_str(), said) {
            ("type", Value::String(name)) => declared = Some(JsonTypes::named(name)),
            ("type", Value::Array(names)) if !names.is_empty() => {
                let named = names.iter().map(|name| name.as_str().map_or(JsonTypes::ALL, JsonTypes::named));
                declared = Some(named.fold(JsonTypes(0), JsonTypes::or));
            }
            ("const", value) => constant = Some(JsonTypes::of(value)),
            ("enum", Value::Array(values)) if !values.is_empty() => choice = Some(listed(values)),
            // Many generators declare `string` with a default of `null`: the default must be allowed, too.
            ("default", value) => more = more.or(JsonTypes::of(value)),
            ("nullable", Value::Bool(true)) => more = more.or(JsonTypes::NULL),
            _ => {}
        }
    }
    declared.or(constant).or(choice).unwrap_or(JsonTypes::ALL).or(more)
}

#[cfg(test)]
mod tests;
