//! What followed from what in a run: by time, and by the values that went from results into arguments.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use pml_model::trace::{EdgeKind, TraceEdge};
use serde_json::Value;

use super::{Call, End};

/// Values larger than this are not gone through.
const MOST_BYTES: usize = 1 << 20;
/// How many values of one result are looked for.
const MOST_VALUES: usize = 5_000;
/// The shortest text that says where it comes from.
const SHORTEST: usize = 4;
/// Whole numbers below this are too common.
const SMALL: f64 = 1_000.0;

/// Hashes of the values within a value that are not found just anywhere.
pub(super) type Values = HashSet<u64>;

/// The values within `json` that say where they come from.
pub(super) fn values(json: &str) -> Values {
    let mut found = Values::new();
    if json.len() <= MOST_BYTES
        && let Ok(value) = serde_json::from_str(json)
    {
        walk(&value, &mut found);
    }
    found
}

/// The hash of a value, and whether it says where it comes from.
fn walk(value: &Value, found: &mut Values) -> (u64, bool) {
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
            // The order of members does not count.
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

/// What followed from what among `calls`.
pub(super) fn between(calls: &[&Call]) -> Vec<TraceEdge> {
    let mut edges = by_data(calls);
    edges.extend(by_time(calls));
    edges
}

fn edge(from: usize, to: usize, kind: EdgeKind) -> TraceEdge {
    let place = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
    TraceEdge { from: place(from), to: place(to), kind }
}

/// Calls that had ended when others began, as few edges as tell it all.
fn by_time(calls: &[&Call]) -> Vec<TraceEdge> {
    let mut edges = Vec::new();
    for (to, later) in calls.iter().enumerate() {
        let before = || calls.iter().enumerate().filter(|(_, call)| call.is_before(later));
        // Whatever had ended when the last of these began is told by way of it.
        let Some(last) = before().map(|(_, call)| call).max_by_key(|call| call.began) else { continue };
        let direct = before().filter(|(_, call)| !call.is_before(last));
        edges.extend(direct.map(|(from, _)| edge(from, to, EdgeKind::Sequence)));
    }
    edges
}

/// Calls whose results went into the arguments of others.
fn by_data(calls: &[&Call]) -> Vec<TraceEdge> {
    let given: Vec<Values> = calls.iter().map(|call| values(&call.arguments)).collect();
    if given.iter().all(Values::is_empty) {
        return Vec::new();
    }
    let gave: Vec<Values> = calls.iter().zip(&given).map(|(call, given)| gave(call, given)).collect();
    let mut edges = Vec::new();
    for (to, later) in calls.iter().enumerate() {
        for (from, earlier) in calls.iter().enumerate() {
            if earlier.is_before(later) && !gave[from].is_disjoint(&given[to]) {
                edges.push(edge(from, to, EdgeKind::Dependency));
            }
        }
    }
    edges
}

/// The values that a call brought into the run: not those it was given and only handed back.
fn gave(call: &Call, given: &Values) -> Values {
    match &call.end {
        Some(End::Result { kept: Some(value), .. }) => {
            values(value.get()).into_iter().filter(|value| !given.contains(value)).collect()
        }
        Some(End::Result { kept: None, values, .. }) => values.difference(given).copied().collect(),
        Some(End::Error { .. }) | None => Values::new(),
    }
}
