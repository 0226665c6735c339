//! The algorithms against reference values of networkx and numpy, and against brute force on small graphs.

use super::super::adamic_adar::adamic_adar;
use super::super::louvain::{communities, modularity};
use super::super::pagerank::pagerank;
use super::super::paths::{self, LENGTH_PENALTY};
use super::super::spectral::spectral_clusters;
use super::*;

/// Zachary's karate club.
#[rustfmt::skip]
const KARATE: [(u32, u32); 78] = [
    (0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (0, 6), (0, 7), (0, 8), (0, 10), (0, 11), (0, 12), (0, 13), (0, 17),
    (0, 19), (0, 21), (0, 31), (1, 2), (1, 3), (1, 7), (1, 13), (1, 17), (1, 19), (1, 21), (1, 30), (2, 3),
    (2, 7), (2, 8), (2, 9), (2, 13), (2, 27), (2, 28), (2, 32), (3, 7), (3, 12), (3, 13), (4, 6), (4, 10),
    (5, 6), (5, 10), (5, 16), (6, 16), (8, 30), (8, 32), (8, 33), (9, 33), (13, 33), (14, 32), (14, 33),
    (15, 32), (15, 33), (18, 32), (18, 33), (19, 33), (20, 32), (20, 33), (22, 32), (22, 33), (23, 25),
    (23, 27), (23, 29), (23, 32), (23, 33), (24, 25), (24, 27), (24, 31), (25, 31), (26, 29), (26, 33),
    (27, 33), (28, 31), (28, 33), (29, 32), (29, 33), (30, 32), (30, 33), (31, 32), (31, 33), (32, 33),
];

fn karate() -> CsrGraph {
    CsrGraph::new(34, KARATE.map(|(from, to)| (from, to, 1.0))).undirected()
}

/// A row of cliques of six, each tied to the next by one edge.
fn caves(count: u32) -> CsrGraph {
    let mut edges = Vec::new();
    for cave in 0..count {
        let first = cave * 6;
        for one in first..first + 6 {
            edges.extend((one + 1..first + 6).map(|other| (one, other, 1.0)));
        }
        if cave > 0 {
            edges.push((first - 1, first, 1.0));
        }
    }
    CsrGraph::new(6 * count as usize, edges).undirected()
}

#[track_caller]
fn close(found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() < within, "{found} is not {expected}");
}

#[test]
fn pagerank_is_that_of_networkx() {
    let expected = [
        0.018425127,
        0.095627243,
        0.022149287,
        0.0231648,
        0.013988585,
        0.010133292,
        0.015836903,
        0.011981459,
        0.039909667,
        0.042133864,
        0.022485404,
        0.0258225,
        0.019916758,
        0.017008144,
        0.037888443,
        0.05799304,
        0.01717047,
        0.02000208,
        0.046383617,
        0.01826365,
        0.025233481,
        0.012145747,
        0.041985743,
        0.043273173,
        0.044873686,
        0.035366586,
        0.006314202,
        0.107374556,
        0.020558339,
        0.086590152,
    ];
    // Node 18 has no outgoing edges.
    let ranks = pagerank(&random_graph(1, 30, 90));
    for (found, expected) in ranks.iter().zip(expected) {
        close(*found, expected, 2e-9);
    }
    close(ranks.iter().sum(), 1.0, 1e-9);
    let ranks = pagerank(&karate());
    for (node, expected) in [(0, 0.096997285), (2, 0.057078509), (33, 0.100919182), (11, 0.009564745)] {
        close(ranks[node], expected, 2e-9);
    }
    assert!(pagerank(&CsrGraph::new(0, [])).is_empty());
    assert_eq!(pagerank(&CsrGraph::new(2, [])), [0.5, 0.5]);
}

#[test]
fn pagerank_is_what_the_equations_say() {
    for seed in 0..20 {
        let graph = random_graph(seed, 8, 20);
        let ranks = pagerank(&graph);
        for node in 0..8 {
            let mut expected = 0.15 / 8.0;
            for (other, rank) in ranks.iter().enumerate() {
                let sum: f64 = graph.neighbours(other).map(|(_, weight)| weight).sum();
                let share = if sum == 0.0 { 1.0 / 8.0 } else { graph.weight(other, node) / sum };
                expected += 0.85 * rank * share;
            }
            close(ranks[node], expected, 1e-9);
        }
    }
}

#[test]
fn communities_are_as_good_as_those_of_networkx() {
    // The best of a hundred random orders in networkx.
    let graph = karate();
    let found = modularity(&graph, &communities(&graph));
    assert!(found >= 0.4151, "{found}");
    let graph = random_graph(1, 30, 90).undirected();
    let found = modularity(&graph, &communities(&graph));
    assert!(found >= 0.3514, "worse than the worst of a hundred: {found}");
    let thirds: Vec<usize> = (0..30).map(|node| node % 3).collect();
    close(modularity(&graph, &thirds), -0.151179353702, 1e-9);
    assert_eq!(communities(&caves(4)), (0..24).map(|node| node / 6).collect::<Vec<_>>());
    assert!(communities(&CsrGraph::new(0, [])).is_empty());
    assert_eq!(communities(&CsrGraph::new(3, [])), [0, 1, 2]);
}

#[test]
fn communities_are_near_the_best_of_all() {
    let mut lost = Vec::new();
    for seed in 0..30 {
        let graph = random_graph(seed, 7, 12).undirected();
        let best = partitions(7).map(|all| modularity(&graph, &all)).fold(f64::MIN, f64::max);
        lost.push(best - modularity(&graph, &communities(&graph)));
    }
    assert!(lost.iter().all(|lost| (-1e-12..0.08).contains(lost)), "{lost:?}");
    assert!(lost.iter().filter(|lost| **lost < 1e-12).count() >= 20, "{lost:?}");
}

/// All partitions of `size` nodes into groups.
fn partitions(size: usize) -> impl Iterator<Item = Vec<usize>> {
    let grow = |all: Vec<Vec<usize>>| {
        let more = |one: Vec<usize>| {
            let next = one.iter().max().map_or(0, |most| most + 1);
            (0..=next).map(move |group| [one.as_slice(), &[group]].concat())
        };
        all.into_iter().flat_map(more).collect::<Vec<_>>()
    };
    (0..size).fold(vec![Vec::new()], |all, _| grow(all)).into_iter()
}

#[test]
fn adamic_adar_is_that_of_networkx() {
    let graph = karate();
    let expected = [
        (0, 33, 2.7110197222973085),
        (0, 32, 1.613740043014111),
        (1, 33, 2.252921681630931),
        (11, 4, 0.36067376022224085),
        (15, 18, 0.7553857282466059),
        (0, 2, 2.9772476294283714),
    ];
    for (one, other, expected) in expected {
        for (from, to) in [(one, other), (other, one)] {
            let found = adamic_adar(&graph, from).into_iter().find(|(node, _)| *node == to);
            close(found.expect("they share neighbours").1, expected, 1e-12);
        }
    }
    // Nodes 24 and 27 share no neighbour.
    assert!(adamic_adar(&graph, 24).iter().all(|(node, _)| *node != 27));
}

#[test]
fn shortest_paths_are_those_of_networkx() {
    let graph = random_graph(1, 30, 90);
    for (to, expected) in
        [(5, 6.178031269), (9, 2.302480501), (17, 3.570085661), (23, 3.013410717), (29, 1.303972804)]
    {
        close(paths::shortest_path(&graph, 0, to).expect("there is a way").cost, expected, 1e-8);
    }
    for (from, to, expected) in [
        (0, 9, [2.302480501, 2.371473372, 3.470085661, 3.487764104]),
        (1, 29, [1.116290732, 6.178031269, 6.760581424, 7.043007573]),
        (3, 17, [0.323143551, 3.113410717, 3.523225583, 4.740527072]),
    ] {
        let found = paths::best_paths(&graph, from, to, 4);
        assert_eq!(found.len(), 4);
        found.iter().zip(expected).for_each(|(path, expected)| close(path.cost, expected, 1e-8));
    }
    assert_eq!(paths::shortest_path(&graph, 18, 0), None, "node 18 has no way out");
    assert_eq!(paths::shortest_path(&graph, 4, 4).map(|path| path.nodes), Some(vec![4]));
    assert_eq!(paths::shortest_path(&graph, 99, 4), None);
}

#[test]
fn the_best_paths_are_the_best_of_all() {
    for seed in 0..40 {
        let graph = random_graph(seed, 7, 18);
        let mut all = Vec::new();
        every_path(&graph, &[0], 0.0, &mut all);
        all.sort_by(f64::total_cmp);
        let found = paths::best_paths(&graph, 0, 6, 5);
        assert_eq!(found.len(), all.len().min(5), "seed {seed}");
        found.iter().zip(all).for_each(|(path, cost)| close(path.cost, cost, 1e-9));
    }
}

/// Cost of every path to node 6 without repeated nodes.
fn every_path(graph: &CsrGraph, nodes: &[usize], cost: f64, all: &mut Vec<f64>) {
    let last = nodes[nodes.len() - 1];
    if last == 6 {
        all.push(cost);
        return;
    }
    for (next, weight) in graph.neighbours(last).filter(|(next, _)| !nodes.contains(next)) {
        every_path(graph, &[nodes, &[next]].concat(), cost + LENGTH_PENALTY - weight.ln(), all);
    }
}

#[test]
fn eigenvalues_are_those_of_numpy() {
    let found = spectral_clusters(&karate(), 6, 1);
    for (found, expected) in found.eigenvalues.iter().zip([
        0.0,
        0.132272329,
        0.287048985,
        0.387313233,
        0.61223054,
        0.648992947,
        0.707208202,
    ]) {
        close(*found, expected, 1e-7);
    }
    let found = spectral_clusters(&caves(4), 6, 1);
    for (found, expected) in
        found.eigenvalues.iter().zip([0.0, 0.014284799, 0.049787764, 0.086891078, 1.010682003])
    {
        close(*found, expected, 1e-7);
    }
}

#[test]
fn groups_are_found_and_counted() {
    for count in 2..6 {
        let expected: Vec<usize> = (0..6 * count).map(|node| node / 6).collect();
        for seed in 0..5 {
            let found = spectral_clusters(&caves(u32::try_from(count).expect("small")), 8, seed);
            assert_eq!((found.count, &found.of_node), (count, &expected), "{count} caves, seed {seed}");
        }
    }
}

#[test]
fn a_graph_in_pieces_falls_into_them() {
    // Three triangles and an isolated node: four eigenvalues are zero.
    let triangle =
        |first: u32| [(first, first + 1, 1.0), (first + 1, first + 2, 1.0), (first, first + 2, 1.0)];
    let edges: Vec<_> = [0, 3, 6].into_iter().flat_map(triangle).collect();
    let found = spectral_clusters(&CsrGraph::new(10, edges).undirected(), 6, 3);
    assert_eq!(found.of_node, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]);
    assert!(found.eigenvalues[..4].iter().all(|value| value.abs() < 1e-9), "{:?}", found.eigenvalues);
    assert!(spectral_clusters(&CsrGraph::new(0, []), 4, 1).of_node.is_empty());
    assert_eq!(spectral_clusters(&CsrGraph::new(1, []), 4, 1).of_node, [0]);
}
