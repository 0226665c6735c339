//! Which parameters of a run are secrets: by their names and values, and by what stands beside them where they are given, as
//! in `{ name: "api_key", value: "…" }`.

use std::collections::BTreeSet;

use pml_model::json::{Fields, raw};
use pml_model::structure::{Argument, NodeId, Step, Structure};
use serde_json::{Map, Value, json};

use crate::plan::{Learn, Literal};
use crate::plan::{Plan, Work};
use crate::sanitise::Sanitiser;

/// The names of the parameters whose values must not be kept.
pub(super) fn names(plan: &Plan, learn: &Learn, sanitiser: &Sanitiser) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    let given: Value = serde_json::from_str(plan.arguments.get()).unwrap_or_else(|_| {
        // What is nested too deeply to be looked through may hide anything.
        let given = Fields::parse(plan.arguments.get()).unwrap_or_default();
        names.extend(given.iter().map(|(name, _)| name.to_owned()));
        Value::Null
    });
    names.extend(members(&given, sanitiser));
    if let Value::Object(defaults) = defaults(learn) {
        let secret = defaults.iter().filter(|(name, value)| is_secret(name, value, sanitiser));
        names.extend(secret.map(|(name, _)| name.clone()));
    }
    if learn.literals.is_empty() {
        // They are given together; what a program is written with may stand far apart.
        names.extend(members(&defaults(learn), sanitiser));
    }
    let own = |literal: &&Literal| {
        literal.value.as_ref().is_none_or(|value| is_secret(&literal.name, value, sanitiser))
    };
    names.extend(learn.literals.iter().filter(own).map(|literal| literal.name.clone()));
    for (node, place) in places(&plan.structure, &given, sanitiser) {
        let covers = |path: &[Step]| path.iter().zip(&place).all(|(mine, theirs)| mine == theirs);
        let fills = |literal: &&Literal| literal.fills.iter().any(|(at, path)| *at == node && covers(path));
        names.extend(learn.literals.iter().filter(fills).map(|literal| literal.name.clone()));
        let arguments = plan.structure.node(node).and_then(|node| node.kind.arguments());
        names.extend(arguments.and_then(|arguments| parameter(arguments, &place)).map(str::to_owned));
        // What a single call takes are its arguments.
        if matches!(&plan.work, Work::Dag(dag) if dag.single)
            && let Some(Step::Key(name)) = place.first()
        {
            names.insert(name.clone());
        }
    }
    names
}

/// Whether a value, given under this name, must not be kept.
pub(super) fn is_secret(name: &str, value: &Value, sanitiser: &Sanitiser) -> bool {
    sanitiser.json(&raw(&json!({ name: value }))).changed
}

/// Whether something that must not be kept is written in a structure.
pub(super) fn are_in(structure: &Structure, sanitiser: &Sanitiser) -> bool {
    !places(structure, &Value::Null, sanitiser).is_empty()
}

/// What parameters are where nobody says otherwise.
fn defaults(learn: &Learn) -> Value {
    let members = learn.parameters.get("properties").and_then(Value::as_object);
    let default = |(name, member): (&String, &Value)| Some((name.clone(), member.get("default")?.clone()));
    Value::Object(members.into_iter().flatten().filter_map(default).collect())
}

/// The members of an object that must not be kept as they are.
fn members(object: &Value, sanitiser: &Sanitiser) -> Vec<String> {
    let changed = changes(object, sanitiser).into_iter();
    let name = |path: Vec<Step>| match path.into_iter().next() {
        Some(Step::Key(name)) => Some(name),
        Some(Step::Index(_) | Step::Any) | None => None,
    };
    changed.filter_map(name).collect()
}

/// Where in the arguments of which calls there is something that must not be kept, with `given` for `args`.
fn places(structure: &Structure, given: &Value, sanitiser: &Sanitiser) -> Vec<(NodeId, Vec<Step>)> {
    let of = |node: &pml_model::structure::Node| {
        let written = node.kind.arguments().map(|arguments| value(arguments, given)).unwrap_or_default();
        let id = node.id;
        changes(&written, sanitiser).into_iter().map(move |path| (id, path))
    };
    structure.nodes.iter().flat_map(of).collect()
}

/// Where a value is another one without its secrets.
fn changes(value: &Value, sanitiser: &Sanitiser) -> Vec<Vec<Step>> {
    let clean = sanitiser.json(&raw(value));
    let mut found = Vec::new();
    if clean.changed {
        let clean = serde_json::from_str(clean.value.get()).unwrap_or_default();
        compare(value, &clean, &mut Vec::new(), &mut found);
    }
    found
}

fn compare(one: &Value, other: &Value, at: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            for (name, value) in one {
                at.push(Step::Key(name.clone()));
                match other.get(name) {
                    Some(other) => compare(value, other, at, found),
                    // The name was one itself.
                    None => found.push(at.clone()),
                }
                at.pop();
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in (0..).zip(one.iter().zip(other)) {
                at.push(Step::Index(index));
                compare(one, other, at, found);
                at.pop();
            }
        }
        (one, other) if one == other => {}
        _ => found.push(at.clone()),
    }
}

/// What an argument is, as far as that is written or given.
fn value(argument: &Argument, given: &Value) -> Value {
    match argument {
        Argument::Literal { value } => value.clone(),
        Argument::Parameter { name, path } => {
            let whole = if name.is_empty() { Some(given) } else { given.get(name) };
            path.iter().fold(whole, step).cloned().unwrap_or_default()
        }
        Argument::Object { fields, .. } => {
            let fields = fields.iter().map(|field| (field.name.clone(), value(&field.value, given)));
            Value::Object(fields.collect::<Map<String, Value>>())
        }
        Argument::Array { items } => items.iter().map(|item| value(item, given)).collect(),
        Argument::Reference { .. }
        | Argument::Item { .. }
        | Argument::Template { .. }
        | Argument::Expression { .. } => Value::Null,
    }
}

fn step<'v>(value: Option<&'v Value>, step: &Step) -> Option<&'v Value> {
    match step {
        Step::Key(name) => value?.get(name),
        Step::Index(index) => value?.get(usize::try_from(*index).ok()?),
        Step::Any => None,
    }
}

/// The parameter that is given at a place.
fn parameter<'a>(argument: &'a Argument, place: &[Step]) -> Option<&'a str> {
    match (argument, place.split_first()) {
        (Argument::Parameter { name, .. }, _) => {
            Some(name).filter(|name| !name.is_empty()).map(String::as_str)
        }
        (Argument::Object { fields, .. }, Some((Step::Key(key), rest))) => {
            parameter(&fields.iter().rfind(|field| field.name == *key)?.value, rest)
        }
        (Argument::Array { items }, Some((Step::Index(index), rest))) => {
            parameter(items.get(usize::try_from(*index).ok()?)?, rest)
        }
        _ => None,
    }
}
