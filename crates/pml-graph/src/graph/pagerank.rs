//! PageRank: how much of the traffic along edges ends at each node.

use super::csr::Csr;

/// The share of steps that follow an edge.
const DAMPING: f64 = 0.85;
/// When the ranks have settled, as a sum of changes.
const SETTLED: f64 = 1e-10;
/// When to stop in any case.
const MOST_ROUNDS: usize = 200;

/// The rank of each node; they add up to 1. Steps follow edges by their weight; from a node without
/// edges they go anywhere.
#[expect(clippy::cast_precision_loss, reason = "numbers of nodes are small")]
pub fn pagerank(graph: &Csr) -> Vec<f64> {
    let nodes = graph.len();
    if nodes == 0 {
        return Vec::new();
    }
    let even = 1.0 / nodes as f64;
    let sums: Vec<f64> =
        (0..nodes).map(|node| graph.neighbours(node).map(|(_, weight)| weight).sum()).collect();
    let mut ranks = vec![even; nodes];
    for _ in 0..MOST_ROUNDS {
        let lost: f64 = ranks.iter().zip(&sums).filter(|(_, sum)| **sum == 0.0).map(|(rank, _)| rank).sum();
        let mut next = vec![(1.0 - DAMPING + DAMPING * lost) * even; nodes];
        for (node, rank) in ranks.iter().enumerate() {
            let share = DAMPING * rank / sums[node];
            for (target, weight) in graph.neighbours(node) {
                next[target] += share * weight;
            }
        }
        let change: f64 = next.iter().zip(&ranks).map(|(new, old)| (new - old).abs()).sum();
        ranks = next;
        if change < SETTLED {
            break;
        }
    }
    ranks
}
