//! Closeness of nodes to recently used ones, for ranking with a context and for the next step.
//!
//! Two things count: an edge from a node of the context, weighted by its observations, and shared neighbours without an
//! edge (Adamic–Adar). The most recent node counts most. Scores are from 0 to 1 and come with a reason.

use std::collections::{BTreeMap, HashMap};

use super::adamic_adar::adamic_adar;
use super::edges::{EdgeType, GraphSnapshot, TypedGraph};

/// Weight factor for each step back in the context.
const FADING: f64 = 0.8;
/// Weight of a full neighbour overlap, relative to a certain edge.
const IN_COMMON: f64 = 0.5;

/// A node close to the context.
#[derive(Debug, Clone, PartialEq)]
pub struct CloseNode {
    /// Id of the node.
    pub id: String,
    /// Closeness from 0 to 1.
    pub score: f64,
    /// Reason, in words.
    pub reason: String,
}

/// Ties of one node to one node of the context.
#[derive(Clone, Copy, Default)]
struct NodeTies {
    direct: f64,
    of_direct: usize,
    common: f64,
    of_common: usize,
}

/// Nodes close to `context`, closest first, without the context itself. The most recent node of `context` is last.
pub fn closest_nodes(graph: &TypedGraph, snapshot: &GraphSnapshot, context: &[&str]) -> Vec<CloseNode> {
    let mut ties: BTreeMap<usize, NodeTies> = BTreeMap::new();
    let mut say = 1.0;
    for (at, id) in context.iter().enumerate().rev() {
        if let Some(node) = snapshot.node_index(id) {
            let often = SuccessorCounts::after(graph, id);
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
    let mut close: Vec<CloseNode> = outside
        .map(|(node, tie)| {
            let id = snapshot.ids[node].clone();
            let score = 1.0 - (1.0 - tie.direct) * (1.0 - IN_COMMON * tie.common);
            let reason = reason(graph, context, &id, tie);
            CloseNode { id, score, reason }
        })
        .collect();
    close.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.id.cmp(&b.id)));
    close
}

/// Observation counts of the successors of a node, and the largest of them.
struct SuccessorCounts<'g> {
    times: HashMap<&'g str, u64>,
    most: u64,
}

impl<'g> SuccessorCounts<'g> {
    fn after(graph: &'g TypedGraph, id: &str) -> SuccessorCounts<'g> {
        let mut times = HashMap::new();
        for edge in graph.edges_from(id) {
            let known: &mut u64 = times.entry(edge.to).or_default();
            *known = edge.count.max(*known);
        }
        let most = times.values().copied().max().unwrap_or(0).max(1);
        SuccessorCounts { times, most }
    }

    /// Square root of the count relative to the largest one: a successor observed a quarter as often counts half. A
    /// successor that was only inferred counts as if it had been observed once.
    fn share(&self, id: &str) -> f64 {
        let times = self.times.get(id).copied().unwrap_or(0).max(1);
        (times as f64 / self.most as f64).sqrt()
    }
}

fn reason(graph: &TypedGraph, context: &[&str], id: &str, tie: NodeTies) -> String {
    if tie.direct < IN_COMMON * tie.common {
        return format!("has much in common with `{}`", context[tie.of_common]);
    }
    let from = context[tie.of_direct];
    let edges = graph.edges_between(from, id);
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
