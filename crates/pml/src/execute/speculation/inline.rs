//! Puts the structures of called capabilities in the place of their calls, so that the reads within them are foreseen
//! like those of the program itself.
//!
//! The nodes of a capability stand between its call and what follows the call. Its parameters are replaced with the
//! arguments of the call; what those do not say becomes an expression, which nothing resolves. A capability that is
//! called in two places is there twice, each time with nodes of its own.

use std::collections::{HashMap, HashSet};

use pml_model::structure::{
    Argument, ArgumentField, Edge, EdgeLink, Node, NodeId, NodeKind, PathStep, Structure,
};

use super::order::MOST_NODES;
use crate::plan::PlannedCapability;

/// A structure with the capabilities that it calls.
#[derive(Debug)]
pub(crate) struct InlinedStructure {
    pub(crate) structure: Structure,
    pub(crate) places: InlinedPlaces,
}

/// Where the nodes of called capabilities are in an inlined structure.
#[derive(Debug, Default)]
pub(crate) struct InlinedPlaces {
    /// The capability of each scope, from 1 on, by its index in the plan. Scope 0 is the program itself, whose nodes
    /// keep their ids.
    capabilities: Vec<usize>,
    /// The scope that the call at a node opens.
    scopes: HashMap<(usize, NodeId), usize>,
    /// The nodes of the other scopes.
    nodes: HashMap<(usize, NodeId), NodeId>,
}

impl InlinedPlaces {
    /// Whether no capability was inlined.
    pub(crate) fn is_empty(&self) -> bool {
        self.capabilities.is_empty()
    }

    /// The node of the inlined structure for a node of a capability. `calls` are the nodes that lead to it: that of the
    /// program that calls a capability, that of this capability that calls the next, and so on.
    pub(crate) fn node(&self, calls: &[NodeId], node: NodeId) -> Option<NodeId> {
        let mut scope = 0;
        for call in calls {
            scope = *self.scopes.get(&(scope, *call))?;
        }
        if scope == 0 { Some(node) } else { self.nodes.get(&(scope, node)).copied() }
    }

    /// Whether a node of the inlined structure belongs to the program itself.
    pub(crate) fn is_of_program(&self, node: NodeId) -> bool {
        !self.nodes.values().any(|inlined| *inlined == node)
    }

    /// The nodes of capabilities: the index of the capability in the plan, its node, and that of the inlined structure.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (usize, NodeId, NodeId)> {
        let of_scope = |((scope, node), inlined): (&(usize, NodeId), &NodeId)| {
            Some((*self.capabilities.get(scope.checked_sub(1)?)?, *node, *inlined))
        };
        self.nodes.iter().filter_map(of_scope)
    }
}

impl InlinedStructure {
    /// Inlines the capabilities that a program calls, as far as there is room. `nested` are those of its plan.
    pub(crate) fn new(program: &Structure, nested: &[PlannedCapability]) -> InlinedStructure {
        let highest = program.nodes.iter().map(|node| node.id.number).max().unwrap_or(0);
        let mut inliner = Inliner {
            nested,
            structure: Structure::default(),
            places: InlinedPlaces::default(),
            next_number: highest + 1,
            room: MOST_NODES.saturating_sub(program.nodes.len()),
        };
        inliner.add_scope(program, &Scope::of_program());
        InlinedStructure { structure: inliner.structure, places: inliner.places }
    }
}

struct Inliner<'p> {
    nested: &'p [PlannedCapability],
    structure: Structure,
    places: InlinedPlaces,
    /// Node numbers from here on are free, for every letter.
    next_number: u32,
    /// How many more nodes the structure may have.
    room: usize,
}

/// One call of a capability, or the program.
struct Scope<'p> {
    number: usize,
    /// The call; `None` for the program.
    call: Option<InlinedCall<'p>>,
}

struct InlinedCall<'p> {
    capability: &'p PlannedCapability,
    /// The node of the call.
    node: NodeId,
    /// Its arguments, with the nodes of the inlined structure.
    arguments: Argument,
    /// The innermost loop around it.
    around: Option<NodeId>,
    /// What follows it.
    followers: Vec<NodeId>,
    /// The nodes of the capability.
    nodes: HashMap<NodeId, NodeId>,
}

impl<'p> Scope<'p> {
    fn of_program() -> Scope<'p> {
        Scope { number: 0, call: None }
    }

    /// The node of the inlined structure.
    fn node(&self, node: NodeId) -> NodeId {
        self.call.as_ref().and_then(|call| call.nodes.get(&node).copied()).unwrap_or(node)
    }

    /// An argument with the nodes of the inlined structure and the arguments of the call.
    fn argument(&self, argument: &Argument) -> Argument {
        let Some(call) = &self.call else { return argument.clone() };
        match argument {
            Argument::Literal { .. } | Argument::Expression { .. } => argument.clone(),
            Argument::Reference { node, path } => {
                Argument::Reference { node: self.node(*node), path: path.clone() }
            }
            Argument::Parameter { name, path } => call.parameter(name, path),
            Argument::Item { of, r#loop, path } => Argument::Item {
                of: Box::new(self.argument(of)),
                r#loop: self.node(*r#loop),
                path: path.clone(),
            },
            Argument::Template { parts } => Argument::Template { parts: self.arguments(parts) },
            Argument::Object { fields, spreads } => Argument::Object {
                fields: fields.iter().map(|field| self.field(field)).collect(),
                spreads: self.arguments(spreads),
            },
            Argument::Array { items } => Argument::Array { items: self.arguments(items) },
        }
    }

    fn arguments(&self, arguments: &[Argument]) -> Vec<Argument> {
        arguments.iter().map(|argument| self.argument(argument)).collect()
    }

    fn field(&self, field: &ArgumentField) -> ArgumentField {
        ArgumentField { name: field.name.clone(), value: self.argument(&field.value) }
    }

    fn kind(&self, kind: &NodeKind) -> NodeKind {
        let mut kind = kind.clone();
        if let NodeKind::Task { arguments, .. } | NodeKind::Capability { arguments, .. } = &mut kind {
            *arguments = self.argument(arguments);
        }
        kind
    }
}

impl InlinedCall<'_> {
    /// The value of a parameter, or of a part of it.
    fn parameter(&self, name: &str, path: &[PathStep]) -> Argument {
        if name.is_empty() {
            // All of `args` has the defaults too, at places that are not known.
            return if self.capability.defaults.is_empty() {
                at(&self.arguments, path)
            } else {
                unknown(name)
            };
        }
        let step = [PathStep::Key(name.to_owned())];
        let whole = match &self.arguments {
            Argument::Object { fields, spreads } if spreads.is_empty() => {
                let given = fields.iter().rev().find(|field| field.name == name);
                given.map(|field| field.value.clone()).or_else(|| self.default(name))
            }
            Argument::Object { .. } => None,
            other => Some(at(other, &step)),
        };
        whole.map_or_else(|| unknown(name), |whole| at(&whole, path))
    }

    fn default(&self, name: &str) -> Option<Argument> {
        let (_, value) = self.capability.defaults.iter().find(|(parameter, _)| parameter == name)?;
        Some(Argument::Literal { value: serde_json::from_str(value.get()).ok()? })
    }
}

/// The part of a value at a path.
fn at(argument: &Argument, path: &[PathStep]) -> Argument {
    let Some((step, rest)) = path.split_first() else { return argument.clone() };
    let longer = |before: &[PathStep]| before.iter().chain(path).cloned().collect();
    let part = match (argument, step) {
        (Argument::Reference { node, path }, _) => {
            return Argument::Reference { node: *node, path: longer(path) };
        }
        (Argument::Parameter { name, path }, _) => {
            return Argument::Parameter { name: name.clone(), path: longer(path) };
        }
        (Argument::Item { of, r#loop, path }, _) => {
            return Argument::Item { of: of.clone(), r#loop: *r#loop, path: longer(path) };
        }
        (Argument::Literal { value }, PathStep::Key(key)) => value.get(key).map(literal),
        (Argument::Literal { value }, PathStep::Index(index)) => {
            usize::try_from(*index).ok().and_then(|index| value.get(index)).map(literal)
        }
        (Argument::Object { fields, spreads }, PathStep::Key(key)) if spreads.is_empty() => {
            fields.iter().rev().find(|field| field.name == *key).map(|field| field.value.clone())
        }
        (Argument::Array { items }, PathStep::Index(index)) => {
            usize::try_from(*index).ok().and_then(|index| items.get(index)).cloned()
        }
        _ => None,
    };
    part.map_or_else(|| unknown("args"), |part| at(&part, rest))
}

fn literal(value: &serde_json::Value) -> Argument {
    Argument::Literal { value: value.clone() }
}

/// A value that cannot be known before the program computes it.
fn unknown(name: &str) -> Argument {
    Argument::Expression { source: name.to_owned(), reads: Vec::new() }
}

impl<'p> Inliner<'p> {
    /// Adds the nodes and edges of a scope. The nodes of a called capability come right after its call.
    fn add_scope(&mut self, structure: &'p Structure, scope: &Scope<'p>) {
        let control: Vec<&Edge> =
            structure.edges.iter().filter(|edge| !matches!(edge.link, EdgeLink::Provides { .. })).collect();
        let mapped = |edge: &&Edge| Edge {
            from: scope.node(edge.from),
            to: scope.node(edge.to),
            link: edge.link.clone(),
        };
        self.structure.edges.extend(control.iter().map(mapped));
        if let Some(call) = &scope.call {
            self.join_to_caller(structure, &control, call);
        }
        for node in &structure.nodes {
            let id = scope.node(node.id);
            let mut kind = scope.kind(&node.kind);
            let inner = self.inlined_call(&kind, node, &control, scope);
            if inner.is_some() {
                // The call itself does nothing: whatever happens is in the nodes that follow.
                kind = NodeKind::Join;
            }
            self.structure.nodes.push(Node { id, kind, at: node.at, branches: node.branches.clone() });
            if let Some(inner) = inner {
                let capability = inner.call.as_ref().map(|call| call.capability);
                capability.into_iter().for_each(|called| self.add_scope(&called.structure, &inner));
            }
        }
    }

    /// The scope of a node that calls a capability; `None` if it is to stay a call.
    fn inlined_call(
        &mut self,
        kind: &NodeKind,
        node: &Node,
        control: &[&Edge],
        scope: &Scope<'p>,
    ) -> Option<Scope<'p>> {
        let NodeKind::Capability { capability: name, arguments } = kind else { return None };
        let index = self.nested.iter().position(|nested| nested.name == *name)?;
        let capability = &self.nested[index];
        // A document runs its tasks as soon as they can: its structure does not tell what stands before what.
        let count = capability.structure.nodes.len();
        if !capability.tasks.is_empty() || count > self.room {
            return None;
        }
        self.room -= count;
        self.places.capabilities.push(index);
        let number = self.places.capabilities.len();
        self.places.scopes.insert((scope.number, node.id), number);
        let mut nodes = HashMap::with_capacity(count);
        for inner in &capability.structure.nodes {
            let inlined = NodeId { letter: inner.id.letter, number: self.next_number };
            self.next_number += 1;
            nodes.insert(inner.id, inlined);
            self.places.nodes.insert((number, inner.id), inlined);
        }
        let own_loop = control
            .iter()
            .find(|edge| edge.to == node.id && edge.link == EdgeLink::Contains)
            .map(|edge| scope.node(edge.from));
        let outer = scope.call.as_ref();
        let followers =
            control.iter().filter(|edge| edge.from == node.id).map(|edge| scope.node(edge.to)).collect();
        let call = InlinedCall {
            capability,
            node: scope.node(node.id),
            arguments: arguments.clone(),
            around: own_loop.or_else(|| outer.and_then(|outer| outer.around)),
            followers: [followers, outer.map(|outer| outer.followers.clone()).unwrap_or_default()].concat(),
            nodes,
        };
        Some(Scope { number, call: Some(call) })
    }

    /// Adds the edges from a call to its capability, from there to what follows the call, and from the loop around.
    fn join_to_caller(&mut self, structure: &Structure, control: &[&Edge], call: &InlinedCall<'p>) {
        let entered: HashSet<NodeId> = control.iter().map(|edge| edge.to).collect();
        let in_loop: HashSet<NodeId> =
            control.iter().filter(|edge| edge.link == EdgeLink::Contains).map(|edge| edge.to).collect();
        for node in &structure.nodes {
            let Some(&id) = call.nodes.get(&node.id) else { continue };
            if !entered.contains(&node.id) {
                self.structure.edges.push(Edge { from: call.node, to: id, link: EdgeLink::Sequence });
            }
            if let Some(around) = call.around.filter(|_| !in_loop.contains(&node.id)) {
                self.structure.edges.push(Edge { from: around, to: id, link: EdgeLink::Contains });
            }
            // It may return anywhere.
            let leave = |to: &NodeId| Edge { from: id, to: *to, link: EdgeLink::Sequence };
            self.structure.edges.extend(call.followers.iter().map(leave));
        }
    }
}
