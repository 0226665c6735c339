//! Cheapest ways to derive something from what is given, where a step needs all of its inputs.
//!
//! A [`Hypergraph`] has vertices and edges; an edge has any number of sources, one or more targets and a weight. It can
//! be used when **all** its sources are reached, so an edge without sources gives its targets outright. The cost of a
//! vertex is the weight of the edge that produces it plus the costs of that edge's sources: additive, and counted per
//! use, so a source that two steps need is paid twice.
//!
//! Costs are kept while the graph changes: a changed weight, an added or a removed edge recomputes only what depends on
//! it ([`settle`]). [`Hypergraph::best`] lists the hyperpaths to a target, cheapest first ([`best`]).
//!
//! One convention of weights holds for every path in this crate: [`edge_weight`].

mod best;
mod cost;
mod settle;

use std::fmt;

pub use best::{BestHyperpaths, Hyperpath};
use cost::Cost;
use settle::{Label, LabelTable, SettleQueue};

pub use super::graph::paths::edge_cost as edge_weight;

/// Why an edge cannot be in the graph.
#[derive(Debug, Clone, PartialEq)]
pub enum HyperedgeError {
    /// The weight is negative, not a number, or above [`MAX_WEIGHT`].
    Weight(f64),
    /// The graph has no such vertex.
    UnknownVertex(usize),
    /// The edge has no target.
    NoTarget,
    /// The graph has no such edge.
    UnknownEdge(usize),
}

/// Largest weight of an edge: far above −ln of any reliability that can be observed, and small enough that sums of
/// billions of edges are exact.
pub const MAX_WEIGHT: f64 = 1e6;

impl fmt::Display for HyperedgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HyperedgeError::Weight(weight) => {
                write!(f, "the weight {weight} is not from 0 to {MAX_WEIGHT}")
            }
            HyperedgeError::UnknownVertex(vertex) => write!(f, "there is no vertex {vertex}"),
            HyperedgeError::NoTarget => f.write_str("the edge has no target"),
            HyperedgeError::UnknownEdge(edge) => write!(f, "there is no edge {edge}"),
        }
    }
}

impl std::error::Error for HyperedgeError {}

/// A directed hypergraph that knows the cheapest cost of every vertex.
#[derive(Debug, Clone, Default)]
pub struct Hypergraph {
    edges: EdgeTable,
    labels: Vec<Label>,
    queue: SettleQueue,
}

/// Edges, and which of them each vertex is a source or a target of.
#[derive(Debug, Clone, Default)]
struct EdgeTable {
    /// `None` where an edge was removed: ids of edges stay what they are.
    edges: Vec<Option<Hyperedge>>,
    /// Edges that produce each vertex, in the order of their ids.
    incoming: Vec<Vec<u32>>,
    /// Edges that need each vertex.
    outgoing: Vec<Vec<u32>>,
}

#[derive(Debug, Clone)]
struct Hyperedge {
    sources: Box<[u32]>,
    targets: Box<[u32]>,
    weight: Cost,
}

impl Hypergraph {
    /// A graph of this many vertices without edges.
    pub fn new(vertices: usize) -> Hypergraph {
        let mut graph = Hypergraph::default();
        for _ in 0..vertices {
            graph.add_vertex();
        }
        graph
    }

    /// Adds a vertex and returns its number.
    pub fn add_vertex(&mut self) -> usize {
        self.labels.push(Label::UNREACHED);
        self.edges.incoming.push(Vec::new());
        self.edges.outgoing.push(Vec::new());
        self.labels.len() - 1
    }

    /// Number of vertices.
    pub fn vertices(&self) -> usize {
        self.labels.len()
    }

    /// Adds an edge and returns its id. Vertices that are named twice count once.
    pub fn add_edge(
        &mut self,
        sources: &[usize],
        targets: &[usize],
        weight: f64,
    ) -> Result<usize, HyperedgeError> {
        let (sources, targets) = (self.vertex_set(sources)?, self.vertex_set(targets)?);
        if targets.is_empty() {
            return Err(HyperedgeError::NoTarget);
        }
        let edge = self.edges.insert(Hyperedge { sources, targets, weight: weight_cost(weight)? });
        self.refresh_targets(edge);
        Ok(edge as usize)
    }

    /// Removes an edge; its id is not used again.
    pub fn remove_edge(&mut self, edge: usize) -> Result<(), HyperedgeError> {
        let removed = self.edges.remove(edge).ok_or(HyperedgeError::UnknownEdge(edge))?;
        for target in removed.targets {
            self.refresh(target);
        }
        Ok(())
    }

    /// Changes the weight of an edge.
    pub fn set_weight(&mut self, edge: usize, weight: f64) -> Result<(), HyperedgeError> {
        let weight = weight_cost(weight)?;
        let stored = self.edges.edges.get_mut(edge).and_then(Option::as_mut);
        stored.ok_or(HyperedgeError::UnknownEdge(edge))?.weight = weight;
        self.refresh_targets(id(edge));
        Ok(())
    }

    /// Cost of the cheapest hyperpath to `vertex`; `None` when it cannot be reached.
    pub fn cost(&mut self, vertex: usize) -> Option<f64> {
        self.settle();
        self.labels.get(vertex)?.settled.in_nats()
    }

    /// The cheapest hyperpath to `target`.
    pub fn shortest(&mut self, target: usize) -> Option<Hyperpath> {
        self.best(target).next()
    }

    /// Hyperpaths to `target`, cheapest first, computed as they are asked for. No two have the same set of edges, and
    /// in none is a vertex derived from itself.
    pub fn best(&mut self, target: usize) -> BestHyperpaths<'_> {
        self.settle();
        BestHyperpaths::new(self, target)
    }

    /// Brings all costs up to date. The other methods do this by themselves, and only once for several changes.
    pub fn settle(&mut self) {
        let mut labels = BaseLabels(&mut self.labels);
        settle::settle(&self.edges, &mut labels, &mut self.queue, None);
    }

    fn refresh_targets(&mut self, edge: u32) {
        let targets = self.edges.get(edge).targets.clone();
        for target in targets {
            self.refresh(target);
        }
    }

    fn refresh(&mut self, vertex: u32) {
        settle::refresh(&self.edges, &mut BaseLabels(&mut self.labels), &mut self.queue, vertex);
    }

    fn vertex_set(&self, vertices: &[usize]) -> Result<Box<[u32]>, HyperedgeError> {
        if let Some(unknown) = vertices.iter().find(|vertex| **vertex >= self.labels.len()) {
            return Err(HyperedgeError::UnknownVertex(*unknown));
        }
        let mut set: Vec<u32> = vertices.iter().map(|vertex| id(*vertex)).collect();
        set.sort_unstable();
        set.dedup();
        Ok(set.into())
    }
}

impl EdgeTable {
    fn get(&self, edge: u32) -> &Hyperedge {
        self.edges[edge as usize].as_ref().expect("lists of edges name only edges that are there")
    }

    fn insert(&mut self, edge: Hyperedge) -> u32 {
        let id = id(self.edges.len());
        for source in &edge.sources {
            self.outgoing[*source as usize].push(id);
        }
        for target in &edge.targets {
            self.incoming[*target as usize].push(id);
        }
        self.edges.push(Some(edge));
        id
    }

    fn remove(&mut self, edge: usize) -> Option<Hyperedge> {
        let removed = self.edges.get_mut(edge)?.take()?;
        let id = id(edge);
        for source in &removed.sources {
            self.outgoing[*source as usize].retain(|other| *other != id);
        }
        for target in &removed.targets {
            self.incoming[*target as usize].retain(|other| *other != id);
        }
        Some(removed)
    }
}

/// Labels of the graph itself, where every edge may be used.
struct BaseLabels<'l>(&'l mut [Label]);

impl LabelTable for BaseLabels<'_> {
    fn label(&self, vertex: u32) -> Label {
        self.0[vertex as usize]
    }

    fn set(&mut self, vertex: u32, label: Label) {
        self.0[vertex as usize] = label;
    }

    fn allows(&self, _vertex: u32, _edge: u32) -> bool {
        true
    }
}

fn weight_cost(weight: f64) -> Result<Cost, HyperedgeError> {
    Cost::of_weight(weight).ok_or(HyperedgeError::Weight(weight))
}

fn id(index: usize) -> u32 {
    u32::try_from(index).expect("fewer vertices and edges than memory has bytes")
}
