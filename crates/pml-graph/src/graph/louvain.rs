//! Communities by the Louvain method: which nodes have more to do with each other than by chance.
//!
//! Nodes are visited in their order, so the same graph always falls into the same communities.

use super::csr::Csr;

/// A gain below this is none.
const LEAST_GAIN: f64 = 1e-12;
/// How often all nodes are visited on one level, at most.
const MOST_ROUNDS: usize = 100;

/// The community of each node, numbered from 0 in the order of their first nodes. `graph` is undirected:
/// every edge is there in both directions.
pub fn communities(graph: &Csr) -> Vec<usize> {
    let mut of_node: Vec<usize> = (0..graph.len()).collect();
    let mut level = graph.clone();
    // Loops of later levels stand for edges within, which have two ends there.
    let mut within = (0..level.len()).map(|node| level.weight(node, node)).collect::<Vec<_>>();
    loop {
        let moved = settle(&level, &within);
        let numbered = renumber(&moved);
        let count = numbered.iter().max().map_or(0, |most| most + 1);
        of_node.iter_mut().for_each(|community| *community = numbered[*community]);
        if count == level.len() {
            return renumber(&of_node);
        }
        (level, within) = gather(&level, &within, &numbered, count);
    }
}

/// How good communities are: the share of edges within them beyond what chance would put there.
pub fn modularity(graph: &Csr, community: &[usize]) -> f64 {
    let count = community.iter().max().map_or(0, |most| most + 1);
    let mut inside = vec![0.0; count];
    let mut ends = vec![0.0; count];
    for (from, to, weight) in graph.edges() {
        let (from, to) = (from as usize, to as usize);
        let weight = if from == to { 2.0 * weight } else { weight };
        ends[community[from]] += weight;
        if community[from] == community[to] {
            inside[community[from]] += weight;
        }
    }
    let all: f64 = ends.iter().sum();
    if all == 0.0 {
        return 0.0;
    }
    inside.iter().zip(&ends).map(|(inside, ends)| inside / all - (ends / all).powi(2)).sum()
}

/// Moves each node to the community where it gains most, until none moves.
fn settle(level: &Csr, within: &[f64]) -> Vec<usize> {
    let nodes = level.len();
    let ends: Vec<f64> = (0..nodes)
        .map(|node| 2.0 * within[node] + outside(level, node).map(|(_, weight)| weight).sum::<f64>())
        .collect();
    let all: f64 = ends.iter().sum();
    let mut community: Vec<usize> = (0..nodes).collect();
    let mut total = ends.clone();
    let mut towards = vec![0.0; nodes];
    for _ in 0..MOST_ROUNDS {
        let mut moved = false;
        for node in 0..nodes {
            let home = community[node];
            let mut near = vec![home];
            for (other, weight) in outside(level, node) {
                let there = community[other];
                if towards[there] == 0.0 && there != home {
                    near.push(there);
                }
                towards[there] += weight;
            }
            total[home] -= ends[node];
            let gain = |there: usize| towards[there] - total[there] * ends[node] / all;
            let mut best = (gain(home), home);
            for there in near.iter().copied().skip(1) {
                if gain(there) > best.0 + LEAST_GAIN {
                    best = (gain(there), there);
                }
            }
            total[best.1] += ends[node];
            moved |= best.1 != home;
            community[node] = best.1;
            near.into_iter().for_each(|there| towards[there] = 0.0);
        }
        if !moved {
            break;
        }
    }
    community
}

fn outside(level: &Csr, node: usize) -> impl Iterator<Item = (usize, f64)> {
    level.neighbours(node).filter(move |(other, _)| *other != node)
}

/// Numbers from 0 in the order of first appearance.
fn renumber(labels: &[usize]) -> Vec<usize> {
    let mut number = vec![None; labels.iter().max().map_or(0, |most| most + 1)];
    let mut next = 0;
    let mut numbered = Vec::with_capacity(labels.len());
    for label in labels {
        numbered.push(*number[*label].get_or_insert_with(|| {
            next += 1;
            next - 1
        }));
    }
    numbered
}

/// The graph whose nodes are the communities, and the weight within each.
fn gather(level: &Csr, within: &[f64], community: &[usize], count: usize) -> (Csr, Vec<f64>) {
    let mut inside = vec![0.0; count];
    for (node, weight) in within.iter().enumerate() {
        inside[community[node]] += weight;
    }
    let number = |node: u32| u32::try_from(community[node as usize]).expect("no more than nodes");
    let mut between = Vec::new();
    for (from, to, weight) in level.edges().filter(|(from, to, _)| from != to) {
        let (start, end) = (number(from), number(to));
        if start == end {
            // Each edge is there twice.
            inside[start as usize] += weight / 2.0;
        } else {
            between.push((start, end, weight));
        }
    }
    (Csr::new(count, between), inside)
}
