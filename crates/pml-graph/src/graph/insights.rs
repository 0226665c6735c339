//! Results of the algorithms over the whole graph, computed once per version.

use super::csr::CsrGraph;
use super::edges::{EdgeType, GraphNodeKind, GraphSnapshot, TypedGraph};
use super::spectral::{self, SpectralClusters};
use super::{louvain, pagerank};

/// Maximum number of capability groups.
const MOST_GROUPS: usize = 12;
/// A part shared by more capabilities than this does not tell which of them are alike.
const MOST_SHARING: usize = 200;
/// Seed of k-means; any fixed number.
const SEED: u64 = 7;

/// Importance and communities of one version of a graph.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphInsights {
    /// Numeric form of the graph; the lists below are in its order.
    pub snapshot: GraphSnapshot,
    /// PageRank of each node.
    pub importance: Vec<f64>,
    /// The Louvain community of each node.
    pub communities: Vec<usize>,
}

impl GraphInsights {
    /// Computes the insights of the graph.
    pub fn compute(graph: &TypedGraph) -> GraphInsights {
        let snapshot = graph.snapshot();
        GraphInsights {
            importance: pagerank::pagerank(&snapshot.directed),
            communities: louvain::communities(&snapshot.undirected),
            snapshot,
        }
    }

    /// Recomputes if the graph has changed. Returns whether it had.
    pub fn refresh(&mut self, graph: &TypedGraph) -> bool {
        let stale = self.snapshot.version != graph.version();
        if stale {
            *self = GraphInsights::compute(graph);
        }
        stale
    }

    /// Importance of a node; 0 for an unknown one.
    pub fn importance(&self, id: &str) -> f64 {
        self.snapshot.node_index(id).map_or(0.0, |node| self.importance[node])
    }

    /// Ids in the same community as a node, including itself.
    pub fn community(&self, id: &str) -> Vec<&str> {
        let Some(node) = self.snapshot.node_index(id) else { return Vec::new() };
        let same = |(_, community): &(&String, &usize)| **community == self.communities[node];
        self.snapshot.ids.iter().zip(&self.communities).filter(same).map(|(id, _)| id.as_str()).collect()
    }
}

/// Groups of capabilities by their parts: two are similar by the tools they share, rare tools counting more. Returns
/// the ids of the capabilities, sorted, and their groups.
pub fn capability_groups(graph: &TypedGraph) -> (Vec<String>, SpectralClusters) {
    let snapshot = graph.snapshot();
    let is_capability = |node: &usize| snapshot.kinds[*node] == GraphNodeKind::Capability;
    let capabilities: Vec<usize> = (0..snapshot.ids.len()).filter(is_capability).collect();
    let alike = alike(graph, &snapshot, &capabilities);
    let ids = capabilities.iter().map(|node| snapshot.ids[*node].clone()).collect();
    (ids, spectral::spectral_clusters(&alike, MOST_GROUPS, SEED))
}

/// Similarity of each pair of capabilities: the cosine of their parts.
fn alike(graph: &TypedGraph, snapshot: &GraphSnapshot, capabilities: &[usize]) -> CsrGraph {
    let mut containing: Vec<Vec<u32>> = vec![Vec::new(); snapshot.ids.len()];
    for (number, node) in (0_u32..).zip(capabilities) {
        for edge in graph.edges_from(&snapshot.ids[*node]).filter(|edge| edge.kind == EdgeType::Contains) {
            if let Some(part) = snapshot.node_index(edge.to) {
                containing[part].push(number);
            }
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "numbers of nodes are small")]
    let rarity = |members: &[u32]| (1.0 + capabilities.len() as f64 / members.len() as f64).ln();
    let mut size = vec![0.0; capabilities.len()];
    let mut shared = Vec::new();
    for members in containing.iter().filter(|members| (1..=MOST_SHARING).contains(&members.len())) {
        let worth = rarity(members).powi(2);
        members.iter().for_each(|member| size[*member as usize] += worth);
        for (at, one) in members.iter().enumerate() {
            for other in &members[at + 1..] {
                shared.push((*one, *other, worth));
                shared.push((*other, *one, worth));
            }
        }
    }
    let cosine = |(one, other, worth): (u32, u32, f64)| {
        (one, other, worth / f64::sqrt(size[one as usize] * size[other as usize]))
    };
    CsrGraph::new(capabilities.len(), shared.into_iter().map(cosine))
}
