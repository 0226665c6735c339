//! Analysis across tasks: cycles, edges and parameters. Linear in the size of the document.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use pml_model::structure::{Argument, Coverage, Edge, EdgeBasis, EdgeLink, NodeId, PathStep};
use serde_json::{Map, Value, json};

use super::complaints::DagComplaints;
use super::row::TaskRow;
use super::{DocumentWork, Reference, ReferenceRoot, shorten_for_message};
use crate::schema::{follow, parameter_schema, required};
use crate::{AnalysisCatalogue, ComplaintCode, Severity};

/// Maximum number of tasks of a cycle that are named.
const SHOWN_OF_CYCLE: usize = 10;

/// Complains about tasks that wait for each other. One cycle of every tangle is reported; the next appears once that
/// one is fixed.
pub(crate) fn cycles(rows: &[TaskRow<'_>], complaints: &mut DagComplaints<'_, '_>) {
    let index: HashMap<&str, usize> =
        rows.iter().enumerate().map(|(index, row)| (row.task.id.as_str(), index)).collect();
    let waits: Vec<Vec<usize>> = rows
        .iter()
        .map(|row| row.task.depends_on.iter().filter_map(|id| index.get(id.as_str()).copied()).collect())
        .collect();
    let stuck = never_ready(&waits);
    // Each stuck task waits for at least one stuck task, so following those leads into a cycle.
    let mut walk_of = vec![0_usize; rows.len()];
    for (walk, start) in (1..).zip((0..rows.len()).filter(|&task| stuck[task])) {
        let (mut here, mut path) = (start, Vec::new());
        while walk_of[here] == 0 {
            walk_of[here] = walk;
            path.push(here);
            here = *waits[here]
                .iter()
                .find(|&&other| stuck[other])
                .expect("a stuck task waits for a stuck task");
        }
        if walk_of[here] == walk {
            let begin = path.iter().position(|&task| task == here).expect("the walk came by here");
            name_cycle(rows, &path[begin..], complaints);
        }
    }
}

/// Tasks that can never start, even when all others are done.
fn never_ready(waits: &[Vec<usize>]) -> Vec<bool> {
    let mut dependants = vec![Vec::new(); waits.len()];
    for (task, others) in waits.iter().enumerate() {
        others.iter().for_each(|&other| dependants[other].push(task));
    }
    let mut open: Vec<usize> = waits.iter().map(Vec::len).collect();
    let mut ready: Vec<usize> = (0..waits.len()).filter(|&task| open[task] == 0).collect();
    while let Some(task) = ready.pop() {
        for &dependant in &dependants[task] {
            open[dependant] -= 1;
            if open[dependant] == 0 {
                ready.push(dependant);
            }
        }
    }
    open.into_iter().map(|count| count > 0).collect()
}

fn name_cycle(rows: &[TaskRow<'_>], cycle: &[usize], complaints: &mut DagComplaints<'_, '_>) {
    let first = cycle.iter().enumerate().min_by_key(|(_, task)| **task).map_or(0, |(place, _)| place);
    let around =
        cycle[first..].iter().chain(&cycle[..first]).map(|&task| shorten_for_message(&rows[task].task.id));
    let mut names: Vec<String> = around.take(SHOWN_OF_CYCLE).collect();
    if cycle.len() > SHOWN_OF_CYCLE {
        names.push(format!("{} more", cycle.len() - SHOWN_OF_CYCLE));
    }
    names.push(names[0].clone());
    let row = &rows[cycle[first]];
    complaints.add(
        (Severity::Error, ComplaintCode::Cycle),
        (row.at, Some(row.task.node)),
        format!("tasks wait for each other: `{}`", names.join(" → ")),
        Some("each waits for the next; take one of these dependencies or references out".to_owned()),
    );
}

/// A `sequence` edge for every dependency, plus a `provides` edge where data flows.
pub(crate) fn edges(rows: &[TaskRow<'_>]) -> Vec<Edge> {
    let nodes: HashMap<&str, NodeId> = rows.iter().map(|row| (row.task.id.as_str(), row.task.node)).collect();
    let there: HashSet<NodeId> = nodes.values().copied().collect();
    let mut required_by: HashMap<*const Value, Vec<&str>> = HashMap::new();
    let mut edges = Vec::new();
    for row in rows {
        let to = row.task.node;
        let before = row.task.depends_on.iter().filter_map(|id| nodes.get(id.as_str()));
        edges.extend(before.map(|&from| Edge { from, to, link: EdgeLink::Sequence }));
        let wanted =
            row.input.map(|input| &*required_by.entry(input).or_insert_with(|| required(input, input)));
        for (from, coverage) in providers(row, wanted) {
            if from != to && there.contains(&from) {
                let link = EdgeLink::Provides { coverage, basis: EdgeBasis::Data, around: None };
                edges.push(Edge { from, to, link });
            }
        }
    }
    edges
}

/// Tasks whose results fill the arguments, and the share of the required input each provides.
fn providers(row: &TaskRow<'_>, wanted: Option<&Vec<&str>>) -> BTreeMap<NodeId, Coverage> {
    let Argument::Object { fields, .. } = &row.argument else {
        let all = nodes_in(&row.argument);
        return all.into_iter().map(|node| (node, Coverage::Strict)).collect();
    };
    let mut filled: BTreeMap<NodeId, BTreeSet<&str>> = BTreeMap::new();
    for field in fields {
        for node in nodes_in(&field.value) {
            filled.entry(node).or_default().insert(&field.name);
        }
    }
    let coverage = |names: &BTreeSet<&str>| match wanted {
        None => Coverage::Partial,
        Some(wanted) => match wanted.iter().filter(|name| names.contains(**name)).count() {
            0 => Coverage::Optional,
            count if count == wanted.len() => Coverage::Strict,
            _ => Coverage::Partial,
        },
    };
    filled.into_iter().map(|(node, names)| (node, coverage(&names))).collect()
}

fn nodes_in(argument: &Argument) -> BTreeSet<NodeId> {
    let mut nodes = BTreeSet::new();
    argument.visit_leaves(&mut |leaf| {
        if let Argument::Reference { node, .. } = leaf {
            nodes.insert(*node);
        }
    });
    nodes
}

/// Complains about references to members that the declared result of a tool does not have.
pub(crate) fn unknown_fields(
    rows: &[TaskRow<'_>],
    catalogue: &AnalysisCatalogue,
    complaints: &mut DagComplaints<'_, '_>,
) {
    let works: HashMap<&str, &DocumentWork> =
        rows.iter().map(|row| (row.task.id.as_str(), &row.task.work)).collect();
    let output = |id: &str| match works.get(id) {
        Some(DocumentWork::Tool { tool }) => {
            let (server, name) = tool.split_once(':')?;
            catalogue.tool(server, name)?.output_schema()
        }
        _ => None,
    };
    for row in rows {
        for (reference, at) in &row.references {
            let ReferenceRoot::Task(id) = &reference.of else { continue };
            let Some(schema) = output(id) else { continue };
            let Err(missing) = follow(schema, schema, &reference.path) else { continue };
            let severity = if missing.closed { Severity::Error } else { Severity::Warning };
            let step = Reference {
                of: ReferenceRoot::Task(id.clone()),
                path: reference.path[..=missing.taken].to_vec(),
            };
            let wanted = match &reference.path[missing.taken] {
                PathStep::Key(key) => key.as_str(),
                PathStep::Index(_) | PathStep::Any => "",
            };
            let hint = complaints.did_you_mean(wanted, missing.known.iter().copied());
            let message = format!(
                "the result of `{}` has no `{}`",
                shorten_for_message(id),
                shorten_for_message(&step.to_string())
            );
            complaints.add(
                (severity, ComplaintCode::UnknownField),
                (*at, Some(row.task.node)),
                message,
                hint,
            );
        }
    }
}

/// JSON Schema of `args`: every referenced member, with the type of the input it fills.
pub(crate) fn parameters(rows: &[TaskRow<'_>]) -> Value {
    let mut properties: Map<String, Value> = Map::new();
    for row in rows {
        parameters_in(&row.argument, row.input, &mut Vec::new(), &mut properties);
    }
    let names: Vec<&String> = properties.keys().collect();
    json!({"type": "object", "required": names, "properties": properties})
}

fn parameters_in(
    argument: &Argument,
    input: Option<&Value>,
    path: &mut Vec<PathStep>,
    properties: &mut Map<String, Value>,
) {
    match argument {
        Argument::Parameter { name, path: inside } if !name.is_empty() => {
            let schema = match inside.first() {
                Some(PathStep::Key(_)) => json!({"type": "object"}),
                Some(PathStep::Index(_) | PathStep::Any) => json!({"type": "array"}),
                None => schema_at(input, path).unwrap_or_else(|| json!({})),
            };
            let known = properties.entry(name.clone()).or_insert_with(|| json!({}));
            if known.as_object().is_some_and(Map::is_empty) {
                *known = schema;
            }
        }
        Argument::Object { fields, .. } => {
            for field in fields {
                path.push(PathStep::Key(field.name.clone()));
                parameters_in(&field.value, input, path, properties);
                path.pop();
            }
        }
        Argument::Array { items } => {
            for (item, index) in items.iter().zip(0..) {
                path.push(PathStep::Index(index));
                parameters_in(item, input, path, properties);
                path.pop();
            }
        }
        Argument::Template { parts } => {
            parts.iter().for_each(|part| parameters_in(part, None, path, properties));
        }
        _ => {}
    }
}

fn schema_at(input: Option<&Value>, path: &[PathStep]) -> Option<Value> {
    let root = input?;
    follow(root, root, path).ok().flatten().map(|schema| parameter_schema(root, schema))
}
