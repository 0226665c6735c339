//! A weighted graph as three arrays: what the algorithms work on.

/// Edges of nodes `0..len`, those of each node next to each other and in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Csr {
    offsets: Vec<usize>,
    targets: Vec<u32>,
    weights: Vec<f64>,
}

impl Csr {
    /// The graph of `nodes` nodes with these edges; weights of edges given twice are added. Edges to
    /// nodes that do not exist, and those without a positive weight, are left out.
    pub fn new(nodes: usize, edges: impl IntoIterator<Item = (u32, u32, f64)>) -> Csr {
        let exists = |node: u32| (node as usize) < nodes;
        let mut sorted: Vec<(u32, u32, f64)> =
            edges.into_iter().filter(|edge| exists(edge.0) && exists(edge.1) && edge.2 > 0.0).collect();
        sorted.sort_by_key(|edge| (edge.0, edge.1));
        let mut csr = Csr { offsets: vec![0; nodes + 1], targets: Vec::new(), weights: Vec::new() };
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

    /// Both directions of every edge together: weights of opposite edges are added, loops count once.
    pub fn undirected(&self) -> Csr {
        let both = self.edges().flat_map(|(from, to, weight)| {
            let back = (from != to).then_some((to, from, weight));
            [Some((from, to, weight)), back].into_iter().flatten()
        });
        Csr::new(self.len(), both.collect::<Vec<_>>())
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the edges of a node end, and their weights.
    pub fn neighbours(&self, node: usize) -> impl Iterator<Item = (usize, f64)> + Clone {
        let range = self.offsets[node]..self.offsets[node + 1];
        let targets = self.targets[range.clone()].iter().map(|target| *target as usize);
        targets.zip(self.weights[range].iter().copied())
    }

    /// How many edges start at a node.
    pub fn degree(&self, node: usize) -> usize {
        self.offsets[node + 1] - self.offsets[node]
    }

    /// The weight of an edge, 0 where there is none.
    pub fn weight(&self, from: usize, to: usize) -> f64 {
        let range = self.offsets[from]..self.offsets[from + 1];
        let found = self.targets[range.clone()].binary_search_by(|target| (*target as usize).cmp(&to));
        found.map_or(0.0, |at| self.weights[range.start + at])
    }

    /// Every edge, by its start, then by its end.
    pub fn edges(&self) -> impl Iterator<Item = (u32, u32, f64)> {
        (0_u32..).zip(0..self.len()).flat_map(|(from, node)| {
            self.neighbours(node).map(move |(to, weight)| {
                (from, u32::try_from(to).expect("targets are stored as such"), weight)
            })
        })
    }
}
