//! A weighted graph in compressed sparse row form: the input of the algorithms.

/// Edges of nodes `0..len`, grouped by start node and sorted by end node.
#[derive(Debug, Clone, PartialEq)]
pub struct CsrGraph {
    offsets: Vec<usize>,
    targets: Vec<u32>,
    weights: Vec<f64>,
}

impl CsrGraph {
    /// The graph of `nodes` nodes with these edges. Weights of duplicate edges are added. Edges to nodes that do not
    /// exist, and edges without a positive weight, are dropped.
    pub fn new(nodes: usize, edges: impl IntoIterator<Item = (u32, u32, f64)>) -> CsrGraph {
        let exists = |node: u32| (node as usize) < nodes;
        let mut sorted: Vec<(u32, u32, f64)> =
            edges.into_iter().filter(|edge| exists(edge.0) && exists(edge.1) && edge.2 > 0.0).collect();
        sorted.sort_by_key(|edge| (edge.0, edge.1));
        let mut csr = CsrGraph { offsets: vec![0; nodes + 1], targets: Vec::new(), weights: Vec::new() };
        let mut last = None;
        for (from, to, weight) in sorted {
            if last == Some((from, to)) {
                *csr.weights.last_mut().expect("the edge before is there") += weight;
                continue;
            }
            last = Some((from, to));
            csr.offsets[from as usize + 1] += 1;
            csr.targets.push(to);
            csr.weights.push(weight);
        }
        for node in 0..nodes {
            csr.offsets[node + 1] += csr.offsets[node];
        }
        csr
    }

    /// Undirected form: weights of opposite edges are added, loops count once.
    pub fn undirected(&self) -> CsrGraph {
        let both = self.edges().flat_map(|(from, to, weight)| {
            let back = (from != to).then_some((to, from, weight));
            [Some((from, to, weight)), back].into_iter().flatten()
        });
        CsrGraph::new(self.len(), both.collect::<Vec<_>>())
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// End nodes of a node's edges, with weights.
    pub fn neighbours(&self, node: usize) -> impl Iterator<Item = (usize, f64)> + Clone {
        let range = self.offsets[node]..self.offsets[node + 1];
        let targets = self.targets[range.clone()].iter().map(|target| *target as usize);
        targets.zip(self.weights[range].iter().copied())
    }

    /// Number of edges that start at a node.
    pub fn degree(&self, node: usize) -> usize {
        self.offsets[node + 1] - self.offsets[node]
    }

    /// Weight of an edge; 0 when there is none.
    pub fn weight(&self, from: usize, to: usize) -> f64 {
        let range = self.offsets[from]..self.offsets[from + 1];
        let found = self.targets[range.clone()].binary_search_by(|target| (*target as usize).cmp(&to));
        found.map_or(0.0, |at| self.weights[range.start + at])
    }

    /// Every edge, ordered by start node, then by end node.
    pub fn edges(&self) -> impl Iterator<Item = (u32, u32, f64)> {
        (0_u32..).zip(0..self.len()).flat_map(|(from, node)| {
            self.neighbours(node).map(move |(to, weight)| {
                (from, u32::try_from(to).expect("targets are stored as such"), weight)
            })
        })
    }
}
