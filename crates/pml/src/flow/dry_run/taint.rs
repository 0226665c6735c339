//! Where the outcome of a dry run depends on made-up values: along the data flow of the program, from a call that was
//! answered with one to a decision, to the arguments of a later call, or to the result.

use std::collections::{BTreeMap, BTreeSet};

use pml_analysis::DecisionReads;
use pml_model::structure::{EdgeBasis, EdgeLink, NodeId, NodeKind, Structure};

use crate::execute::dry_run::DryCallRecord;
use crate::plan::Plan;
use crate::report::{DryRunWarning, ExecutedPath, ValueOrigin};

/// What depends on made-up values.
#[derive(Debug, Default)]
pub(super) struct Taint {
    pub(super) warnings: Vec<DryRunWarning>,
    /// The calls whose arguments do.
    pub(super) calls: BTreeSet<u32>,
}

/// Follows made-up values through the program of `plan`, as far as it took `path` and made `calls`.
pub(super) fn follow(plan: &Plan, path: &ExecutedPath, calls: &[DryCallRecord]) -> Taint {
    let structure = &plan.structure;
    let origins = made_up_nodes(structure, calls);
    let from = reaches(structure, &origins);
    let mut taint = Taint::default();
    for call in calls {
        let Some(source) = call.node.and_then(|node| from.get(&node)) else { continue };
        // A call whose own answer is made up taints what comes after it, not its arguments.
        let Some(source) = source.iter().find(|source| Some(**source) != call.node) else { continue };
        taint.calls.insert(call.call);
        let text = format!("the arguments of `{}` depend on", call.tool);
        taint.warn(structure, *source, &text, call.node, call.line);
    }
    let reached: BTreeSet<NodeId> = path.decisions.iter().map(|decision| decision.node).collect();
    for DecisionReads { node: decision, reads } in
        plan.program().map(|program| &program.decided_by[..]).unwrap_or_default()
    {
        if !reached.contains(decision) {
            continue;
        }
        let Some(source) = reads.iter().find_map(|read| origin_of(&origins, &from, *read)) else { continue };
        let node = structure.node(*decision);
        let condition = match node.map(|node| &node.kind) {
            Some(NodeKind::Decision { condition, .. }) => condition.as_str(),
            _ => "a decision",
        };
        let text = format!("`{condition}` is decided by");
        taint.warn(structure, source, &text, Some(*decision), node.map(|node| node.at.line));
    }
    let result = plan.program().map(|program| &program.returns_from[..]).unwrap_or_default();
    let result = result.iter().find_map(|read| origin_of(&origins, &from, *read));
    // The result of a DAG is that of all its tasks.
    let result = result.or_else(|| plan.dag().and_then(|_| origins.iter().next().copied()));
    if let Some(source) = result {
        taint.warn(structure, source, "the result depends on", None, None);
    }
    taint
}

impl Taint {
    fn warn(
        &mut self,
        structure: &Structure,
        source: NodeId,
        text: &str,
        node: Option<NodeId>,
        line: Option<u32>,
    ) {
        let tool = structure.node(source).and_then(|node| match &node.kind {
            NodeKind::Task { tool, .. } => Some(tool.clone()),
            NodeKind::Capability { capability, .. } => Some(capability.clone()),
            _ => None,
        });
        let named = tool.as_deref().unwrap_or("a call");
        let message = match line {
            Some(line) => format!("line {line}: {text} the made-up result of `{named}`"),
            None => format!("{text} the made-up result of `{named}`"),
        };
        let warning = DryRunWarning { message, tool, node_id: node, line };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

fn origin_of(
    origins: &BTreeSet<NodeId>,
    from: &BTreeMap<NodeId, BTreeSet<NodeId>>,
    node: NodeId,
) -> Option<NodeId> {
    if origins.contains(&node) {
        return Some(node);
    }
    from.get(&node).and_then(|sources| sources.iter().next().copied())
}

/// The nodes whose answers are made up. What is read back from a file is, if a made-up value was written before.
fn made_up_nodes(structure: &Structure, calls: &[DryCallRecord]) -> BTreeSet<NodeId> {
    let mut origins: BTreeSet<NodeId> = BTreeSet::new();
    let mut wrote_made_up = false;
    for call in calls {
        let Some(node) = call.node else { continue };
        let returned = call.end.as_ref().is_some_and(Result::is_ok);
        if returned
            && (call.is_made_up()
                || call.unknown_state
                || (wrote_made_up && call.origin == ValueOrigin::Overlay))
        {
            origins.insert(node);
        }
        // A capability shows as one node: whatever is made up within it taints its result.
        wrote_made_up |=
            call.origin == ValueOrigin::Overlay && reaches(structure, &origins).contains_key(&node);
    }
    origins
}

/// For each node, the made-up nodes whose values reach it.
fn reaches(structure: &Structure, origins: &BTreeSet<NodeId>) -> BTreeMap<NodeId, BTreeSet<NodeId>> {
    let mut onward: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    for edge in &structure.edges {
        if let EdgeLink::Provides { basis: EdgeBasis::Data, .. } = edge.link {
            onward.entry(edge.from).or_default().push(edge.to);
        }
    }
    let mut reached: BTreeMap<NodeId, BTreeSet<NodeId>> = BTreeMap::new();
    for origin in origins {
        let mut open = vec![*origin];
        while let Some(node) = open.pop() {
            for next in onward.get(&node).into_iter().flatten() {
                if reached.entry(*next).or_default().insert(*origin) {
                    open.push(*next);
                }
            }
        }
    }
    reached
}
