//! Which reads of a program may be made before it asks for them.
//!
//! An [`Outlook`] is computed once per run from the structure. It has the calls whose tools may be speculated and whose
//! arguments can be resolved, each with what has to be known first, and the calls that may change something.

use pml_model::ServerName;
use pml_model::structure::{Argument, LoopForm, Node, NodeId, NodeKind, PathStep, Structure};

use super::order::ProgramOrder;
use crate::epoch::WriteReach;

/// What speculation may do with a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolEffect {
    /// The tool reads within a closed set of things, and may be speculated.
    ReadsClosed,
    /// The tool reads and may reach a network. It is speculated only with arguments that no other tool gave.
    ReadsOpen,
    /// The tool reads, but is not speculated.
    ReadsOnly,
    /// The tool may change something: what it reaches is not read ahead past it.
    MayChange(WriteReach),
}

impl ToolEffect {
    fn may_be_speculated(&self) -> bool {
        matches!(self, ToolEffect::ReadsClosed | ToolEffect::ReadsOpen)
    }
}

/// A tool as a program calls it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CalledTool<'e> {
    pub(crate) handle: u32,
    pub(crate) server: &'e ServerName,
    pub(crate) effect: &'e ToolEffect,
}

/// The effects of the calls of a plan.
pub(crate) trait CallEffects {
    /// What speculation may do with a tool; `None` if the plan does not have it.
    fn tool(&self, tool: &str) -> Option<CalledTool<'_>>;

    /// What a capability may change; empty if everything that it can call only reads.
    fn capability_writes(&self, name: &str) -> Vec<WriteReach>;
}

/// A call that may be made before the program asks for it.
#[derive(Debug)]
pub(super) struct ForeseenRead {
    pub(super) node: usize,
    pub(super) handle: u32,
    pub(super) arguments: Argument,
    /// The lists that the loops around it iterate over, outermost first.
    pub(super) lists: Vec<(NodeId, Argument)>,
    pub(super) effect: ToolEffect,
    /// The calls that may change what it reads and stand before it.
    pub(super) barriers: Vec<Barrier>,
}

/// A call that may change something.
#[derive(Debug, Clone, Copy)]
pub(super) struct Barrier {
    pub(super) node: usize,
    /// Whether it is a single call, which is over when it ends. A capability may change something at any time until the
    /// program goes on after it.
    pub(super) single: bool,
}

/// A call that may change something, with what it may change.
struct Change {
    barrier: Barrier,
    writes: Vec<WriteReach>,
}

/// The reads of a program that may be made ahead, and the order of its nodes.
#[derive(Debug)]
pub(crate) struct Outlook {
    pub(super) order: ProgramOrder,
    /// In the order of the program.
    pub(super) reads: Vec<ForeseenRead>,
    /// The nodes whose results arguments refer to.
    pub(super) referred: Vec<NodeId>,
}

impl Outlook {
    /// The outlook of a program; `None` if there is nothing to speculate.
    pub(crate) fn new(structure: &Structure, effects: &impl CallEffects) -> Option<Outlook> {
        let candidate = |node: &&Node| match &node.kind {
            NodeKind::Task { tool, arguments, .. } => {
                effects.tool(tool).is_some_and(|called| called.effect.may_be_speculated())
                    && is_resolvable(arguments)
            }
            _ => false,
        };
        // Most programs end here: a single call, or none that can be resolved, has nothing to gain.
        let in_loop = |node: &Node| matches!(node.kind, NodeKind::Loop { .. });
        let calls = structure.nodes.iter().filter(|node| node.kind.is_call()).count();
        if (calls < 2 && !structure.nodes.iter().any(in_loop))
            || !structure.nodes.iter().any(|node| candidate(&node))
        {
            return None;
        }
        let order = ProgramOrder::new(structure)?;
        let change = |node: &Node| {
            let single = matches!(node.kind, NodeKind::Task { .. });
            let (barrier, writes) =
                (Barrier { node: order.index(node.id)?, single }, writes(&node.kind, effects));
            (!writes.is_empty()).then_some(Change { barrier, writes })
        };
        let changes: Vec<Change> = structure.nodes.iter().filter_map(change).collect();
        let reads: Vec<ForeseenRead> = structure
            .nodes
            .iter()
            .filter(candidate)
            .filter_map(|node| foreseen(structure, node, &order, effects, &changes))
            .collect();
        let mut referred = Vec::new();
        reads.iter().for_each(|read| collect_references(&read.arguments, &mut referred));
        (!reads.is_empty()).then_some(Outlook { order, reads, referred })
    }
}

/// What a node may change.
fn writes(kind: &NodeKind, effects: &impl CallEffects) -> Vec<WriteReach> {
    match kind {
        NodeKind::Task { .. } if !kind.is_call() => Vec::new(),
        NodeKind::Task { tool, .. } => match effects.tool(tool).map(|called| called.effect) {
            Some(ToolEffect::MayChange(reach)) => vec![reach.clone()],
            Some(_) => Vec::new(),
            None => vec![WriteReach::Everywhere],
        },
        NodeKind::Capability { capability, .. } => effects.capability_writes(capability),
        _ => Vec::new(),
    }
}

/// The read at a node, if it can be foreseen at all.
fn foreseen(
    structure: &Structure,
    node: &Node,
    order: &ProgramOrder,
    effects: &impl CallEffects,
    changes: &[Change],
) -> Option<ForeseenRead> {
    let NodeKind::Task { tool, arguments, .. } = &node.kind else { return None };
    let CalledTool { handle, server, effect } = effects.tool(tool)?;
    let at = order.index(node.id)?;
    let lists = iterated_lists(structure, &order.loops_of(at), arguments)?;
    if lists.iter().any(|(_, list)| !is_resolvable(list)) {
        return None;
    }
    let mut references = Vec::new();
    collect_references(arguments, &mut references);
    // What another tool returned does not leave the machine before the program itself sends it.
    if *effect == ToolEffect::ReadsOpen && !references.is_empty() {
        return None;
    }
    // The result of a call in a loop is another one in each turn.
    if references.iter().any(|node| order.index(*node).is_none_or(|node| order.is_in_loop(node))) {
        return None;
    }
    // A handler is entered only if something fails.
    if order.conditions_of(at).iter().any(|condition| condition.outcomes == ["error"]) {
        return None;
    }
    let stands_before = |change: &&Change| {
        order.stands_before(change.barrier.node, at) && change.writes.iter().any(|reach| reach.covers(server))
    };
    let barriers = changes.iter().filter(stands_before).map(|change| change.barrier).collect();
    let (arguments, effect) = (arguments.clone(), effect.clone());
    Some(ForeseenRead { node: at, handle, arguments, lists, effect, barriers })
}

/// The list that each loop iterates over, outermost first; `None` if the arguments do not name the item of each.
fn iterated_lists(
    structure: &Structure,
    loops: &[NodeId],
    arguments: &Argument,
) -> Option<Vec<(NodeId, Argument)>> {
    let mut lists: Vec<(NodeId, Argument)> = Vec::new();
    collect_items(arguments, &mut lists);
    let list_of = |id: &NodeId| {
        let iterates = |form: &LoopForm| matches!(form, LoopForm::ForOf | LoopForm::Callback);
        let kind = &structure.node(*id)?.kind;
        if !matches!(kind, NodeKind::Loop { form, .. } if iterates(form)) {
            return None;
        }
        lists.iter().find(|(around, _)| around == id).cloned()
    };
    loops.iter().map(list_of).collect()
}

fn collect_items(argument: &Argument, lists: &mut Vec<(NodeId, Argument)>) {
    argument.visit_leaves(&mut |leaf| {
        if let Argument::Item { of, r#loop, .. } = leaf {
            lists.push((*r#loop, (**of).clone()));
        }
    });
}

fn collect_references(argument: &Argument, references: &mut Vec<NodeId>) {
    argument.visit_leaves(&mut |leaf| {
        if let Argument::Reference { node, .. } = leaf
            && !references.contains(node)
        {
            references.push(*node);
        }
    });
}

/// Whether every part of an argument could be resolved once results are known.
fn is_resolvable(argument: &Argument) -> bool {
    let known = |path: &[PathStep]| !path.contains(&PathStep::Any);
    match argument {
        Argument::Literal { .. } => true,
        Argument::Reference { path, .. } | Argument::Parameter { path, .. } => known(path),
        Argument::Item { of, path, .. } => known(path) && is_resolvable(of),
        Argument::Template { parts } => parts.iter().all(is_resolvable),
        Argument::Object { fields, spreads } => {
            spreads.is_empty() && fields.iter().all(|field| is_resolvable(&field.value))
        }
        Argument::Array { items } => items.iter().all(is_resolvable),
        Argument::Expression { .. } => false,
    }
}
