//! What algorithms say about the whole graph, computed once for each version of it.

use super::csr::Csr;
use super::edges::{EdgeType, Graph, NodeKind, Snapshot};
use super::spectral::{self, Clusters};
use super::{louvain, pagerank};

/// How many groups of capabilities are thought possible.
const MOST_GROUPS: usize = 12;
/// A part that more capabilities share says nothing about which of them are alike.
const MOST_SHARING: usize = 200;
/// Where the numbers of k-means start: any number, always the same.
const SEED: u64 = 7;

/// Importance and communities of one version of a graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Insights {
    /// The graph as numbers; the lists below are in its order.
    pub snapshot: Snapshot,
    /// PageRank of each node.
    pub importance: Vec<f64>,
    /// The Louvain community of each node.
    pub communities: Vec<usize>,
}

impl Insights {
    /// Looks at the graph.
    pub fn of(graph: &Graph) -> Insights {
        let snapshot = graph.snapshot();
        Insights {
            importance: pagerank::pagerank(&snapshot.directed),
            communities: louvain::communities(&snapshot.undirected),
            snapshot,
        }
    }

    /// Looks again if the graph has changed, and says whether it had.
    pub fn refresh(&mut self, graph: &Graph) -> bool {
        let stale = self.snapshot.version != graph.version();
        if stale {
            *self = Insights::of(graph);
        }
        stale
    }

    /// The importance of a node, 0 for one that is not there.
    pub fn importance(&self, id: &str) -> f64 {
        self.snapshot.node(id).map_or(0.0, |node| self.importance[node])
    }

    /// The ids in the same community as a node, itself among them.
    pub fn community(&self, id: &str) -> Vec<&str> {
        let Some(node) = self.snapshot.node(id) else { return Vec::new() };
        let same = |(_, community): &(&String, &usize)| **community == self.communities[node];
        self.snapshot.ids.iter().zip(&self.communities).filter(same).map(|(id, _)| id.as_str()).collect()
    }
}

/// Capabilities in groups by what they are made of: two are as alike as the tools they share, a tool that
/// few have counting more. Gives the capabilities, sorted, and their groups.
pub fn capability_groups(graph: &Graph) -> (Vec<String>, Clusters) {
    let snapshot = graph.snapshot();
    let is_capability = |node: &usize| snapshot.kinds[*node] == NodeKind::Capability;
    let capabilities: Vec<usize> = (0..snapshot.ids.len()).filter(is_capability).collect();
    let alike = alike(graph, &snapshot, &capabilities);
    let ids = capabilities.iter().map(|node| snapshot.ids[*node].clone()).collect();
    (ids, spectral::clusters(&alike, MOST_GROUPS, SEED))
}

/// How alike each two capabilities are: the cosine of what they contain.
fn alike(graph: &Graph, snapshot: &Snapshot, capabilities: &[usize]) -> Csr {
    let mut containing: Vec<Vec<u32>> = vec![Vec::new(); snapshot.ids.len()];
    for (number, node) in (0_u32..).zip(capabilities) {
        for edge in graph.outgoing(&snapshot.ids[*node]).filter(|edge| edge.kind == EdgeType::Contains) {
            if let Some(part) = snapshot.node(edge.to) {
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
    Csr::new(capabilities.len(), shared.into_iter().map(cosine))
}
