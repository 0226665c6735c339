//! Resolves the calls of nodes in the catalogue.

use serde_json::Value as Json;

use super::super::parts::graph::{CallDraft, DraftKind, NodeDraft};
use super::super::parts::permissions::id_of;
use super::super::target::CallTarget;
use crate::catalogue::{AnalysisCapability, AnalysisCatalogue, AnalysisTool};

/// The catalogue, and the tool that each node calls.
pub(crate) struct Callees<'s> {
    catalogue: &'s AnalysisCatalogue,
    pub(crate) tools: Vec<Option<&'s AnalysisTool>>,
}

impl<'s> Callees<'s> {
    pub(crate) fn of(catalogue: &'s AnalysisCatalogue, nodes: &[NodeDraft<'_>]) -> Callees<'s> {
        Callees { catalogue, tools: nodes.iter().map(|draft| tool_of(catalogue, &draft.kind)).collect() }
    }

    pub(crate) fn input_schema(&self, node: u32, call: &CallDraft<'_>) -> Option<&'s Json> {
        if let Some(tool) = self.tools[node as usize] {
            return Some(tool.input_schema());
        }
        match &call.target {
            CallTarget::Tool { server, name } => {
                self.catalogue.capability(&[server, ":", name].concat()).map(AnalysisCapability::input_schema)
            }
            CallTarget::Capability(name) => {
                self.catalogue.capability(name).map(AnalysisCapability::input_schema)
            }
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

    /// Name of the capability that is called by the name of a missing tool.
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

/// The tool in the catalogue that a node calls.
fn tool_of<'s>(catalogue: &'s AnalysisCatalogue, kind: &DraftKind<'_>) -> Option<&'s AnalysisTool> {
    match kind {
        DraftKind::Call(CallDraft { target: CallTarget::Tool { server, name }, .. }) => {
            catalogue.tool(server, name)
        }
        _ => None,
    }
}
