//! Draws the nodes of the structure, and the probe sites that report them.

use pml_model::structure::{Argument, DecisionForm, Node, NodeKind};

use super::super::input::WalkInput;
use super::super::parts::graph::{DraftGraph, DraftKind};
use super::super::parts::permissions::id_of;
use super::callees::Callees;
use crate::analysis::ProbeSite;

/// Nodes of the structure, each with its arguments.
pub(crate) fn draw_nodes(
    input: &WalkInput<'_, '_>,
    graph: &DraftGraph<'_>,
    callees: &Callees<'_>,
    arguments: Vec<Option<Argument>>,
) -> Vec<Node> {
    let nodes = graph.nodes.iter().zip(&callees.tools).zip(arguments).map(|((draft, tool), arguments)| {
        let arguments = arguments.unwrap_or_else(Argument::empty_object);
        let task = |tool: String, arguments| NodeKind::Task { tool, arguments, code: None, pure: false };
        let kind = match &draft.kind {
            // A tool takes precedence over a capability of the same name.
            DraftKind::Call(call) => match tool {
                Some(tool) => task(id_of(tool), arguments),
                None => match callees.as_capability(&call.target) {
                    Some(capability) => NodeKind::Capability { capability, arguments },
                    None => task(callees.name_of(&call.target), arguments),
                },
            },
            DraftKind::Operation { name, pure, .. } => NodeKind::Task {
                tool: ["code:", *name].concat(),
                arguments,
                code: Some(input.text(draft.span).to_owned()),
                pure: *pure,
            },
            DraftKind::Decision { condition, form, suffix, .. } => {
                NodeKind::Decision { condition: [input.text(*condition), *suffix].concat(), form: *form }
            }
            DraftKind::Fork { form } => NodeKind::Fork { form: *form },
            DraftKind::Join => NodeKind::Join,
            DraftKind::Loop { over, form } => {
                NodeKind::Loop { over: input.text(*over).to_owned(), form: *form }
            }
            DraftKind::Try => NodeKind::Try,
        };
        Node { id: draft.id, kind, at: input.lines.position(draft.span), branches: Vec::new() }
    });
    nodes.collect()
}

/// The node that each probe point reports in each context.
pub(crate) fn draw_sites(graph: &DraftGraph<'_>, callees: &Callees<'_>, nodes: &[Node]) -> Vec<ProbeSite> {
    let mut sites = Vec::with_capacity(graph.nodes.len());
    for ((draft, node), tool) in graph.nodes.iter().zip(nodes).zip(&callees.tools) {
        let (tool, value) = match &draft.kind {
            DraftKind::Join => continue,
            DraftKind::Call(call) => {
                let name = tool.map_or_else(|| callees.name_of(&call.target), id_of);
                (Some(name), call.as_value)
            }
            _ => (None, false),
        };
        let outcomes = match &draft.kind {
            DraftKind::Decision { outcomes, form: DecisionForm::Switch, .. } => {
                let mut outcomes = outcomes.clone();
                outcomes.push("default".to_owned());
                outcomes
            }
            _ => Vec::new(),
        };
        sites.push(ProbeSite {
            point: draft.point,
            context: draft.context,
            node: draft.id,
            tool,
            at: node.at,
            value,
            outcomes,
        });
    }
    sites
}
