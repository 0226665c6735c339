//! Adamic–Adar index: how much two nodes have in common, where rare neighbours count more.

use std::collections::BTreeMap;

use super::csr::CsrGraph;

/// Nodes that share neighbours with `node`, with their index, in order of nodes. Each shared neighbour adds the product
/// of both edge weights divided by the logarithm of its degree. `graph` must be undirected.
pub fn adamic_adar(graph: &CsrGraph, node: usize) -> Vec<(usize, f64)> {
    let mut shared: BTreeMap<usize, f64> = BTreeMap::new();
    for (between, near) in graph.neighbours(node).filter(|(between, _)| *between != node) {
        let others = || graph.neighbours(between).filter(|(other, _)| *other != between);
        #[expect(clippy::cast_precision_loss, reason = "numbers of nodes are small")]
        let known = (others().count() as f64).ln();
        for (other, far) in others().filter(|(other, _)| *other != node) {
            *shared.entry(other).or_default() += near * far / known;
        }
    }
    shared.into_iter().collect()
}
