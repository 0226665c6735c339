//! Most reliable paths between nodes.
//!
//! The cost of an edge is −ln(reliability) plus a small constant, so that of two equally reliable paths the shorter
//! wins. The reliability of an edge is its weight, at most 1.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use super::csr::CsrGraph;

/// Cost per edge in addition to its risk.
pub const LENGTH_PENALTY: f64 = 0.1;

/// A path through the graph.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphPath {
    /// Nodes from the first to the last.
    pub nodes: Vec<usize>,
    /// Sum of the edge costs.
    pub cost: f64,
}

/// The cheapest path.
pub fn shortest_path(graph: &CsrGraph, from: usize, to: usize) -> Option<GraphPath> {
    search(graph, from, to, &HashSet::new(), &HashSet::new())
}

/// The `count` cheapest paths without repeated nodes, cheapest first (Yen's algorithm).
pub fn best_paths(graph: &CsrGraph, from: usize, to: usize, count: usize) -> Vec<GraphPath> {
    let mut found: Vec<GraphPath> = shortest_path(graph, from, to).into_iter().collect();
    let mut open: Vec<GraphPath> = Vec::new();
    while let Some(last) = found.last().cloned()
        && found.len() < count
    {
        for turn in 0..last.nodes.len() - 1 {
            let root = &last.nodes[..=turn];
            let same = |path: &&GraphPath| path.nodes.starts_with(root);
            let taken: HashSet<(usize, usize)> =
                found.iter().filter(same).map(|path| (path.nodes[turn], path.nodes[turn + 1])).collect();
            let passed: HashSet<usize> = root[..turn].iter().copied().collect();
            if let Some(rest) = search(graph, root[turn], to, &passed, &taken) {
                let nodes: Vec<usize> = root[..turn].iter().copied().chain(rest.nodes).collect();
                let path = GraphPath { cost: cost(graph, &nodes), nodes };
                if !open.contains(&path) && !found.contains(&path) {
                    open.push(path);
                }
            }
        }
        let order =
            |a: &&GraphPath, b: &&GraphPath| a.cost.total_cmp(&b.cost).then_with(|| a.nodes.cmp(&b.nodes));
        let Some(next) = open.iter().min_by(order).cloned() else { break };
        open.retain(|path| *path != next);
        found.push(next);
    }
    found
}

/// Cost of an edge of this weight.
pub fn edge_cost(weight: f64) -> f64 {
    LENGTH_PENALTY - weight.min(1.0).ln()
}

fn cost(graph: &CsrGraph, nodes: &[usize]) -> f64 {
    nodes.windows(2).map(|pair| edge_cost(graph.weight(pair[0], pair[1]))).sum()
}

/// Entry of the priority queue. Costs are compared by their bits, which is correct for non-negative floats.
type QueuedNode = Reverse<(u64, usize)>;

fn search(
    graph: &CsrGraph,
    from: usize,
    to: usize,
    closed: &HashSet<usize>,
    taken: &HashSet<(usize, usize)>,
) -> Option<GraphPath> {
    let mut costs = vec![f64::INFINITY; graph.len()];
    let mut before = vec![usize::MAX; graph.len()];
    let mut waiting: BinaryHeap<QueuedNode> = BinaryHeap::new();
    *costs.get_mut(from)? = 0.0;
    waiting.push(Reverse((0, from)));
    while let Some(Reverse((bits, node))) = waiting.pop() {
        let so_far = f64::from_bits(bits);
        if node == to {
            break;
        }
        if so_far > costs[node] {
            continue;
        }
        for (next, weight) in graph.neighbours(node) {
            let cost = so_far + edge_cost(weight);
            if cost < costs[next] && !closed.contains(&next) && !taken.contains(&(node, next)) {
                costs[next] = cost;
                before[next] = node;
                waiting.push(Reverse((cost.to_bits(), next)));
            }
        }
    }
    if !costs.get(to)?.is_finite() {
        return None;
    }
    let mut nodes = vec![to];
    while nodes[nodes.len() - 1] != from {
        nodes.push(before[nodes[nodes.len() - 1]]);
    }
    nodes.reverse();
    Some(GraphPath { nodes, cost: costs[to] })
}
