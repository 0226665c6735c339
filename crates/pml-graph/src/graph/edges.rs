//! The typed graph: tools and capabilities, and what is known between them.
//!
//! Edges are kept as evidence (how often seen, from where supposed) and weighed when they are read, so
//! the same evidence in any order makes the same graph. Replacing a tool touches its own edges only.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::csr::Csr;
use super::provides::Provides;

/// How often a supposed edge must be seen to count as observed.
pub const OBSERVED_AT: u64 = 3;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeKind {
    /// A tool.
    Tool,
    /// A capability.
    Capability,
    /// A pure operation of programs, such as `code:filter`.
    Operation,
}

/// What an edge says of its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeType {
    /// The second used what the first gave.
    Dependency,
    /// The second is part of the first.
    Contains,
    /// The first can give what the second takes.
    Provides,
    /// The second came after the first.
    Sequence,
}

impl EdgeType {
    /// What an edge of this type is worth.
    pub fn weight(self) -> f64 {
        match self {
            EdgeType::Dependency => 1.0,
            EdgeType::Contains => 0.8,
            EdgeType::Provides => 0.7,
            EdgeType::Sequence => 0.5,
        }
    }
}

/// Where an edge is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// From runs.
    Observed,
    /// From schemas or structure.
    Inferred,
    /// From a template that nothing has confirmed.
    Template,
}

impl Source {
    /// What knowing it from there is worth.
    pub fn weight(self) -> f64 {
        match self {
            Source::Observed => 1.0,
            Source::Inferred => 0.7,
            Source::Template => 0.5,
        }
    }
}

/// What is known of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Evidence {
    count: u64,
    supposed: Option<Source>,
}

impl Evidence {
    fn source(self) -> Source {
        match self.supposed {
            Some(source) if self.count < OBSERVED_AT => source,
            _ => Source::Observed,
        }
    }

    fn is_none(self) -> bool {
        self.count == 0 && self.supposed.is_none()
    }
}

/// An edge as it is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge<'a> {
    /// Where it starts.
    pub from: &'a str,
    /// Where it ends.
    pub to: &'a str,
    /// What it says.
    pub kind: EdgeType,
    /// Where it is known from.
    pub source: Source,
    /// How often it was seen.
    pub count: u64,
}

impl Edge<'_> {
    /// What it is worth: by type and source.
    pub fn weight(&self) -> f64 {
        self.kind.weight() * self.source.weight()
    }
}

/// Tools and capabilities, and what is known between them.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Vec<Option<(String, NodeKind)>>,
    index: HashMap<String, u32>,
    free: Vec<u32>,
    out: Vec<BTreeMap<(u32, EdgeType), Evidence>>,
    into: Vec<BTreeSet<(u32, EdgeType)>>,
    version: u64,
}

impl Graph {
    /// A number that changes with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Puts a node in; one that is there keeps its edges.
    pub fn insert(&mut self, id: &str, kind: NodeKind) {
        let slot = self.slot(id, kind);
        if let Some(node) = &mut self.nodes[slot as usize]
            && node.1 != kind
        {
            node.1 = kind;
            self.version += 1;
        }
    }

    /// Takes a node and its edges out and says whether it was there.
    pub fn remove(&mut self, id: &str) -> bool {
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

    /// Counts `times` more sightings of an edge between two nodes.
    pub fn observe(&mut self, from: &str, to: &str, kind: EdgeType, times: u64) {
        self.change(from, to, kind, |evidence| evidence.count += times);
    }

    /// Sets how often an edge was seen, as a store that counts says.
    pub fn set_count(&mut self, from: &str, to: &str, kind: EdgeType, count: u64) {
        self.change(from, to, kind, |evidence| evidence.count = count);
    }

    /// Supposes an edge that nothing has shown yet; of two suppositions the better founded counts.
    pub fn suppose(&mut self, from: &str, to: &str, kind: EdgeType, source: Source) {
        self.change(from, to, kind, |evidence| {
            evidence.supposed = Some(evidence.supposed.map_or(source, |before| before.min(source)));
        });
    }

    /// Puts in what `tool` is supposed to feed, in place of what it was supposed to.
    pub fn set_provided<'a>(&mut self, tool: &str, targets: impl IntoIterator<Item = &'a str>) {
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
                evidence.supposed = Some(Source::Inferred);
            });
        }
    }

    /// Brings the edges of `touched` tools in line with `provides`.
    pub fn follow(&mut self, provides: &Provides, touched: &[String]) {
        for tool in touched {
            self.set_provided(tool, provides.targets(tool).map(|(target, _)| target));
        }
    }

    /// Every edge, in order of its ends' ids and its type.
    pub fn edges(&self) -> Vec<Edge<'_>> {
        let mut edges: Vec<Edge<'_>> =
            (0..).zip(&self.out).flat_map(|(from, out)| self.read(from, out)).collect();
        edges.sort_by(|a, b| (a.from, a.to, a.kind).cmp(&(b.from, b.to, b.kind)));
        edges
    }

    /// The edges that start at a node.
    pub fn outgoing(&self, id: &str) -> impl Iterator<Item = Edge<'_>> {
        let slot = self.index.get(id).copied();
        slot.into_iter().flat_map(|slot| self.read(slot, &self.out[slot as usize]))
    }

    /// The edges between two nodes in this direction, the weightiest first.
    pub fn between(&self, from: &str, to: &str) -> Vec<Edge<'_>> {
        let Some((start, end)) = self.index.get(from).zip(self.index.get(to)) else { return Vec::new() };
        let range =
            self.out[*start as usize].range((*end, EdgeType::Dependency)..=(*end, EdgeType::Sequence));
        let mut edges: Vec<Edge<'_>> =
            range.filter_map(|(key, evidence)| self.edge(*start, key, *evidence)).collect();
        edges.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
        edges
    }

    /// What a node is, where there is one of this id.
    pub fn kind(&self, id: &str) -> Option<NodeKind> {
        let slot = self.index.get(id)?;
        self.nodes[*slot as usize].as_ref().map(|node| node.1)
    }

    /// The graph as numbers, for algorithms: nodes in order of their ids.
    pub fn snapshot(&self) -> Snapshot {
        let mut nodes: Vec<(&str, NodeKind, u32)> =
            self.index.iter().filter_map(|(id, slot)| Some((id.as_str(), self.kind(id)?, *slot))).collect();
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
        let directed = Csr::new(nodes.len(), edges);
        Snapshot {
            version: self.version,
            ids: nodes.iter().map(|node| node.0.to_owned()).collect(),
            kinds: nodes.iter().map(|node| node.1).collect(),
            undirected: directed.undirected(),
            directed,
        }
    }

    fn slot(&mut self, id: &str, kind: NodeKind) -> u32 {
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

    /// Changes an edge between two nodes that are there; there are no edges between others.
    fn change(&mut self, from: &str, to: &str, kind: EdgeType, change: impl FnOnce(&mut Evidence)) {
        if let Some((from, to)) = self.index.get(from).zip(self.index.get(to)) {
            self.change_slots(*from, *to, kind, change);
        }
    }

    fn change_slots(&mut self, from: u32, to: u32, kind: EdgeType, change: impl FnOnce(&mut Evidence)) {
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
        out: &'a BTreeMap<(u32, EdgeType), Evidence>,
    ) -> impl Iterator<Item = Edge<'a>> {
        out.iter().filter_map(move |(key, evidence)| self.edge(from, key, *evidence))
    }

    fn edge(&self, from: u32, (to, kind): &(u32, EdgeType), evidence: Evidence) -> Option<Edge<'_>> {
        let id = |slot: u32| self.nodes[slot as usize].as_ref().map(|node| node.0.as_str());
        Some(Edge {
            from: id(from)?,
            to: id(*to)?,
            kind: *kind,
            source: evidence.source(),
            count: evidence.count,
        })
    }
}

/// Equal graphs have equal nodes and edges, whatever happened to them before.
impl PartialEq for Graph {
    fn eq(&self, other: &Graph) -> bool {
        let nodes = |graph: &Graph| graph.nodes.iter().flatten().cloned().collect::<BTreeSet<_>>();
        nodes(self) == nodes(other) && self.edges() == other.edges()
    }
}

/// A graph as numbers: the strongest edge between each two nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The version of the graph it was made of.
    pub version: u64,
    /// The nodes' ids, sorted; a node's number is its place here.
    pub ids: Vec<String>,
    /// What the nodes are.
    pub kinds: Vec<NodeKind>,
    /// The edges, in their direction.
    pub directed: Csr,
    /// The edges as a neighbourhood: both directions together.
    pub undirected: Csr,
}

impl Snapshot {
    /// The number of a node.
    pub fn node(&self, id: &str) -> Option<usize> {
        self.ids.binary_search_by(|other| other.as_str().cmp(id)).ok()
    }
}
