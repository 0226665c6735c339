//! The places of the calls of a dry run: in the program itself, or in a capability that it calls.

use std::collections::{BTreeMap, BTreeSet};

use pml_analysis::InstrumentedProgram;
use pml_model::structure::{Argument, DecisionForm, EdgeBasis, EdgeLink, NodeId, NodeKind, Structure};

use crate::execute::dry_run::NodePlace;
use crate::plan::{Plan, PlannedCapability};

/// An outcome of a decision of the program, or of a capability that it calls.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BranchId {
    /// The index of the capability in the plan; `None` for the program itself.
    pub(super) capability: Option<usize>,
    pub(super) node: NodeId,
    pub(super) outcome: String,
}

/// The code that a part of a dry run ran.
#[derive(Clone, Copy)]
pub(super) struct PlacedCode<'p> {
    pub(super) structure: &'p Structure,
    /// The program; `None` for a DAG document, whose structure is not that of what runs.
    pub(super) program: Option<&'p InstrumentedProgram>,
    pub(super) source: &'p str,
    /// The name of the capability; `None` for the program itself.
    pub(super) capability: Option<&'p str>,
}

impl<'p> PlacedCode<'p> {
    /// The program or DAG of the plan.
    pub(super) fn of_plan(plan: &'p Plan) -> PlacedCode<'p> {
        PlacedCode {
            structure: &plan.structure,
            program: plan.program(),
            source: &plan.source,
            capability: None,
        }
    }

    /// A capability that the plan calls.
    pub(super) fn of_capability(called: &'p PlannedCapability) -> PlacedCode<'p> {
        PlacedCode {
            structure: &called.structure,
            program: Some(&called.program).filter(|_| called.tasks.is_empty()),
            source: &called.source,
            capability: Some(&called.name),
        }
    }

    /// The capability with this index in the plan, or the program itself.
    pub(super) fn at(plan: &'p Plan, capability: Option<usize>) -> Option<PlacedCode<'p>> {
        match capability {
            None => Some(PlacedCode::of_plan(plan)),
            Some(index) => plan.nested.get(index).map(PlacedCode::of_capability),
        }
    }

    /// The capability that a node of this code calls.
    pub(super) fn called_at(self, plan: &'p Plan, node: NodeId) -> Option<PlacedCode<'p>> {
        let NodeKind::Capability { capability, .. } = &self.structure.node(node)?.kind else { return None };
        plan.nested.iter().find(|called| called.name == *capability).map(PlacedCode::of_capability)
    }

    /// The code around the last node of a place.
    pub(super) fn around(plan: &'p Plan, path: &[NodeId]) -> Option<PlacedCode<'p>> {
        path.iter().try_fold(PlacedCode::of_plan(plan), |code, node| code.called_at(plan, *node))
    }

    /// The nodes that are given a part of the arguments of the code.
    pub(super) fn takes_arguments(self) -> BTreeSet<NodeId> {
        let takes = |arguments: &Argument| {
            let mut found = false;
            arguments.visit_leaves(&mut |leaf| found |= matches!(leaf, Argument::Parameter { .. }));
            found
        };
        let nodes = self.structure.nodes.iter();
        nodes.filter(|node| node.kind.arguments().is_some_and(takes)).map(|node| node.id).collect()
    }
}

/// The outcomes that the decisions of some code can have, and the errors that it handles.
pub(super) fn branches_of(code: PlacedCode<'_>) -> BTreeSet<(NodeId, String)> {
    let mut all = BTreeSet::new();
    for node in &code.structure.nodes {
        match &node.kind {
            NodeKind::Decision { form: DecisionForm::Switch, .. } => {
                let sites = code.program.map(|program| &program.sites[..]).unwrap_or_default();
                for site in sites.iter().filter(|site| site.node == node.id) {
                    all.extend(site.outcomes.iter().map(|outcome| (node.id, outcome.clone())));
                }
                for edge in code.structure.edges.iter().filter(|edge| edge.from == node.id) {
                    if let EdgeLink::Conditional { outcome } = &edge.link {
                        all.insert((node.id, outcome.clone()));
                    }
                }
            }
            NodeKind::Decision { .. } => {
                all.extend(["true", "false"].map(|outcome| (node.id, outcome.to_owned())));
            }
            NodeKind::Try => {
                all.insert((node.id, "error".to_owned()));
            }
            _ => {}
        }
    }
    all
}

/// Whether the result of the call at `from` goes into the arguments of the call at `to`.
pub(super) fn flows_to(plan: &Plan, from: &NodePlace, to: &NodePlace) -> bool {
    let common = from.0.iter().zip(&to.0).take_while(|(one, other)| one == other).count();
    let Some(code) = PlacedCode::around(plan, &from.0[..common]) else { return false };
    // What is returned within a capability counts as a part of its result.
    let origin = from.0.get(common).copied().unwrap_or(from.1);
    let given = reaches(code.structure, &BTreeSet::from([origin])).into_keys().collect();
    is_given(plan, code, &given, (&to.0[common..], to.1))
}

/// Whether the call of a node, within the capabilities that `path` calls, is among those that are given the value. A
/// capability hands on what it is given.
fn is_given(
    plan: &Plan,
    code: PlacedCode<'_>,
    given: &BTreeSet<NodeId>,
    (path, node): (&[NodeId], NodeId),
) -> bool {
    let Some((caller, path)) = path.split_first() else { return given.contains(&node) };
    let Some(called) = code.called_at(plan, *caller).filter(|_| given.contains(caller)) else { return false };
    let mut given = called.takes_arguments();
    given.extend(reaches(called.structure, &given).into_keys());
    is_given(plan, called, &given, (path, node))
}

/// For each node, the origins whose values reach it along the data flow.
pub(super) fn reaches(
    structure: &Structure,
    origins: &BTreeSet<NodeId>,
) -> BTreeMap<NodeId, BTreeSet<NodeId>> {
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
