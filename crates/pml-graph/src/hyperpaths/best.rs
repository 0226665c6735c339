//! Hyperpaths to one target, cheapest first.
//!
//! A hyperpath names one edge for each of its vertices. The ones that differ from a given hyperpath fall into disjoint
//! classes: those that agree on its first *i* vertices, counted from the target, and use another edge for the next one
//! (Lawler's partition, as Nielsen, Andersen and Pretolani apply it to hypergraphs). The cheapest of each class waits in
//! a heap; the cheapest of all is next, and its class is divided again. Each search starts from the costs of the whole
//! graph and recomputes only what its restriction changes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::cost::Cost;
use super::settle::{self, Label, LabelTable, SettleQueue};
use super::{Hypergraph, id};

/// A way to derive a target.
#[derive(Debug, Clone, PartialEq)]
pub struct Hyperpath {
    /// Each vertex with the edge that produces it. What a step needs stands before it; the target is last.
    pub steps: Vec<(usize, usize)>,
    /// Weights of the edges, counted per use.
    pub cost: f64,
}

impl Hyperpath {
    /// Ids of the edges, in an order in which they can be used.
    pub fn edges(&self) -> Vec<usize> {
        let mut seen = HashSet::new();
        self.steps.iter().map(|(_, edge)| *edge).filter(|edge| seen.insert(*edge)).collect()
    }
}

/// Iterator over the hyperpaths to a target ([`Hypergraph::best`]).
pub struct BestHyperpaths<'g> {
    graph: &'g Hypergraph,
    labels: RestrictedLabels<'g>,
    target: u32,
    open: BinaryHeap<Reverse<Candidate>>,
    /// The hyperpath returned last. Its class is divided when the next one is asked for.
    last: Option<Candidate>,
    returned: HashSet<Vec<u32>>,
}

/// The cheapest hyperpath of a class.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    cost: Cost,
    /// Vertices with their edges, from the target on: each vertex after the first that needs it.
    chosen: Vec<(u32, u32)>,
    /// Vertices in the order of their costs, in which each comes after what it needs.
    order: Vec<u32>,
    /// The class fixes the edges of this many vertices of `chosen`.
    fixed: usize,
    /// Edges that the class excludes for the next vertex.
    banned: Vec<u32>,
}

impl<'g> BestHyperpaths<'g> {
    /// The costs of `graph` have to be settled.
    pub(super) fn new(graph: &'g Hypergraph, target: usize) -> BestHyperpaths<'g> {
        let mut paths = BestHyperpaths {
            graph,
            labels: RestrictedLabels::new(&graph.labels),
            target: id(target),
            open: BinaryHeap::new(),
            last: None,
            returned: HashSet::new(),
        };
        if target < graph.vertices() {
            paths.open.extend(paths.read(0, Vec::new()).map(Reverse));
        }
        paths
    }

    /// Queues the cheapest hyperpath of each class into which the class of `candidate` falls without it.
    fn divide(&mut self, candidate: &Candidate) {
        for fixed in candidate.fixed..candidate.chosen.len() {
            let (vertex, edge) = candidate.chosen[fixed];
            let earlier = (fixed == candidate.fixed).then_some(&candidate.banned).into_iter().flatten();
            let banned: Vec<u32> = earlier.copied().chain([edge]).collect();
            self.labels.restrict(&candidate.chosen[..fixed], vertex, &banned);
            let mut queue = SettleQueue::new();
            for (vertex, _) in &candidate.chosen[..=fixed] {
                settle::refresh(&self.graph.edges, &mut self.labels, &mut queue, *vertex);
            }
            settle::settle(&self.graph.edges, &mut self.labels, &mut queue, Some(self.target));
            self.open.extend(self.read(fixed, banned).map(Reverse));
            self.labels.reset();
        }
    }

    /// The cheapest hyperpath by the labels as they are.
    fn read(&self, fixed: usize, banned: Vec<u32>) -> Option<Candidate> {
        let cost = self.labels.label(self.target).settled;
        if cost == Cost::UNREACHED {
            return None;
        }
        let mut chosen = vec![(self.target, self.labels.label(self.target).edge)];
        let mut seen = HashSet::from([self.target]);
        let mut at = 0;
        while let Some((_, edge)) = chosen.get(at) {
            let sources = self.graph.edges.get(*edge).sources.iter().copied();
            let new: Vec<u32> = sources.filter(|source| seen.insert(*source)).collect();
            chosen.extend(new.into_iter().map(|source| (source, self.labels.label(source).edge)));
            at += 1;
        }
        let mut order: Vec<u32> = chosen.iter().map(|(vertex, _)| *vertex).collect();
        order.sort_by_key(|vertex| (self.labels.label(*vertex).settled, *vertex));
        Some(Candidate { cost, chosen, order, fixed, banned })
    }
}

impl Iterator for BestHyperpaths<'_> {
    type Item = Hyperpath;

    fn next(&mut self) -> Option<Hyperpath> {
        loop {
            if let Some(last) = self.last.take() {
                self.divide(&last);
            }
            let Reverse(candidate) = self.open.pop()?;
            let path = candidate.hyperpath();
            let is_new = self.returned.insert(candidate.edge_set());
            self.last = Some(candidate);
            // Where edges have several targets, the same edges can serve in two ways; the cheaper was returned.
            if is_new {
                return Some(path);
            }
        }
    }
}

impl Candidate {
    fn edge_set(&self) -> Vec<u32> {
        let mut edges: Vec<u32> = self.chosen.iter().map(|(_, edge)| *edge).collect();
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    fn hyperpath(&self) -> Hyperpath {
        let edges: HashMap<u32, u32> = self.chosen.iter().copied().collect();
        let steps = self.order.iter().map(|vertex| (*vertex as usize, edges[vertex] as usize));
        Hyperpath { steps: steps.collect(), cost: self.cost.in_nats().unwrap_or(f64::INFINITY) }
    }
}

/// Labels of a search that may use only some edges, on top of those of the whole graph.
struct RestrictedLabels<'g> {
    base: &'g [Label],
    labels: Vec<Label>,
    /// Vertices whose label may differ from the base.
    touched: Vec<u32>,
    only: HashMap<u32, u32>,
    banned: HashSet<(u32, u32)>,
}

impl<'g> RestrictedLabels<'g> {
    fn new(base: &'g [Label]) -> RestrictedLabels<'g> {
        RestrictedLabels {
            base,
            labels: base.to_vec(),
            touched: Vec::new(),
            only: HashMap::new(),
            banned: HashSet::new(),
        }
    }

    fn restrict(&mut self, only: &[(u32, u32)], vertex: u32, banned: &[u32]) {
        self.only = only.iter().copied().collect();
        self.banned = banned.iter().map(|edge| (vertex, *edge)).collect();
    }

    fn reset(&mut self) {
        for vertex in self.touched.drain(..) {
            self.labels[vertex as usize] = self.base[vertex as usize];
        }
    }
}

impl LabelTable for RestrictedLabels<'_> {
    fn label(&self, vertex: u32) -> Label {
        self.labels[vertex as usize]
    }

    fn set(&mut self, vertex: u32, label: Label) {
        self.touched.push(vertex);
        self.labels[vertex as usize] = label;
    }

    fn allows(&self, vertex: u32, edge: u32) -> bool {
        self.only.get(&vertex).is_none_or(|only| *only == edge) && !self.banned.contains(&(vertex, edge))
    }
}
