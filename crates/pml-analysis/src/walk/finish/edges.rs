//! Data edges: certain ones by values, possible ones by schemas.

use std::borrow::Cow;

use pml_model::structure::{Coverage, EdgeBasis, EdgeLink};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value as Json;
use smallvec::{SmallVec, smallvec};

use super::super::parts::graph::{DraftGraph, DraftKind};
use super::callees::Callees;
use super::lowering::Lowering;
use crate::budget::WorkBudget;
use crate::schema;
use crate::value::{AbstractValue, RecordKind, key_name};

/// Number of following nodes that are searched for a consumer whose input a provider's output could fill.
const SCHEMA_REACH: usize = 64;

/// An edge between two nodes, by index.
pub(crate) type NewEdge = (u32, u32, EdgeLink);

/// The inputs of a node, each with its name.
type NamedParts<'v, 'a> = SmallVec<[(Option<Cow<'v, str>>, &'v AbstractValue<'a>); 4]>;

/// How one node feeds another.
#[derive(Default)]
struct DataFeed<'p> {
    /// Whether data flows without passing a loop's back edge.
    direct: bool,
    around: Option<u32>,
    /// Members of the arguments that it fills.
    names: SmallVec<[Option<&'p str>; 2]>,
}

/// Edges along which results of calls and operations become inputs of others.
pub(crate) fn data_edges<'a>(
    graph: &DraftGraph<'a>,
    lowering: &Lowering<'_, 'a>,
    callees: &Callees<'_>,
    budget: &WorkBudget,
) -> Vec<NewEdge> {
    let mut found = Vec::new();
    for to in 0..graph.nodes.len() as u32 {
        let parts: NamedParts<'_, 'a> = match &graph.nodes[to as usize].kind {
            DraftKind::Call(call) => parts_of(&call.arguments),
            DraftKind::Operation { inputs, .. } => {
                inputs.iter().map(|(name, value, _)| (Some(Cow::Borrowed(&**name)), value)).collect()
            }
            _ => continue,
        };
        if budget.is_spent_at(graph.nodes[to as usize].span) {
            break;
        }
        for (from, DataFeed { direct, around, names }) in fed(graph, lowering, to, &parts) {
            let around = if direct { None } else { around.map(|node| graph.nodes[node as usize].id) };
            let coverage = coverage(graph, callees, to, &names, parts.len());
            found.push((from, to, EdgeLink::Provides { coverage, basis: EdgeBasis::Data, around }));
        }
    }
    found
}

/// Nodes that feed `to`, in order.
fn fed<'p, 'a>(
    graph: &DraftGraph<'a>,
    lowering: &Lowering<'_, 'a>,
    to: u32,
    parts: &'p NamedParts<'_, 'a>,
) -> SmallVec<[(u32, DataFeed<'p>); 2]> {
    let mut fed: SmallVec<[(u32, DataFeed<'p>); 2]> = SmallVec::new();
    for (name, value) in parts {
        let name = name.as_deref();
        for (from, around) in lowering.providers(value) {
            let around = around.filter(|l| graph.nodes[to as usize].loops.contains(l));
            if from == to && around.is_none() {
                continue;
            }
            let place = match fed.binary_search_by_key(&from, |(from, _)| *from) {
                Ok(place) => place,
                Err(place) => {
                    fed.insert(place, (from, DataFeed::default()));
                    place
                }
            };
            let feeding = &mut fed[place].1;
            match around {
                None => feeding.direct = true,
                Some(_) => feeding.around = feeding.around.or(around),
            }
            if !feeding.names.contains(&name) {
                feeding.names.push(name);
            }
        }
    }
    fed
}

/// Share of the required inputs of `to` that the named members cover.
fn coverage(
    graph: &DraftGraph<'_>,
    callees: &Callees<'_>,
    to: u32,
    names: &[Option<&str>],
    inputs: usize,
) -> Coverage {
    let required: Vec<&str> = match &graph.nodes[to as usize].kind {
        DraftKind::Call(call) => match callees.input_schema(to, call) {
            Some(input) => schema::required(input, input),
            None => return Coverage::Partial,
        },
        DraftKind::Operation { .. } => {
            return if names.len() == inputs { Coverage::Strict } else { Coverage::Partial };
        }
        _ => return Coverage::Partial,
    };
    if names.contains(&None) {
        return Coverage::Partial;
    }
    let given = |wanted: &&&str| names.iter().flatten().any(|name| name == *wanted);
    match required.iter().filter(given).count() {
        0 => Coverage::Optional,
        count if count == required.len() => Coverage::Strict,
        _ => Coverage::Partial,
    }
}

/// For each call the nearest later call that its declared output could feed.
pub(crate) fn schema_edges(graph: &DraftGraph<'_>, callees: &Callees<'_>) -> Vec<NewEdge> {
    let outputs =
        callees.tools.iter().zip(0..).filter_map(|(tool, node)| Some((node, (*tool)?.output_schema()?)));
    let providers: Vec<(u32, &Json)> = outputs.collect();
    if providers.is_empty() {
        return Vec::new();
    }
    let mut after: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    let mut fed: FxHashSet<(u32, u32)> = FxHashSet::default();
    for (from, to, link) in graph.edges() {
        match link {
            EdgeLink::Provides { .. } => {
                fed.insert((*from, *to));
            }
            _ => after.entry(*from).or_default().push(*to),
        }
    }
    let mut found = Vec::new();
    for (from, output) in providers {
        // What follows a loop can also follow the nodes in it.
        let mut starts: Vec<u32> = graph.nodes[from as usize].loops.to_vec();
        starts.push(from);
        for to in reached(&starts, &after).into_iter().filter(|to| *to > from) {
            let DraftKind::Call(consumer) = &graph.nodes[to as usize].kind else { continue };
            let Some(input) = callees.input_schema(to, consumer) else { continue };
            if let Some(coverage) = schema::provides(output, input) {
                if !fed.contains(&(from, to)) {
                    found.push((from, to, coverage));
                }
                break;
            }
        }
    }
    found
        .into_iter()
        .map(|(from, to, coverage)| {
            (from, to, EdgeLink::Provides { coverage, basis: EdgeBasis::Schema, around: None })
        })
        .collect()
}

/// Members of the arguments of a call, each with its name.
fn parts_of<'v, 'a>(arguments: &'v AbstractValue<'a>) -> NamedParts<'v, 'a> {
    match arguments {
        AbstractValue::Record(record) if matches!(record.kind, RecordKind::Object) => {
            let named = record.fields.iter().map(|member| (Some(key_name(&member.key)), &member.value));
            let rest = record.extra.iter().chain(&record.spreads).chain(&record.names);
            named.chain(rest.map(|value| (None, value))).collect()
        }
        other => smallvec![(None, other)],
    }
}

/// Nodes that can follow `from`, nearest in the program first.
fn reached(from: &[u32], after: &FxHashMap<u32, Vec<u32>>) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    let mut waiting = from.to_vec();
    while let Some(node) = waiting.pop() {
        for next in after.get(&node).into_iter().flatten() {
            if found.len() < SCHEMA_REACH && !found.contains(next) {
                found.push(*next);
                waiting.push(*next);
            }
        }
    }
    found.sort_unstable();
    found
}
