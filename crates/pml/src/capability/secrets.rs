//! Finds the parameters of a run that are secrets: by name, by value, and by what stands beside them, as in
//! `{ name: "api_key", value: "…" }`.

use std::collections::BTreeSet;

use pml_model::json::{Fields, raw};
use pml_model::structure::{Argument, NodeId, PathStep, Structure};
use serde_json::{Map, Value, json};

use crate::plan::{LearningPlan, PlanLiteral};
use crate::plan::{Plan, PlannedWork};
use crate::sanitise::Sanitiser;

/// The names of the parameters whose values must not be stored.
pub(super) fn secret_parameters(
    plan: &Plan,
    learn: &LearningPlan,
    sanitiser: &Sanitiser,
) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    let given: Value = serde_json::from_str(plan.arguments.get()).unwrap_or_else(|_| {
        // A value nested too deeply to be searched may hide anything.
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
        // Arguments are given together, unlike the literals of a program, which may stand far apart.
        names.extend(members(&defaults(learn), sanitiser));
    }
    let own = |literal: &&PlanLiteral| {
        literal.value.as_ref().is_none_or(|value| is_secret(&literal.name, value, sanitiser))
    };
    names.extend(learn.literals.iter().filter(own).map(|literal| literal.name.clone()));
    for (node, place) in places(&plan.structure, &given, sanitiser) {
        let covers = |path: &[PathStep]| path.iter().zip(&place).all(|(mine, theirs)| mine == theirs);
        let fills =
            |literal: &&PlanLiteral| literal.fills.iter().any(|(at, path)| *at == node && covers(path));
        names.extend(learn.literals.iter().filter(fills).map(|literal| literal.name.clone()));
        let arguments = plan.structure.node(node).and_then(|node| node.kind.arguments());
        names.extend(arguments.and_then(|arguments| parameter(arguments, &place)).map(str::to_owned));
        // The parameters of a single call are its arguments.
        if matches!(&plan.work, PlannedWork::Dag(dag) if dag.single)
            && let Some(PathStep::Key(name)) = place.first()
        {
            names.insert(name.clone());
        }
    }
    names
}

/// Whether a value with this name must not be stored.
pub(super) fn is_secret(name: &str, value: &Value, sanitiser: &Sanitiser) -> bool {
    sanitiser.clean_json(&raw(&json!({ name: value }))).changed
}

/// Whether a structure contains a literal that must not be stored.
pub(super) fn has_secrets(structure: &Structure, sanitiser: &Sanitiser) -> bool {
    !places(structure, &Value::Null, sanitiser).is_empty()
}

/// The default values of the parameters.
fn defaults(learn: &LearningPlan) -> Value {
    let members = learn.parameters.get("properties").and_then(Value::as_object);
    let default = |(name, member): (&String, &Value)| Some((name.clone(), member.get("default")?.clone()));
    Value::Object(members.into_iter().flatten().filter_map(default).collect())
}

/// The members of an object that must not be stored as they are.
fn members(object: &Value, sanitiser: &Sanitiser) -> Vec<String> {
    let changed = changes(object, sanitiser).into_iter();
    let name = |path: Vec<PathStep>| match path.into_iter().next() {
        Some(PathStep::Key(name)) => Some(name),
        Some(PathStep::Index(_) | PathStep::Any) | None => None,
    };
    changed.filter_map(name).collect()
}

/// The places in call arguments that must not be stored, with `given` for `args`.
fn places(structure: &Structure, given: &Value, sanitiser: &Sanitiser) -> Vec<(NodeId, Vec<PathStep>)> {
    let of = |node: &pml_model::structure::Node| {
        let written = node.kind.arguments().map(|arguments| value(arguments, given)).unwrap_or_default();
        let id = node.id;
        changes(&written, sanitiser).into_iter().map(move |path| (id, path))
    };
    structure.nodes.iter().flat_map(of).collect()
}

/// The paths at which sanitising changes a value.
fn changes(value: &Value, sanitiser: &Sanitiser) -> Vec<Vec<PathStep>> {
    let clean = sanitiser.clean_json(&raw(value));
    let mut found = Vec::new();
    if clean.changed {
        let clean = serde_json::from_str(clean.value.get()).unwrap_or_default();
        compare(value, &clean, &mut Vec::new(), &mut found);
    }
    found
}

fn compare(one: &Value, other: &Value, at: &mut Vec<PathStep>, found: &mut Vec<Vec<PathStep>>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            for (name, value) in one {
                at.push(PathStep::Key(name.clone()));
                match other.get(name) {
                    Some(other) => compare(value, other, at, found),
                    // The member name itself is a secret.
                    None => found.push(at.clone()),
                }
                at.pop();
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in (0..).zip(one.iter().zip(other)) {
                at.push(PathStep::Index(index));
                compare(one, other, at, found);
                at.pop();
            }
        }
        (one, other) if one == other => {}
        _ => found.push(at.clone()),
    }
}

/// The value of an argument, as far as it is literal or given.
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

fn step<'v>(value: Option<&'v Value>, step: &PathStep) -> Option<&'v Value> {
    match step {
        PathStep::Key(name) => value?.get(name),
        PathStep::Index(index) => value?.get(usize::try_from(*index).ok()?),
        PathStep::Any => None,
    }
}

/// The parameter that fills a place.
fn parameter<'a>(argument: &'a Argument, place: &[PathStep]) -> Option<&'a str> {
    match (argument, place.split_first()) {
        (Argument::Parameter { name, .. }, _) => {
            Some(name).filter(|name| !name.is_empty()).map(String::as_str)
        }
        (Argument::Object { fields, .. }, Some((PathStep::Key(key), rest))) => {
            parameter(&fields.iter().rfind(|field| field.name == *key)?.value, rest)
        }
        (Argument::Array { items }, Some((PathStep::Index(index), rest))) => {
            parameter(items.get(usize::try_from(*index).ok()?)?, rest)
        }
        _ => None,
    }
}
