//! How close things are to what was just used: for ranking with a context and for the next step.
//!
//! Two things count: an edge from something of the context, the more the oftener it was seen, and what both have
//! in common without one (Adamic–Adar). The most recent counts most. Scores are from 0 to 1 and come with a
//! reason.

use std::collections::{BTreeMap, HashMap};

use super::adamic_adar::adamic_adar;
use super::edges::{EdgeType, Graph, Snapshot};

/// What each step back in the context takes from its say.
const FADING: f64 = 0.8;
/// What having everything in common is worth against a sure edge.
const IN_COMMON: f64 = 0.5;

/// Something close to the context.
#[derive(Debug, Clone, PartialEq)]
pub struct Close {
    /// Its id.
    pub id: String,
    /// How close, from 0 to 1.
    pub score: f64,
    /// Why, in words.
    pub reason: String,
}

/// How one node is close to one of the context.
#[derive(Clone, Copy, Default)]
struct Ties {
    direct: f64,
    of_direct: usize,
    common: f64,
    of_common: usize,
}

/// What is close to `context`, the most recent last; closest first. The context itself is left out.
pub fn closeness(graph: &Graph, snapshot: &Snapshot, context: &[&str]) -> Vec<Close> {
    let mut ties: BTreeMap<usize, Ties> = BTreeMap::new();
    let mut say = 1.0;
    for (at, id) in context.iter().enumerate().rev() {
        if let Some(node) = snapshot.node(id) {
            let often = Often::after(graph, id);
            for (other, weight) in snapshot.directed.neighbours(node) {
                let tie = ties.entry(other).or_default();
                let direct = say * weight * often.share(&snapshot.ids[other]);
                if direct > tie.direct {
                    (tie.direct, tie.of_direct) = (direct, at);
                }
            }
            for (other, score) in adamic_adar(&snapshot.undirected, node) {
                let tie = ties.entry(other).or_default();
                let common = say * score / (1.0 + score);
                if common > tie.common {
                    (tie.common, tie.of_common) = (common, at);
                }
            }
        }
        say *= FADING;
    }
    let outside = ties.into_iter().filter(|(node, _)| !context.contains(&snapshot.ids[*node].as_str()));
    let mut close: Vec<Close> = outside
        .map(|(node, tie)| {
            let id = snapshot.ids[node].clone();
            let score = 1.0 - (1.0 - tie.direct) * (1.0 - IN_COMMON * tie.common);
            let reason = reason(graph, context, &id, tie);
            Close { id, score, reason }
        })
        .collect();
    close.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.id.cmp(&b.id)));
    close
}

/// How often what came after something, beside what came most often.
struct Often<'g> {
    times: HashMap<&'g str, u64>,
    most: u64,
}

impl<'g> Often<'g> {
    fn after(graph: &'g Graph, id: &str) -> Often<'g> {
        let mut times = HashMap::new();
        for edge in graph.outgoing(id) {
            let known: &mut u64 = times.entry(edge.to).or_default();
            *known = edge.count.max(*known);
        }
        let most = times.values().copied().max().unwrap_or(0).max(1);
        Often { times, most }
    }

    /// From 0 to 1, by the root: what came a quarter as often counts half. What was never seen, and only fits, counts as if
    /// it had been seen once.
    fn share(&self, id: &str) -> f64 {
        let times = self.times.get(id).copied().unwrap_or(0).max(1);
        (times as f64 / self.most as f64).sqrt()
    }
}

fn reason(graph: &Graph, context: &[&str], id: &str, tie: Ties) -> String {
    if tie.direct < IN_COMMON * tie.common {
        return format!("has much in common with `{}`", context[tie.of_common]);
    }
    let from = context[tie.of_direct];
    let edges = graph.between(from, id);
    let Some(edge) = edges.first() else { return format!("is close to `{from}`") };
    let times = match edge.count {
        0 => String::new(),
        1 => " (once)".to_owned(),
        count => format!(" ({count} times)"),
    };
    match edge.kind {
        EdgeType::Dependency => format!("used results of `{from}`{times}"),
        EdgeType::Contains => format!("is part of `{from}`"),
        EdgeType::Provides => format!("can take what `{from}` gives"),
        EdgeType::Sequence => format!("followed `{from}`{times}"),
    }
}
