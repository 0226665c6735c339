//! What the nodes call, as the catalogue knows it.

use serde_json::Value as Json;

use super::super::parts::graph::{CallDraft, DraftKind, NodeDraft};
use super::super::parts::permissions::id_of;
use super::super::target::CallTarget;
use crate::catalogue::{Capability, Catalogue, Tool};

/// The catalogue, and the tool of it that each node calls.
pub(crate) struct Callees<'s> {
    catalogue: &'s Catalogue,
    pub(crate) tools: Vec<Option<&'s Tool>>,
}

impl<'s> Callees<'s> {
    pub(crate) fn of(catalogue: &'s Catalogue, nodes: &[NodeDraft<'_>]) -> Callees<'s> {
        Callees { catalogue, tools: nodes.iter().map(|draft| tool_of(catalogue, &draft.kind)).collect() }
    }

    pub(crate) fn input_schema(&self, node: u32, call: &CallDraft<'_>) -> Option<&'s Json> {
        if let Some(tool) = self.tools[node as usize] {
            return Some(tool.input());
        }
        match &call.target {
            CallTarget::Tool { server, name } => {
                self.catalogue.capability(&[server, ":", name].concat()).map(Capability::input)
            }
            CallTarget::Capability(name) => self.catalogue.capability(name).map(Capability::input),
        }
    }

    pub(crate) fn name_of(&self, target: &CallTarget) -> String {
        match target {
            CallTarget::Tool { server, name } => match self.catalogue.tool(server, name) {
                Some(tool) => id_of(tool),
                None => [server, ":", name].concat(),
            },
            CallTarget::Capability(name) => name.to_string(),
        }
    }

    /// The capability that is called by the name of a tool that is not there.
    pub(crate) fn as_capability(&self, target: &CallTarget) -> Option<String> {
        match target {
            CallTarget::Capability(name) => Some(name.to_string()),
            CallTarget::Tool { server, name } => {
                let id = [server, ":", name].concat();
                self.catalogue.capability(&id).is_some().then_some(id)
            }
        }
    }
}

/// The tool of the catalogue that a node calls.
fn tool_of<'s>(catalogue: &'s Catalogue, kind: &DraftKind<'_>) -> Option<&'s Tool> {
    match kind {
        DraftKind::Call(CallDraft { target: CallTarget::Tool { server, name }, .. }) => {
            catalogue.tool(server, name)
        }
        _ => None,
    }
}
