//! Finds the edges between the calls of a run: by time, and by values that went from results into arguments.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use pml_model::structure::{EdgeBasis, EdgeLink, NodeId, Structure};
use pml_model::trace::{EdgeKind, TraceEdge};
use serde_json::Value;

use super::{TracedCall, TracedEnd};

/// 1 MiB: larger values are not searched.
const MOST_BYTES: usize = 1 << 20;
/// The number of values of one result that are searched for.
const MOST_VALUES: usize = 5_000;
/// The number of values in a result and in arguments that are compared if the structure has a reference between them.
const MOST_LEAVES: usize = 500;
/// Bytes: the shortest text that identifies its origin.
const SHORTEST: usize = 4;
/// Integers below this are too common to identify their origin.
const SMALL: f64 = 1_000.0;

/// The hashes of the distinctive values within a value.
pub(super) type ValueHashes = HashSet<u64>;

/// The values within `json` that are distinctive enough to identify their origin.
pub(super) fn values(json: &str) -> ValueHashes {
    let mut found = ValueHashes::new();
    if json.len() <= MOST_BYTES
        && let Ok(value) = serde_json::from_str(json)
    {
        walk(&value, &mut found);
    }
    found
}

/// The hash of a value, and whether it is distinctive.
fn walk(value: &Value, found: &mut ValueHashes) -> (u64, bool) {
    let hash = |kind: u8, what: u64| {
        let mut hasher = DefaultHasher::new();
        (kind, what).hash(&mut hasher);
        hasher.finish()
    };
    let text = |text: &str| {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        hasher.finish()
    };
    let (hash, telling) = match value {
        Value::Null => (hash(0, 0), false),
        Value::Bool(flag) => (hash(1, u64::from(*flag)), false),
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            (hash(2, number.to_bits()), number.abs() >= SMALL || number.fract() != 0.0)
        }
        Value::String(string) => (hash(3, text(string)), string.trim().len() >= SHORTEST),
        Value::Array(items) => {
            let mut all = DefaultHasher::new();
            let mut telling = false;
            for item in items {
                let (hash, tells) = walk(item, found);
                hash.hash(&mut all);
                telling |= tells;
            }
            (hash(4, all.finish()), telling)
        }
        Value::Object(members) => {
            // The order of members does not count, so their hashes are summed.
            let (mut sum, mut telling) = (0_u64, false);
            for (name, member) in members {
                let (value, tells) = walk(member, found);
                sum = sum.wrapping_add(hash(6, text(name) ^ value.rotate_left(17)));
                telling |= tells;
            }
            (hash(5, sum), telling)
        }
    };
    if telling && found.len() < MOST_VALUES {
        found.insert(hash);
    }
    (hash, telling)
}

/// The edges between `calls` of a program or document with this structure.
///
/// Edges of operations are kept apart from those of calls: a call follows another whether or not something was computed
/// in between, and what is learned about tools must not depend on that.
pub(super) fn between(calls: &[&TracedCall], structure: &Structure) -> Vec<TraceEdge> {
    let places: Vec<usize> = (0..calls.len()).filter(|place| calls[*place].operation.is_none()).collect();
    let only_calls: Vec<&TracedCall> = places.iter().map(|place| calls[*place]).collect();
    let mut edges = by_data(&only_calls, structure);
    edges.extend(by_time(&only_calls));
    if places.len() == calls.len() {
        return edges;
    }
    let there = |place: u32| places[place as usize];
    let mut edges: Vec<TraceEdge> =
        edges.into_iter().map(|found| edge(there(found.from), there(found.to), found.kind)).collect();
    edges.extend(of_operations(calls, structure));
    edges
}

/// The edges of operations with calls and with each other: their order, and the data flow in the structure. Their
/// inputs are not recorded, so values give no edges.
fn of_operations(calls: &[&TracedCall], structure: &Structure) -> Vec<TraceEdge> {
    let either = |from: usize, to: usize| calls[from].operation.is_some() || calls[to].operation.is_some();
    let named = named(structure);
    let mut edges = Vec::new();
    for (to, later) in calls.iter().enumerate() {
        for (from, earlier) in calls.iter().enumerate() {
            let is_named = || earlier.node.zip(later.node).is_some_and(|pair| named.contains(&pair));
            if either(from, to) && earlier.is_before(later) && is_named() && is_last(calls, from, later) {
                edges.push(edge(from, to, EdgeKind::Dependency));
            }
        }
    }
    edges.extend(by_time(calls).into_iter().filter(|found| either(found.from as usize, found.to as usize)));
    edges
}

fn edge(from: usize, to: usize, kind: EdgeKind) -> TraceEdge {
    let place = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
    TraceEdge { from: place(from), to: place(to), kind }
}

/// The order of calls: one ended before the other started, with as few edges as express it.
fn by_time(calls: &[&TracedCall]) -> Vec<TraceEdge> {
    let mut edges = Vec::new();
    for (to, later) in calls.iter().enumerate() {
        let before = || calls.iter().enumerate().filter(|(_, call)| call.is_before(later));
        // Whatever had ended when the last of these started is implied by the edge to that one.
        let Some(last) = before().map(|(_, call)| call).max_by_key(|call| (call.began, call.step)) else {
            continue;
        };
        let direct = before().filter(|(_, call)| !call.is_before(last));
        edges.extend(direct.map(|(from, _)| edge(from, to, EdgeKind::Sequence)));
    }
    edges
}

/// The data flow: the result of one call went into the arguments of another.
fn by_data(calls: &[&TracedCall], structure: &Structure) -> Vec<TraceEdge> {
    let given: Vec<ValueHashes> = calls.iter().map(|call| values(&call.arguments)).collect();
    let any = given.iter().any(|given| !given.is_empty());
    let gave: Vec<ValueHashes> = match any {
        true => calls.iter().zip(&given).map(|(call, given)| gave(call, given)).collect(),
        false => vec![ValueHashes::new(); calls.len()],
    };
    let named = named(structure);
    let mut edges = Vec::new();
    for (to, later) in calls.iter().enumerate() {
        for (from, earlier) in calls.iter().enumerate() {
            let told = || !gave[from].is_disjoint(&given[to]);
            let is_named = || {
                let pair = earlier.node.zip(later.node);
                pair.is_some_and(|pair| named.contains(&pair)) && is_last(calls, from, later)
            };
            if earlier.is_before(later) && (told() || (is_named() && hands_on(earlier, later))) {
                edges.push(edge(from, to, EdgeKind::Dependency));
            }
        }
    }
    edges
}

/// The pairs of nodes between which the structure has a data reference.
fn named(structure: &Structure) -> HashSet<(NodeId, NodeId)> {
    let data = |link: &EdgeLink| matches!(link, EdgeLink::Provides { basis: EdgeBasis::Data, .. });
    structure.edges.iter().filter(|edge| data(&edge.link)).map(|edge| (edge.from, edge.to)).collect()
}

/// Whether a call is the last one of its node that had ended when the other started.
fn is_last(calls: &[&TracedCall], place: usize, later: &TracedCall) -> bool {
    let node = calls[place].node;
    calls[place + 1..].iter().all(|call| call.node != node || !call.is_before(later))
}

/// Whether anything of a result occurs in the arguments of another call, however small. That is evidence only if the
/// structure has a reference between them.
fn hands_on(earlier: &TracedCall, later: &TracedCall) -> bool {
    let Some(TracedEnd::Result { kept: Some(result), .. }) = &earlier.end else { return false };
    let (Ok(result), Ok(arguments)) =
        (serde_json::from_str::<Value>(result.get()), serde_json::from_str::<Value>(&later.arguments))
    else {
        return false;
    };
    let (mut gave, mut given) = (Vec::new(), Vec::new());
    leaves(&result, &mut gave);
    leaves(&arguments, &mut given);
    given.iter().any(|given| gave.iter().any(|gave| stands_in(gave, given)))
}

/// The scalar values within a value, up to the limit.
fn leaves<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
    match value {
        _ if found.len() >= MOST_LEAVES => {}
        Value::Array(items) if !items.is_empty() => items.iter().for_each(|item| leaves(item, found)),
        Value::Object(members) if !members.is_empty() => {
            members.values().for_each(|member| leaves(member, found));
        }
        _ => found.push(value),
    }
}

/// Whether a value equals another, or is part of its text.
fn stands_in(gave: &Value, given: &Value) -> bool {
    gave == given
        || match (gave, given) {
            (Value::String(part), Value::String(text)) => !part.is_empty() && text.contains(part.as_str()),
            (Value::Number(part), Value::String(text)) => text.contains(&part.to_string()),
            _ => false,
        }
}

/// The values that a call brought into the run, without those it was given and only returned.
fn gave(call: &TracedCall, given: &ValueHashes) -> ValueHashes {
    match &call.end {
        Some(TracedEnd::Result { kept: Some(value), .. }) => {
            values(value.get()).into_iter().filter(|value| !given.contains(value)).collect()
        }
        Some(TracedEnd::Result { kept: None, values, .. }) => values.difference(given).copied().collect(),
        Some(TracedEnd::Error { .. }) | None => ValueHashes::new(),
    }
}
