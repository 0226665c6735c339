//! The structure under construction: nodes and edges.

use std::borrow::Cow;
use std::rc::Rc;

use oxc_span::Span;
use pml_model::structure::{DecisionForm, EdgeLink, ForkForm, LoopForm, NodeId, NodeLetter};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

use super::super::target::CallTarget;
use crate::value::AbstractValue;

/// Initial capacity for nodes.
pub(crate) const USUAL_NODES: usize = 24;

/// Predecessors of the next node: each a node with the outcome that leads on.
pub(crate) type Frontier = SmallVec<[(u32, Option<Rc<str>>); 2]>;

/// A node before its values are lowered to arguments.
pub(crate) struct NodeDraft<'a> {
    pub(crate) id: NodeId,
    pub(crate) kind: DraftKind<'a>,
    pub(crate) span: Span,
    pub(crate) context: u32,
    pub(crate) point: u32,
    /// Enclosing loops, outermost first.
    pub(crate) loops: Rc<[u32]>,
}

/// Input of an operation: its source text, its value and its span.
pub(crate) type OperationInput<'a> = (Cow<'a, str>, AbstractValue<'a>, Span);

pub(crate) enum DraftKind<'a> {
    Call(CallDraft<'a>),
    /// A pure operation with its named inputs.
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
    pub(crate) arguments: AbstractValue<'a>,
    pub(crate) span: Span,
    /// The tool is passed on as a value; its calls are not visible.
    pub(crate) as_value: bool,
}

/// Key of a node: its probe point, the context, and the index among several tools that one place may call.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct NodePlace {
    pub(crate) point: u32,
    pub(crate) context: u32,
    pub(crate) variant: u32,
}

/// Nodes and edges found so far. Nodes are referred to by index.
pub(crate) struct DraftGraph<'a> {
    pub(crate) nodes: Vec<NodeDraft<'a>>,
    edges: Vec<(u32, u32, EdgeLink)>,
    /// The edges as a set, once a node is revisited; until then each edge is new.
    edge_set: Option<FxHashSet<(u32, u32, EdgeLink)>>,
    /// The last number assigned for each node letter.
    numbers: [u32; 6],
    by_place: FxHashMap<NodePlace, u32>,
    /// Interned outcome names.
    outcome_names: Vec<Rc<str>>,
    /// The value that was last tested, until its decision is made.
    pub(crate) tested: Option<AbstractValue<'a>>,
    /// The tested value of each decision, and what each loop goes through or tests; a node that is revisited has several.
    pub(crate) decided: Vec<(u32, AbstractValue<'a>)>,
    /// The values that the program itself returns.
    pub(crate) returned: Vec<AbstractValue<'a>>,
    /// The nodes before each place where the program ends.
    pub(crate) ends: Vec<Vec<u32>>,
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
            tested: None,
            decided: Vec::new(),
            returned: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// The node at `place`, if it exists. From then on edges may repeat.
    pub(crate) fn revisit_node(&mut self, place: NodePlace) -> Option<u32> {
        let node = self.by_place.get(&place).copied()?;
        self.edge_set.get_or_insert_with(|| self.edges.iter().cloned().collect());
        Some(node)
    }

    /// Adds a node within `loops`, outermost first.
    pub(crate) fn add_node(
        &mut self,
        place: NodePlace,
        span: Span,
        kind: DraftKind<'a>,
        loops: &Rc<[u32]>,
    ) -> u32 {
        let letter = match kind {
            DraftKind::Call(_) | DraftKind::Operation { .. } => NodeLetter::N,
            DraftKind::Decision { .. } => NodeLetter::D,
            DraftKind::Fork { .. } => NodeLetter::F,
            DraftKind::Join => NodeLetter::J,
            DraftKind::Loop { .. } => NodeLetter::L,
            DraftKind::Try => NodeLetter::T,
        };
        let number = &mut self.numbers[letter as usize];
        *number += 1;
        let id = NodeId { letter, number: *number };
        let node = self.nodes.len() as u32;
        let NodePlace { point, context, .. } = place;
        self.nodes.push(NodeDraft { id, kind, span, context, point, loops: Rc::clone(loops) });
        // A join has no probe of its own: it shares its fork's point and must not be found by it.
        if letter != NodeLetter::J {
            self.by_place.insert(place, node);
        }
        if let Some(parent) = loops.last().copied() {
            self.add_edge(parent, node, EdgeLink::Contains);
        }
        node
    }

    /// The join of a revisited fork.
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

    pub(crate) fn edges(&self) -> &[(u32, u32, EdgeLink)] {
        &self.edges
    }

    pub(crate) fn take_edges(&mut self) -> Vec<(u32, u32, EdgeLink)> {
        std::mem::take(&mut self.edges)
    }

    pub(crate) fn connect(&mut self, frontier: &mut Frontier, node: u32) {
        for (from, outcome) in frontier.drain(..) {
            let link = match outcome {
                None => EdgeLink::Sequence,
                Some(outcome) => EdgeLink::Conditional { outcome: String::from(&*outcome) },
            };
            self.add_edge(from, node, link);
        }
        frontier.push((node, None));
    }

    pub(crate) fn add_edge(&mut self, from: u32, to: u32, link: EdgeLink) {
        // A revisited node keeps its index, so an edge from a later node would point backwards. Order is acyclic; only
        // data may follow a loop's back edge.
        let forward = from < to || matches!(link, EdgeLink::Provides { .. });
        let is_known = |set: &mut FxHashSet<_>| !set.insert((from, to, link.clone()));
        if forward && !self.edge_set.as_mut().is_some_and(is_known) {
            self.edges.push((from, to, link));
        }
    }

    /// The frontier at the start of an arm of a decision.
    pub(crate) fn arm(&mut self, decision: Option<u32>, outcome: &str, before: &Frontier) -> Frontier {
        match decision {
            Some(node) => smallvec![(node, Some(self.outcome(outcome)))],
            None => before.clone(),
        }
    }

    /// The interned name of an outcome.
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

/// Adds predecessors that are not present yet.
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
