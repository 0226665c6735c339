//! The typed graph of tools and capabilities.
//!
//! Edges are stored as evidence (observation count, source of the inference) and weighted when they are read, so the
//! same evidence in any order gives the same graph. Replacing a tool touches only its own edges.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::csr::CsrGraph;
use super::provides::ProvidesIndex;

/// Number of observations from which an inferred edge counts as observed.
pub const OBSERVED_AT: u64 = 3;

/// Kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GraphNodeKind {
    /// A tool.
    Tool,
    /// A capability.
    Capability,
    /// A pure operation of programs, such as `code:filter`.
    Operation,
}

/// Type of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeType {
    /// The second used a result of the first.
    Dependency,
    /// The second is part of the first.
    Contains,
    /// The first can provide an input of the second.
    Provides,
    /// The second ran after the first.
    Sequence,
}

impl EdgeType {
    /// Weight of an edge of this type.
    pub fn weight(self) -> f64 {
        match self {
            EdgeType::Dependency => 1.0,
            EdgeType::Contains => 0.8,
            EdgeType::Provides => 0.7,
            EdgeType::Sequence => 0.5,
        }
    }
}

/// Source of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeSource {
    /// Observed in runs.
    Observed,
    /// Inferred from schemas or structure.
    Inferred,
    /// From a template that no run has confirmed.
    Template,
}

impl EdgeSource {
    /// Weight factor of this source.
    pub fn weight(self) -> f64 {
        match self {
            EdgeSource::Observed => 1.0,
            EdgeSource::Inferred => 0.7,
            EdgeSource::Template => 0.5,
        }
    }
}

/// Evidence for an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct EdgeEvidence {
    count: u64,
    supposed: Option<EdgeSource>,
}

impl EdgeEvidence {
    fn source(self) -> EdgeSource {
        match self.supposed {
            Some(source) if self.count < OBSERVED_AT => source,
            _ => EdgeSource::Observed,
        }
    }

    fn is_none(self) -> bool {
        self.count == 0 && self.supposed.is_none()
    }
}

/// An edge, as read from the graph.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GraphEdge<'a> {
    /// Id of the node where it starts.
    pub from: &'a str,
    /// Id of the node where it ends.
    pub to: &'a str,
    /// Type of the edge.
    pub kind: EdgeType,
    /// Source of the edge.
    pub source: EdgeSource,
    /// Number of observations.
    pub count: u64,
}

impl GraphEdge<'_> {
    /// Weight of the edge, by type and source.
    pub fn weight(&self) -> f64 {
        self.kind.weight() * self.source.weight()
    }
}

/// Graph of tools, capabilities and operations.
#[derive(Debug, Clone, Default)]
pub struct TypedGraph {
    nodes: Vec<Option<(String, GraphNodeKind)>>,
    index: HashMap<String, u32>,
    free: Vec<u32>,
    out: Vec<BTreeMap<(u32, EdgeType), EdgeEvidence>>,
    into: Vec<BTreeSet<(u32, EdgeType)>>,
    version: u64,
}

impl TypedGraph {
    /// Version of the graph; changes with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether the graph has no nodes.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Inserts a node; an existing one keeps its edges.
    pub fn insert_node(&mut self, id: &str, kind: GraphNodeKind) {
        let slot = self.slot(id, kind);
        if let Some(node) = &mut self.nodes[slot as usize]
            && node.1 != kind
        {
            node.1 = kind;
            self.version += 1;
        }
    }

    /// Removes a node and its edges. Returns whether it existed.
    pub fn remove_node(&mut self, id: &str) -> bool {
        let Some(slot) = self.index.remove(id) else { return false };
        for (to, kind) in std::mem::take(&mut self.out[slot as usize]).into_keys() {
            self.into[to as usize].remove(&(slot, kind));
        }
        for (from, kind) in std::mem::take(&mut self.into[slot as usize]) {
            self.out[from as usize].remove(&(slot, kind));
        }
        self.nodes[slot as usize] = None;
        self.free.push(slot);
        self.version += 1;
        true
    }

    /// Adds `times` observations to an edge between two nodes.
    pub fn observe_edge(&mut self, from: &str, to: &str, kind: EdgeType, times: u64) {
        self.change(from, to, kind, |evidence| evidence.count += times);
    }

    /// Sets the number of observations of an edge, as counted by the store.
    pub fn set_edge_count(&mut self, from: &str, to: &str, kind: EdgeType, count: u64) {
        self.change(from, to, kind, |evidence| evidence.count = count);
    }

    /// Adds an inferred edge without observations. Of two sources the one with the higher weight wins.
    pub fn suppose_edge(&mut self, from: &str, to: &str, kind: EdgeType, source: EdgeSource) {
        self.change(from, to, kind, |evidence| {
            evidence.supposed = Some(evidence.supposed.map_or(source, |before| before.min(source)));
        });
    }

    /// Replaces the inferred `provides` edges of `tool`.
    pub fn set_provides_edges<'a>(&mut self, tool: &str, targets: impl IntoIterator<Item = &'a str>) {
        let Some(slot) = self.index.get(tool).copied() else { return };
        let before = self.out[slot as usize].keys().filter(|key| key.1 == EdgeType::Provides);
        let before: Vec<u32> = before.map(|key| key.0).collect();
        let now: BTreeSet<u32> =
            targets.into_iter().filter_map(|target| self.index.get(target)).copied().collect();
        for to in before.into_iter().filter(|to| !now.contains(to)) {
            self.change_slots(slot, to, EdgeType::Provides, |evidence| evidence.supposed = None);
        }
        for to in now {
            self.change_slots(slot, to, EdgeType::Provides, |evidence| {
                evidence.supposed = Some(EdgeSource::Inferred);
            });
        }
    }

    /// Updates the edges of the `touched` tools from `provides`.
    pub fn update_provides_edges(&mut self, provides: &ProvidesIndex, touched: &[String]) {
        for tool in touched {
            self.set_provides_edges(tool, provides.fed_tools(tool).map(|(target, _)| target));
        }
    }

    /// Every edge, ordered by the ids of its nodes and its type.
    pub fn edges(&self) -> Vec<GraphEdge<'_>> {
        let mut edges: Vec<GraphEdge<'_>> =
            (0..).zip(&self.out).flat_map(|(from, out)| self.read(from, out)).collect();
        edges.sort_by(|a, b| (a.from, a.to, a.kind).cmp(&(b.from, b.to, b.kind)));
        edges
    }

    /// The edges that start at a node.
    pub fn edges_from(&self, id: &str) -> impl Iterator<Item = GraphEdge<'_>> {
        let slot = self.index.get(id).copied();
        slot.into_iter().flat_map(|slot| self.read(slot, &self.out[slot as usize]))
    }

    /// The edges between two nodes in this direction, heaviest first.
    pub fn edges_between(&self, from: &str, to: &str) -> Vec<GraphEdge<'_>> {
        let Some((start, end)) = self.index.get(from).zip(self.index.get(to)) else { return Vec::new() };
        let range =
            self.out[*start as usize].range((*end, EdgeType::Dependency)..=(*end, EdgeType::Sequence));
        let mut edges: Vec<GraphEdge<'_>> =
            range.filter_map(|(key, evidence)| self.edge(*start, key, *evidence)).collect();
        edges.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
        edges
    }

    /// Kind of a node; `None` when the id is unknown.
    pub fn node_kind(&self, id: &str) -> Option<GraphNodeKind> {
        let slot = self.index.get(id)?;
        self.nodes[*slot as usize].as_ref().map(|node| node.1)
    }

    /// Numeric form of the graph for algorithms; nodes in order of their ids.
    pub fn snapshot(&self) -> GraphSnapshot {
        let mut nodes: Vec<(&str, GraphNodeKind, u32)> = self
            .index
            .iter()
            .filter_map(|(id, slot)| Some((id.as_str(), self.node_kind(id)?, *slot)))
            .collect();
        nodes.sort_unstable();
        let mut place = vec![0_u32; self.nodes.len()];
        for (at, (_, _, slot)) in (0_u32..).zip(&nodes) {
            place[*slot as usize] = at;
        }
        let mut edges: Vec<(u32, u32, f64)> = Vec::new();
        for (from, out) in self.out.iter().enumerate() {
            for ((to, kind), evidence) in out {
                let weight = kind.weight() * evidence.source().weight();
                edges.push((place[from], place[*to as usize], weight));
            }
        }
        edges.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| b.2.total_cmp(&a.2)));
        edges.dedup_by_key(|edge| (edge.0, edge.1));
        let directed = CsrGraph::new(nodes.len(), edges);
        GraphSnapshot {
            version: self.version,
            ids: nodes.iter().map(|node| node.0.to_owned()).collect(),
            kinds: nodes.iter().map(|node| node.1).collect(),
            undirected: directed.undirected(),
            directed,
        }
    }

    fn slot(&mut self, id: &str, kind: GraphNodeKind) -> u32 {
        if let Some(slot) = self.index.get(id) {
            return *slot;
        }
        self.version += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(None);
            self.out.push(BTreeMap::new());
            self.into.push(BTreeSet::new());
            u32::try_from(self.nodes.len() - 1).expect("fewer nodes than memory has bytes")
        });
        self.nodes[slot as usize] = Some((id.to_owned(), kind));
        self.index.insert(id.to_owned(), slot);
        slot
    }

    /// Changes an edge between two existing nodes; ignored when a node is missing.
    fn change(&mut self, from: &str, to: &str, kind: EdgeType, change: impl FnOnce(&mut EdgeEvidence)) {
        if let Some((from, to)) = self.index.get(from).zip(self.index.get(to)) {
            self.change_slots(*from, *to, kind, change);
        }
    }

    fn change_slots(&mut self, from: u32, to: u32, kind: EdgeType, change: impl FnOnce(&mut EdgeEvidence)) {
        if from == to {
            return;
        }
        let before = self.out[from as usize].get(&(to, kind)).copied().unwrap_or_default();
        let mut after = before;
        change(&mut after);
        if before == after {
            return;
        }
        self.version += 1;
        if after.is_none() {
            self.out[from as usize].remove(&(to, kind));
            self.into[to as usize].remove(&(from, kind));
        } else {
            self.out[from as usize].insert((to, kind), after);
            self.into[to as usize].insert((from, kind));
        }
    }

    fn read<'a>(
        &'a self,
        from: u32,
        out: &'a BTreeMap<(u32, EdgeType), EdgeEvidence>,
    ) -> impl Iterator<Item = GraphEdge<'a>> {
        out.iter().filter_map(move |(key, evidence)| self.edge(from, key, *evidence))
    }

    fn edge(&self, from: u32, (to, kind): &(u32, EdgeType), evidence: EdgeEvidence) -> Option<GraphEdge<'_>> {
        let id = |slot: u32| self.nodes[slot as usize].as_ref().map(|node| node.0.as_str());
        Some(GraphEdge {
            from: id(from)?,
            to: id(*to)?,
            kind: *kind,
            source: evidence.source(),
            count: evidence.count,
        })
    }
}

/// Graphs are equal when nodes and edges are, whatever their history and version.
impl PartialEq for TypedGraph {
    fn eq(&self, other: &TypedGraph) -> bool {
        let nodes = |graph: &TypedGraph| graph.nodes.iter().flatten().cloned().collect::<BTreeSet<_>>();
        nodes(self) == nodes(other) && self.edges() == other.edges()
    }
}

/// Numeric form of a graph: the strongest edge between each pair of nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphSnapshot {
    /// Version of the graph it was made from.
    pub version: u64,
    /// Ids of the nodes, sorted; a node's index is its position here.
    pub ids: Vec<String>,
    /// Kinds of the nodes, in the same order.
    pub kinds: Vec<GraphNodeKind>,
    /// Directed edges.
    pub directed: CsrGraph,
    /// Undirected edges: both directions combined.
    pub undirected: CsrGraph,
}

impl GraphSnapshot {
    /// Index of a node.
    pub fn node_index(&self, id: &str) -> Option<usize> {
        self.ids.binary_search_by(|other| other.as_str().cmp(id)).ok()
    }
}
