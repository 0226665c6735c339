//! Communities by the Louvain method: groups of nodes that are connected more than by chance.
//!
//! Nodes are visited in order, so the same graph always gives the same communities.

use super::csr::CsrGraph;

/// Minimum modularity gain of a move; smaller ones are rounding.
const LEAST_GAIN: f64 = 1e-12;
/// Maximum number of passes over all nodes on one level.
const MOST_ROUNDS: usize = 100;

/// Community of each node, numbered from 0 in the order of their first nodes. `graph` must be undirected: every edge is
/// present in both directions.
pub fn communities(graph: &CsrGraph) -> Vec<usize> {
    let mut of_node: Vec<usize> = (0..graph.len()).collect();
    let mut level = graph.clone();
    // Loops on later levels stand for inner edges, which have two ends there.
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

/// Modularity: the share of edges within communities beyond what chance would put there.
pub fn modularity(graph: &CsrGraph, community: &[usize]) -> f64 {
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

/// Moves each node to the community with the largest gain, until none moves.
fn settle(level: &CsrGraph, within: &[f64]) -> Vec<usize> {
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

fn outside(level: &CsrGraph, node: usize) -> impl Iterator<Item = (usize, f64)> {
    level.neighbours(node).filter(move |(other, _)| *other != node)
}

/// Renumbers labels from 0 in the order of first appearance.
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

/// The graph whose nodes are the communities, and the inner weight of each.
fn gather(level: &CsrGraph, within: &[f64], community: &[usize], count: usize) -> (CsrGraph, Vec<f64>) {
    let mut inside = vec![0.0; count];
    for (node, weight) in within.iter().enumerate() {
        inside[community[node]] += weight;
    }
    let number = |node: u32| u32::try_from(community[node as usize]).expect("no more than nodes");
    let mut between = Vec::new();
    for (from, to, weight) in level.edges().filter(|(from, to, _)| from != to) {
        let (start, end) = (number(from), number(to));
        if start == end {
            // Each edge is present twice.
            inside[start as usize] += weight / 2.0;
        } else {
            between.push((start, end, weight));
        }
    }
    (CsrGraph::new(count, between), inside)
}
