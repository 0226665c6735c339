//! State of parsing the tasks of a document.

use pml_model::structure::NodeId;

use super::complaints::DagComplaints;
use super::lift::LiteralReader;
use super::text::ByteSpan;
use super::values::TaskIds;
use super::{BadCode, CodeSummary};
use crate::{AnalysisCatalogue, ComplaintCode, Permissions, Severity};

/// State of parsing the tasks.
pub(super) struct DocumentReader<'r, 't, 'd> {
    pub(super) catalogue: &'t AnalysisCatalogue,
    pub(super) look: &'r dyn Fn(&str) -> Result<CodeSummary, BadCode>,
    pub(super) complaints: DagComplaints<'t, 'd>,
    pub(super) ids: TaskIds<'t>,
    pub(super) permissions: Permissions,
    /// Names of all tools; computed for the first unknown one.
    pub(super) tool_names: Option<Vec<String>>,
    pub(super) literals: LiteralReader<'t, 'd>,
}

impl DocumentReader<'_, '_, '_> {
    pub(super) fn complain(
        &mut self,
        code: ComplaintCode,
        at: ByteSpan,
        node: NodeId,
        message: String,
        hint: Option<String>,
    ) {
        self.complaints.add((Severity::Error, code), (at, Some(node)), message, hint);
    }

    pub(super) fn bad(&mut self, at: ByteSpan, node: NodeId, message: String, hint: &str) {
        self.complain(ComplaintCode::BadTask, at, node, message, Some(hint.to_owned()));
    }
}
