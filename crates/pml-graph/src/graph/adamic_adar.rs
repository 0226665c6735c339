//! Adamic–Adar: how much two nodes have in common, where rare acquaintances count more.

use std::collections::BTreeMap;

use super::csr::Csr;

/// The nodes that share neighbours with `node`, and how much: each shared neighbour counts the product of
/// both edges' weights by the logarithm of how many neighbours it has. `graph` is undirected. In order of
/// nodes.
pub fn adamic_adar(graph: &Csr, node: usize) -> Vec<(usize, f64)> {
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
