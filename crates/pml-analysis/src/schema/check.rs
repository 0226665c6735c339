//! Checks the arguments of a call against the tool's schema.
//!
//! Only certain violations are errors. Values that are computed, taken from a result or hidden behind a spread could be
//! anything and pass.

use std::collections::HashSet;

use pml_model::structure::{Argument, ArgumentField, PathStep};
use serde_json::{Map, Value};

use super::nearest::closest_names;
use super::values::{near_value, not_whole, out_of_bounds, same_value, unquoted};
use super::words::{
    alternatives, listed, name_words, object_words, one_of, own_words, path_words, schema_words, value_words,
};
use super::{JsonTypes, SchemaPlace, UnnamedMembers, is_foreign, items, others, own_types, resolve};
use crate::analysis::{ComplaintCode, Severity};

/// Maximum number of schemas visited to check one value; the rest passes.
const FUEL: usize = 50_000;
/// Maximum depth, references included.
const DEPTH: u32 = 64;

/// A problem with the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArgumentFinding {
    /// The rule that is violated.
    pub(crate) code: ComplaintCode,
    /// Error or warning.
    pub(crate) severity: Severity,
    /// Path within the arguments.
    pub(crate) path: Vec<PathStep>,
    /// One sentence, without the name of the tool.
    pub(crate) message: String,
    /// What the author can do.
    pub(crate) hint: Option<String>,
}

impl ArgumentFinding {
    /// Severity when the schema is inferred, not declared: types inferred from how a program uses its arguments may be
    /// narrower than what it accepts.
    pub(crate) fn inferred(&self) -> Severity {
        match self.code {
            ComplaintCode::WrongType if !self.path.is_empty() => Severity::Warning,
            _ => self.severity,
        }
    }
}

/// All problems with the arguments of a call of the tool with input schema `root`.
pub(crate) fn check_arguments(root: &Value, argument: &Argument) -> Vec<ArgumentFinding> {
    if is_plainly_right(root, argument) {
        return Vec::new();
    }
    problems(root, root, CheckedValue::of(argument)).into_iter().map(ArgumentProblem::into_finding).collect()
}

/// Fast path for most calls: all required members are given and no unknown ones, and literals have the single declared
/// type.
fn is_plainly_right(schema: &Value, argument: &Argument) -> bool {
    let Argument::Object { fields, spreads } = argument else { return false };
    let Some(map) = schema.as_object().filter(|_| spreads.is_empty()) else { return false };
    let plain = map.keys().all(|key| {
        matches!(
            key.as_str(),
            "type" | "properties" | "required" | "additionalProperties" | "title" | "description" | "$schema"
        )
    });
    let required = super::member_of(map, "required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    plain
        && required.iter().all(|name| fields.iter().any(|field| name == &field.name))
        && fields
            .iter()
            .all(|field| super::plain_member(schema, &field.name).is_some_and(|s| fits(s, &field.value)))
}

/// Whether a value certainly fits a schema that only declares one type or an `enum`. A value that is no literal fits.
fn fits(schema: &Value, value: &Argument) -> bool {
    let Some(map) = schema.as_object() else { return false };
    let (mut types, mut listed, mut inner) = (None, None, None);
    for (key, said) in map {
        match (key.as_str(), said) {
            ("type", _) => types = Some(said),
            ("enum", Value::Array(values)) => listed = Some(values),
            ("items", Value::Object(_)) => inner = Some(said),
            ("title" | "description" | "format", _) => {}
            _ => return false,
        }
    }
    let wanted = types.and_then(Value::as_str);
    match value {
        Argument::Reference { .. } | Argument::Parameter { .. } | Argument::Item { .. } => true,
        Argument::Expression { .. } => true,
        Argument::Template { .. } => wanted == Some("string") && listed.is_none(),
        Argument::Literal { value } => {
            listed.is_none_or(|values| values.contains(value))
                && match (wanted, types) {
                    (Some(wanted), _) => is_of_type(value, wanted),
                    (None, Some(_)) => false,
                    (None, None) => listed.is_some(),
                }
        }
        Argument::Array { items } => {
            wanted == Some("array")
                && listed.is_none()
                && inner.is_none_or(|inner| items.iter().all(|item| fits(inner, item)))
        }
        Argument::Object { .. } => false,
    }
}

/// Whether a literal has the type named `wanted`.
fn is_of_type(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(_) => wanted == "string",
        Value::Number(number) => wanted == "number" || wanted == "integer" && !number.is_f64(),
        Value::Bool(_) => wanted == "boolean",
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

fn problems(root: &Value, schema: &Value, given: CheckedValue<'_>) -> Vec<ArgumentProblem> {
    let declared = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let lonely_references = ["draft-04", "draft-06", "draft-07"].iter().any(|draft| declared.contains(draft));
    let mut checker = Checker { root, lonely_references, fuel: FUEL, path: Vec::new() };
    let mut found: Vec<ArgumentProblem> = Vec::new();
    for problem in checker.value(schema, given, DEPTH) {
        // Several parts of a schema may report the same problem for one path.
        let said =
            |other: &ArgumentProblem| other.path == problem.path && other.kind.code() == problem.kind.code();
        if !found.iter().any(said) {
            found.push(problem);
        }
    }
    found
}

/// A value to check: JSON, or a tree of which only parts are known.
#[derive(Clone, Copy)]
enum CheckedValue<'g> {
    Json(&'g Value),
    Object {
        fields: &'g [ArgumentField],
        spread: bool,
    },
    Array(&'g [Argument]),
    /// Text with unknown content.
    Text,
    /// Unknown before the program runs.
    Anything,
}

impl<'g> CheckedValue<'g> {
    fn of(argument: &'g Argument) -> CheckedValue<'g> {
        match argument {
            Argument::Literal { value } => CheckedValue::Json(value),
            Argument::Object { fields, spreads } => {
                CheckedValue::Object { fields, spread: !spreads.is_empty() }
            }
            Argument::Array { items } => CheckedValue::Array(items),
            Argument::Template { .. } => CheckedValue::Text,
            Argument::Reference { .. }
            | Argument::Parameter { .. }
            | Argument::Item { .. }
            | Argument::Expression { .. } => CheckedValue::Anything,
        }
    }

    fn json(self) -> Option<&'g Value> {
        match self {
            CheckedValue::Json(value) => Some(value),
            CheckedValue::Object { .. }
            | CheckedValue::Array(_)
            | CheckedValue::Text
            | CheckedValue::Anything => None,
        }
    }

    fn types(self) -> JsonTypes {
        match self {
            CheckedValue::Json(value) => JsonTypes::of(value),
            CheckedValue::Object { .. } => JsonTypes::OBJECT,
            CheckedValue::Array(_) => JsonTypes::ARRAY,
            CheckedValue::Text => JsonTypes::STRING,
            CheckedValue::Anything => JsonTypes::ALL,
        }
    }

    fn words(self) -> String {
        match self {
            CheckedValue::Json(value) => value_words(value),
            CheckedValue::Object { spread: true, .. } => "an object".to_owned(),
            CheckedValue::Object { fields, spread: false } => {
                object_words(fields.iter().map(|field| field.name.as_str()))
            }
            CheckedValue::Array(_) => "a list".to_owned(),
            CheckedValue::Text => "text".to_owned(),
            CheckedValue::Anything => "something computed".to_owned(),
        }
    }

    /// Members of an object; `None` for other values.
    fn members(self) -> Option<Vec<(&'g str, CheckedValue<'g>)>> {
        match self {
            CheckedValue::Json(Value::Object(map)) => {
                Some(map.iter().map(|(name, value)| (name.as_str(), CheckedValue::Json(value))).collect())
            }
            CheckedValue::Object { fields, .. } => Some(
                fields.iter().map(|field| (field.name.as_str(), CheckedValue::of(&field.value))).collect(),
            ),
            CheckedValue::Json(_) | CheckedValue::Array(_) | CheckedValue::Text | CheckedValue::Anything => {
                None
            }
        }
    }

    fn items(self) -> Option<Vec<CheckedValue<'g>>> {
        match self {
            CheckedValue::Json(Value::Array(items)) => Some(items.iter().map(CheckedValue::Json).collect()),
            CheckedValue::Array(items) => Some(items.iter().map(CheckedValue::of).collect()),
            CheckedValue::Json(_)
            | CheckedValue::Object { .. }
            | CheckedValue::Text
            | CheckedValue::Anything => None,
        }
    }
}

/// A problem at a path.
#[derive(Debug, Clone, PartialEq)]
struct ArgumentProblem {
    path: Vec<PathStep>,
    kind: ProblemKind,
    /// Whether the tool would certainly refuse the call.
    certain: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum ProblemKind {
    Missing { expected: String },
    Unknown { near: Vec<String>, known: String },
    Wrong { expected: String, got: String, hint: Option<String> },
}

impl ProblemKind {
    fn code(&self) -> ComplaintCode {
        match self {
            ProblemKind::Missing { .. } => ComplaintCode::MissingArgument,
            ProblemKind::Unknown { .. } => ComplaintCode::UnknownArgument,
            ProblemKind::Wrong { .. } => ComplaintCode::WrongType,
        }
    }
}

impl ArgumentProblem {
    fn into_finding(self) -> ArgumentFinding {
        let at = path_words(&self.path);
        let code = self.kind.code();
        let (message, hint) = match self.kind {
            ProblemKind::Missing { expected } => {
                (format!("`{at}` is required"), Some(format!("give `{at}`: {expected}")))
            }
            ProblemKind::Unknown { near, known } => {
                (unknown_words(&at, &self.path), Some(unknown_hint(&near, &known, &self.path)))
            }
            ProblemKind::Wrong { expected, got, hint } if at.is_empty() => {
                (format!("the arguments must be {expected}, not {got}"), hint)
            }
            ProblemKind::Wrong { expected, got, hint } => {
                (format!("`{at}` must be {expected}, not {got}"), hint)
            }
        };
        let severity = if self.certain { Severity::Error } else { Severity::Warning };
        ArgumentFinding { code, severity, path: self.path, message, hint }
    }
}

fn unknown_words(at: &str, path: &[PathStep]) -> String {
    match path_words(&path[..path.len().saturating_sub(1)]).as_str() {
        "" => format!("`{at}` is not an argument"),
        parent => format!("`{at}` is not a member of `{parent}`"),
    }
}

fn unknown_hint(near: &[String], known: &str, path: &[PathStep]) -> String {
    let near: Vec<String> = near.iter().map(|name| format!("`{}`", name_words(name))).collect();
    match (near.is_empty(), known, path.len()) {
        (false, ..) => format!("did you mean {}?", alternatives(&near)),
        (true, "", 1) => "it takes no arguments".to_owned(),
        (true, "", _) => "it has no members".to_owned(),
        (true, known, 1) => format!("it takes {known}"),
        (true, known, _) => format!("it has {known}"),
    }
}

struct Checker<'s> {
    root: &'s Value,
    /// Keywords beside `$ref` are ignored, as in drafts up to 7.
    lonely_references: bool,
    fuel: usize,
    path: Vec<PathStep>,
}

impl<'s> Checker<'s> {
    /// All problems of a value.
    fn value(&mut self, schema: &'s Value, given: CheckedValue<'_>, depth: u32) -> Vec<ArgumentProblem> {
        let mut found = self.here(schema, given, depth);
        if depth > 0 && self.fuel > 0 {
            found.extend(self.strangers(schema, given));
        }
        found
    }

    /// Problems of a value by one of the schemas that apply to it.
    fn here(&mut self, schema: &'s Value, given: CheckedValue<'_>, depth: u32) -> Vec<ArgumentProblem> {
        if depth == 0 || self.fuel == 0 {
            return Vec::new();
        }
        self.fuel -= 1;
        match (schema, given) {
            (Value::Bool(false), CheckedValue::Json(_)) => vec![self.wrong("left out", given)],
            (Value::Object(map), _) if !is_foreign(self.root, map) => self.schema(map, given, depth - 1),
            _ => Vec::new(),
        }
    }

    fn schema(
        &mut self,
        map: &'s Map<String, Value>,
        given: CheckedValue<'_>,
        depth: u32,
    ) -> Vec<ArgumentProblem> {
        let mut found = Vec::new();
        if let Some(reference) = map.get("$ref") {
            let target = reference.as_str().and_then(|reference| resolve(self.root, reference));
            found.extend(target.into_iter().flat_map(|target| self.here(target, given, depth)));
            if self.lonely_references {
                return found;
            }
        }
        if matches!(given, CheckedValue::Json(Value::Null)) && map.get("nullable") == Some(&Value::Bool(true))
        {
            return Vec::new();
        }
        if let Some(problem) = self.plain(map, given) {
            found.push(problem);
            return found;
        }
        for branch in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            found.extend(self.here(branch, given, depth));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = map.get(key) {
                found.extend(self.choice(branches, given, depth));
            }
        }
        found.extend(self.members(map, given, depth));
        found.extend(self.items(map, given, depth));
        found
    }

    /// Problem by type, `const`, `enum` or bounds.
    fn plain(&self, map: &'s Map<String, Value>, given: CheckedValue<'_>) -> Option<ArgumentProblem> {
        let types = own_types(map);
        if !types.meets(given.types()) {
            let expected = alternatives(&own_words(map));
            return Some(self.wrong_with_hint(&expected, given, unquoted(types, given.json())));
        }
        let value = given.json()?;
        if map.get("default").is_some_and(|default| same_value(default, value)) {
            return None;
        }
        if let Some(expected) = not_whole(map, value).or_else(|| out_of_bounds(map, value)) {
            return Some(self.wrong(&expected, given));
        }
        if let Some(wanted) = map.get("const")
            && !same_value(wanted, value)
        {
            return Some(self.wrong(&one_of(std::slice::from_ref(wanted)), given));
        }
        let Some(Value::Array(values)) = map.get("enum") else { return None };
        // An `enum` without any value of the declared `type` contradicts itself: the type wins.
        let possible = values.iter().any(|value| types.meets(JsonTypes::of(value)));
        if !possible || values.iter().any(|wanted| same_value(wanted, value)) {
            return None;
        }
        Some(self.wrong_with_hint(&one_of(values), given, near_value(values, value)))
    }

    /// `anyOf` and `oneOf`: one of the branches must fit.
    fn choice(&mut self, branches: &'s [Value], given: CheckedValue<'_>, depth: u32) -> Vec<ArgumentProblem> {
        let here = self.path.len();
        let mut results = Vec::new();
        for branch in branches {
            let found = self.here(branch, given, depth);
            if !found.iter().any(|problem| problem.certain) {
                return found;
            }
            results.push((branch, found));
        }
        // Branches that accept this kind of value and only reject something inside it.
        let deeper = |found: &[ArgumentProblem]| {
            !found.iter().any(|it| matches!(it.kind, ProblemKind::Wrong { .. }) && it.path.len() == here)
        };
        let weight = |found: &[ArgumentProblem]| -> usize {
            found.iter().map(|it| if matches!(it.kind, ProblemKind::Wrong { .. }) { 2 } else { 1 }).sum()
        };
        let mut close: Vec<&(&Value, Vec<ArgumentProblem>)> =
            results.iter().filter(|(_, found)| deeper(found)).collect();
        close.sort_by_key(|(_, found)| weight(found));
        let least = match close.as_slice() {
            [only] => Some(only),
            [first, second, ..] if weight(&first.1) < weight(&second.1) => Some(first),
            _ => None,
        };
        if let Some((_, found)) = least {
            return found.clone();
        }
        if results.is_empty() {
            return Vec::new();
        }
        let words = |results: &mut dyn Iterator<Item = &Value>| -> Vec<String> {
            results.map(|branch| schema_words(self.root, branch)).collect()
        };
        let expected = if close.is_empty() {
            words(&mut results.iter().map(|(branch, _)| *branch))
        } else {
            words(&mut close.iter().map(|(branch, _)| *branch))
        };
        vec![self.wrong(&alternatives(&expected), given)]
    }

    /// Checks `properties`, `required` and `additionalProperties`.
    fn members(
        &mut self,
        map: &'s Map<String, Value>,
        given: CheckedValue<'_>,
        depth: u32,
    ) -> Vec<ArgumentProblem> {
        let Some(members) = given.members() else { return Vec::new() };
        let names: HashSet<&str> = members.iter().map(|(name, _)| *name).collect();
        let spread = matches!(given, CheckedValue::Object { spread: true, .. });
        let properties = map.get("properties").and_then(Value::as_object);
        let mut known = None;
        let mut found = if spread { Vec::new() } else { self.missing(map, &names) };
        for (name, value) in members {
            let schema = match (properties.and_then(|properties| properties.get(name)), others(map)) {
                (Some(schema), _) | (None, UnnamedMembers::Described(schema)) => schema,
                (None, UnnamedMembers::Refused) => {
                    // Names declared anywhere in the schema count as known.
                    let known =
                        known.get_or_insert_with(|| KnownMembers::new(&SchemaPlace::of_map(self.root, map)));
                    if !known.set.contains(name) {
                        let kind = self.unknown(name, known, &names);
                        found.push(self.member_problem(name, kind, true));
                    }
                    continue;
                }
                (None, UnnamedMembers::Unsaid | UnnamedMembers::Welcome | UnnamedMembers::ByName) => continue,
            };
            self.path.push(PathStep::Key(name.to_owned()));
            found.extend(self.value(schema, value, depth));
            self.path.pop();
        }
        // A later spread may replace the member.
        if spread {
            found
                .iter_mut()
                .for_each(|problem| problem.certain &= !matches!(problem.kind, ProblemKind::Wrong { .. }));
        }
        found
    }

    fn missing(&self, map: &'s Map<String, Value>, given: &HashSet<&str>) -> Vec<ArgumentProblem> {
        let names =
            map.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        names
            .filter(|name| !given.contains(name))
            .map(|name| {
                let schema = map.get("properties").and_then(|properties| properties.get(name));
                let expected =
                    schema.map_or_else(|| "any value".to_owned(), |it| schema_words(self.root, it));
                // Some generators list members with a default as required although servers fill them in, and some
                // servers require members that they do not describe.
                let described = schema.is_some() || !map.contains_key("properties");
                let certain = described && schema.is_none_or(|schema| schema.get("default").is_none());
                self.member_problem(name, ProblemKind::Missing { expected }, certain)
            })
            .collect()
    }

    /// Members that the schemas of this path do not name, while they name others.
    fn strangers(&mut self, schema: &'s Value, given: CheckedValue<'_>) -> Vec<ArgumentProblem> {
        let Some(members) = given.members().filter(|members| !members.is_empty()) else { return Vec::new() };
        let place = SchemaPlace::new(self.root, schema);
        self.spend(place.parts.len());
        let all = place.parts.iter().map(|part| others(part.map)).collect::<Vec<_>>();
        let decided = all.iter().any(|it| {
            matches!(it, UnnamedMembers::Described(_) | UnnamedMembers::ByName | UnnamedMembers::Refused)
        });
        let known = KnownMembers::new(&place);
        if known.list.is_empty() || place.opaque || decided {
            return Vec::new();
        }
        let names = members.iter().map(|(name, _)| *name).collect();
        let mut found = Vec::new();
        for (name, _) in members.iter().filter(|(name, _)| !known.set.contains(name)) {
            let kind = self.unknown(name, &known, &names);
            // Where additional members are allowed, only a likely typo is reported.
            if !place.welcomes_others()
                || matches!(&kind, ProblemKind::Unknown { near, .. } if !near.is_empty())
            {
                found.push(self.member_problem(name, kind, place.refuses_others()));
            }
        }
        found
    }

    /// Checks `items`, `prefixItems`, `additionalItems`.
    fn items(
        &mut self,
        map: &'s Map<String, Value>,
        given: CheckedValue<'_>,
        depth: u32,
    ) -> Vec<ArgumentProblem> {
        let Some(values) = given.items() else { return Vec::new() };
        // A spread before an item shifts it: positions count only when every item is written out.
        let fixed = values.iter().all(|value| matches!(value, CheckedValue::Json(_)));
        let by_position =
            map.contains_key("prefixItems") || matches!(map.get("items"), Some(Value::Array(_)));
        if by_position && !fixed {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (index, value) in values.into_iter().enumerate() {
            for schema in items(map, Some(index)) {
                self.path.push(PathStep::Index(index as u64));
                found.extend(self.value(schema, value, depth));
                self.path.pop();
            }
        }
        found
    }

    fn unknown(&mut self, name: &str, known: &KnownMembers<'_>, given: &HashSet<&str>) -> ProblemKind {
        let free = known.list.iter().copied().filter(|known| !given.contains(known));
        let near = closest_names(name, free.take(self.fuel)).into_iter().map(str::to_owned).collect();
        self.spend(known.list.len());
        ProblemKind::Unknown { near, known: known.text.clone() }
    }

    fn spend(&mut self, fuel: usize) {
        self.fuel = self.fuel.saturating_sub(fuel);
    }

    fn wrong(&self, expected: &str, given: CheckedValue<'_>) -> ArgumentProblem {
        self.wrong_with_hint(expected, given, None)
    }

    fn wrong_with_hint(
        &self,
        expected: &str,
        given: CheckedValue<'_>,
        hint: Option<String>,
    ) -> ArgumentProblem {
        let kind = ProblemKind::Wrong { expected: expected.to_owned(), got: given.words(), hint };
        ArgumentProblem { path: self.path.clone(), kind, certain: true }
    }

    fn member_problem(&self, name: &str, kind: ProblemKind, certain: bool) -> ArgumentProblem {
        let mut path = self.path.clone();
        path.push(PathStep::Key(name.to_owned()));
        ArgumentProblem { path, kind, certain }
    }
}

/// Members named by the schemas of a path.
struct KnownMembers<'s> {
    list: Vec<&'s str>,
    set: HashSet<&'s str>,
    text: String,
}

impl<'s> KnownMembers<'s> {
    fn new(place: &SchemaPlace<'s>) -> KnownMembers<'s> {
        let list = place.known();
        KnownMembers { set: list.iter().copied().collect(), text: listed(list.iter().copied()), list }
    }
}
