//! The most reliable ways from one node to another.
//!
//! An edge costs −ln(reliability) and a little for its length, so that of two equally reliable ways the
//! shorter is better; its weight, at most 1, is its reliability.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use super::csr::Csr;

/// What each step costs beside its risk.
pub const LENGTH_PENALTY: f64 = 0.1;

/// A way through the graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// The nodes, from the first to the last.
    pub nodes: Vec<usize>,
    /// What it costs.
    pub cost: f64,
}

/// The cheapest way.
pub fn shortest(graph: &Csr, from: usize, to: usize) -> Option<Path> {
    search(graph, from, to, &HashSet::new(), &HashSet::new())
}

/// The `count` cheapest ways that visit no node twice, cheapest first (Yen's method).
pub fn best(graph: &Csr, from: usize, to: usize, count: usize) -> Vec<Path> {
    let mut found: Vec<Path> = shortest(graph, from, to).into_iter().collect();
    let mut open: Vec<Path> = Vec::new();
    while let Some(last) = found.last().cloned()
        && found.len() < count
    {
        for turn in 0..last.nodes.len() - 1 {
            let root = &last.nodes[..=turn];
            let same = |path: &&Path| path.nodes.starts_with(root);
            let taken: HashSet<(usize, usize)> =
                found.iter().filter(same).map(|path| (path.nodes[turn], path.nodes[turn + 1])).collect();
            let passed: HashSet<usize> = root[..turn].iter().copied().collect();
            if let Some(rest) = search(graph, root[turn], to, &passed, &taken) {
                let nodes: Vec<usize> = root[..turn].iter().copied().chain(rest.nodes).collect();
                let path = Path { cost: cost(graph, &nodes), nodes };
                if !open.contains(&path) && !found.contains(&path) {
                    open.push(path);
                }
            }
        }
        let order = |a: &&Path, b: &&Path| a.cost.total_cmp(&b.cost).then_with(|| a.nodes.cmp(&b.nodes));
        let Some(next) = open.iter().min_by(order).cloned() else { break };
        open.retain(|path| *path != next);
        found.push(next);
    }
    found
}

/// What one edge of this weight costs.
pub fn step(weight: f64) -> f64 {
    LENGTH_PENALTY - weight.min(1.0).ln()
}

fn cost(graph: &Csr, nodes: &[usize]) -> f64 {
    nodes.windows(2).map(|pair| step(graph.weight(pair[0], pair[1]))).sum()
}

/// A node that waits to be visited: costs compare as their bits, which is right for those above zero.
type Waiting = Reverse<(u64, usize)>;

fn search(
    graph: &Csr,
    from: usize,
    to: usize,
    closed: &HashSet<usize>,
    taken: &HashSet<(usize, usize)>,
) -> Option<Path> {
    let mut costs = vec![f64::INFINITY; graph.len()];
    let mut before = vec![usize::MAX; graph.len()];
    let mut waiting: BinaryHeap<Waiting> = BinaryHeap::new();
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
            let cost = so_far + step(weight);
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
    Some(Path { nodes, cost: costs[to] })
}
