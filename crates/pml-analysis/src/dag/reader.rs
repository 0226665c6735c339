//! What is known while the tasks of a document are read.

use pml_model::structure::NodeId;

use super::complaints::Complaints;
use super::lift::LiteralReader;
use super::text::ByteSpan;
use super::values::TaskIds;
use super::{BadCode, CodeSummary};
use crate::{Catalogue, Code, Permissions, Severity};

/// What is known while the tasks are read.
pub(super) struct DocumentReader<'r, 't, 'd> {
    pub(super) catalogue: &'t Catalogue,
    pub(super) look: &'r dyn Fn(&str) -> Result<CodeSummary, BadCode>,
    pub(super) complaints: Complaints<'t, 'd>,
    pub(super) ids: TaskIds<'t>,
    pub(super) permissions: Permissions,
    /// The names of all tools, once somebody asked for one that is not there.
    pub(super) tool_names: Option<Vec<String>>,
    pub(super) literals: LiteralReader<'t, 'd>,
}

impl DocumentReader<'_, '_, '_> {
    pub(super) fn complain(
        &mut self,
        code: Code,
        at: ByteSpan,
        node: NodeId,
        message: String,
        hint: Option<String>,
    ) {
        self.complaints.add((Severity::Error, code), (at, Some(node)), message, hint);
    }

    pub(super) fn bad(&mut self, at: ByteSpan, node: NodeId, message: String, hint: &str) {
        self.complain(Code::BadTask, at, node, message, Some(hint.to_owned()));
    }
}
