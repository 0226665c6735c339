//! PageRank: the importance of nodes by the edges that lead to them.

use super::csr::CsrGraph;

/// Probability of following an edge.
const DAMPING: f64 = 0.85;
/// Sum of changes below which the ranks have converged.
const SETTLED: f64 = 1e-10;
/// Maximum number of iterations.
const MOST_ROUNDS: usize = 200;

/// Rank of each node; the ranks add up to 1. A step follows edges in proportion to their weight; from a node without
/// edges it goes to any node.
#[expect(clippy::cast_precision_loss, reason = "numbers of nodes are small")]
pub fn pagerank(graph: &CsrGraph) -> Vec<f64> {
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
