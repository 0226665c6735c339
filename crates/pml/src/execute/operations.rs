//! Pure operations of programs, as workers report them.

use std::time::Duration;

use pml_model::structure::NodeId;
use pml_sandbox::ValuePreview;
use serde_json::value::RawValue;

use crate::report::{OperationReport, preview};
use crate::trace::TracedOperation;

/// An operation that returned a result.
#[derive(Debug)]
pub(super) struct ReportedOperation<'s> {
    pub(super) point: u32,
    pub(super) context: u32,
    took: Duration,
    gave: &'s RawValue,
    whole: bool,
}

/// The place of an operation.
pub(super) struct OperationPlace<'p> {
    /// The node of the run's own structure.
    pub(super) node_id: Option<NodeId>,
    pub(super) tool: &'p str,
    /// The name of the capability that the operation is part of, if any.
    pub(super) capability: Option<String>,
}

impl<'s> ReportedOperation<'s> {
    /// Parses a worker's report; `None` if the preview is not JSON, which the host prevents.
    pub(super) fn new(
        point: u32,
        context: u32,
        took: Duration,
        gave: &'s ValuePreview,
    ) -> Option<ReportedOperation<'s>> {
        let ValuePreview { json, whole } = gave;
        let gave: &RawValue = serde_json::from_str(json).ok()?;
        Some(ReportedOperation { point, context, took, gave, whole: *whole })
    }

    /// The entry for the trace of its program.
    pub(super) fn to_traced<'o>(&'o self, node: NodeId, tool: &'o str) -> TracedOperation<'o> {
        TracedOperation { node, tool, gave: self.gave, whole: self.whole, took: self.took }
    }

    /// The entry for the report of the run, `after` so many calls, at the time `at`.
    pub(super) fn to_report(&self, place: OperationPlace<'_>, after: u32, at: i64) -> OperationReport {
        let OperationPlace { node_id, tool, capability } = place;
        OperationReport {
            node_id,
            tool: tool.to_owned(),
            capability,
            result_preview: preview(self.gave.get()),
            at,
            after,
            execution_time_us: Some(u64::try_from(self.took.as_micros()).unwrap_or(u64::MAX)),
        }
    }
}
