//! The structure as it grows: nodes, and the edges between them.

use std::borrow::Cow;
use std::rc::Rc;

use oxc_span::Span;
use pml_model::structure::{DecisionForm, ForkForm, Letter, Link, LoopForm, NodeId};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

use super::super::target::CallTarget;
use crate::value::Value;

/// So many nodes have a place without asking for more memory.
pub(crate) const USUAL_NODES: usize = 24;

/// Where the next node can be reached from: a node and the outcome it then had.
pub(crate) type Frontier = SmallVec<[(u32, Option<Rc<str>>); 2]>;

/// A node before values are made into arguments.
pub(crate) struct NodeDraft<'a> {
    pub(crate) id: NodeId,
    pub(crate) kind: DraftKind<'a>,
    pub(crate) span: Span,
    pub(crate) context: u32,
    pub(crate) point: u32,
    /// The loops it is in, outermost first.
    pub(crate) loops: Rc<[u32]>,
}

/// What an operation works on: how it is written, what it is and where it stands.
pub(crate) type OperationInput<'a> = (Cow<'a, str>, Value<'a>, Span);

pub(crate) enum DraftKind<'a> {
    Call(CallDraft<'a>),
    /// A pure operation and what it works on, by name.
    Operation {
        name: &'static str,
        pure: bool,
        inputs: Vec<OperationInput<'a>>,
    },
    Decision {
        condition: Span,
        form: DecisionForm,
        outcomes: Vec<String>,
        suffix: &'static str,
    },
    Fork {
        form: ForkForm,
    },
    Join,
    Loop {
        over: Span,
        form: LoopForm,
    },
    Try,
}

/// A call of a tool or capability.
#[derive(Clone)]
pub(crate) struct CallDraft<'a> {
    pub(crate) target: CallTarget,
    pub(crate) arguments: Value<'a>,
    pub(crate) span: Span,
    /// The tool is handed on as a value; what calls it is not seen.
    pub(crate) as_value: bool,
}

/// Where a node is found again: its probe point, the context, and which of several tools one place may call.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct NodePlace {
    pub(crate) point: u32,
    pub(crate) context: u32,
    pub(crate) variant: u32,
}

/// The nodes and edges found so far. Nodes are known by their index.
pub(crate) struct DraftGraph<'a> {
    pub(crate) nodes: Vec<NodeDraft<'a>>,
    edges: Vec<(u32, u32, Link)>,
    /// The same edges as a set, once a node was met again; until then each edge is new.
    edge_set: Option<FxHashSet<(u32, u32, Link)>>,
    /// The last number given for each letter.
    numbers: [u32; 6],
    by_place: FxHashMap<NodePlace, u32>,
    /// Names of outcomes that were needed.
    outcome_names: Vec<Rc<str>>,
}

impl<'a> DraftGraph<'a> {
    pub(crate) fn new() -> DraftGraph<'a> {
        DraftGraph {
            nodes: Vec::with_capacity(USUAL_NODES),
            edges: Vec::with_capacity(2 * USUAL_NODES),
            edge_set: None,
            numbers: [0; 6],
            by_place: FxHashMap::with_capacity_and_hasher(USUAL_NODES, FxBuildHasher),
            outcome_names: Vec::new(),
        }
    }

    /// The node at `place`, if it was met before. From then on edges may come a second time.
    pub(crate) fn met_again(&mut self, place: NodePlace) -> Option<u32> {
        let node = self.by_place.get(&place).copied()?;
        self.edge_set.get_or_insert_with(|| self.edges.iter().cloned().collect());
        Some(node)
    }

    /// Adds a node that is inside of `loops`, outermost first.
    pub(crate) fn add(
        &mut self,
        place: NodePlace,
        span: Span,
        kind: DraftKind<'a>,
        loops: &Rc<[u32]>,
    ) -> u32 {
        let letter = match kind {
            DraftKind::Call(_) | DraftKind::Operation { .. } => Letter::N,
            DraftKind::Decision { .. } => Letter::D,
            DraftKind::Fork { .. } => Letter::F,
            DraftKind::Join => Letter::J,
            DraftKind::Loop { .. } => Letter::L,
            DraftKind::Try => Letter::T,
        };
        let number = &mut self.numbers[letter as usize];
        *number += 1;
        let id = NodeId { letter, number: *number };
        let node = self.nodes.len() as u32;
        let NodePlace { point, context, .. } = place;
        self.nodes.push(NodeDraft { id, kind, span, context, point, loops: Rc::clone(loops) });
        // A join has no probe of its own: it shares its fork's point and is not found by it.
        if letter != Letter::J {
            self.by_place.insert(place, node);
        }
        if let Some(parent) = loops.last().copied() {
            self.edge(parent, node, Link::Contains);
        }
        node
    }

    /// The join of a fork that was met before.
    pub(crate) fn join_of(&self, fork: u32, place: NodePlace) -> Option<u32> {
        let is_join = |node: &NodeDraft<'_>| {
            matches!(node.kind, DraftKind::Join) && node.point == place.point && node.context == place.context
        };
        let offset = self.nodes.get(fork as usize + 1..)?.iter().position(is_join)?;
        Some(fork + 1 + offset as u32)
    }

    pub(crate) fn node(&self, node: u32) -> &NodeDraft<'a> {
        &self.nodes[node as usize]
    }

    pub(crate) fn edges(&self) -> &[(u32, u32, Link)] {
        &self.edges
    }

    pub(crate) fn take_edges(&mut self) -> Vec<(u32, u32, Link)> {
        std::mem::take(&mut self.edges)
    }

    pub(crate) fn connect(&mut self, frontier: &mut Frontier, node: u32) {
        for (from, outcome) in frontier.drain(..) {
            let link = match outcome {
                None => Link::Sequence,
                Some(outcome) => Link::Conditional { outcome: String::from(&*outcome) },
            };
            self.edge(from, node, link);
        }
        frontier.push((node, None));
    }

    pub(crate) fn edge(&mut self, from: u32, to: u32, link: Link) {
        // A node that is met again keeps its place, so an edge from a later node would point backwards. Order is acyclic;
        // only data may go around a loop.
        let forward = from < to || matches!(link, Link::Provides { .. });
        let is_known = |set: &mut FxHashSet<_>| !set.insert((from, to, link.clone()));
        if forward && !self.edge_set.as_mut().is_some_and(is_known) {
            self.edges.push((from, to, link));
        }
    }

    /// What an arm of a decision begins from.
    pub(crate) fn arm(&mut self, decision: Option<u32>, outcome: &str, before: &Frontier) -> Frontier {
        match decision {
            Some(node) => smallvec![(node, Some(self.outcome(outcome)))],
            None => before.clone(),
        }
    }

    /// The name of an outcome. The common ones are allocated once.
    pub(crate) fn outcome(&mut self, name: &str) -> Rc<str> {
        match self.outcome_names.iter().find(|known| &***known == name) {
            Some(known) => Rc::clone(known),
            None => {
                let outcome: Rc<str> = name.into();
                if matches!(name, "true" | "false" | "error" | "default") {
                    self.outcome_names.push(Rc::clone(&outcome));
                }
                outcome
            }
        }
    }
}

/// Adds points that are not there yet.
pub(crate) fn add_points(frontier: &mut Frontier, points: Frontier) {
    if frontier.is_empty() && points.len() == 1 {
        *frontier = points;
        return;
    }
    if frontier.len() + points.len() <= 64 {
        for point in points {
            if !frontier.contains(&point) {
                frontier.push(point);
            }
        }
        return;
    }
    let mut known: FxHashSet<(u32, Option<Rc<str>>)> = frontier.iter().cloned().collect();
    frontier.extend(points.into_iter().filter(|point| known.insert(point.clone())));
}
