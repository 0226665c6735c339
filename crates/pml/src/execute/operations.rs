//! Pure operations of programs, as workers tell of them.

use std::time::Duration;

use pml_model::structure::NodeId;
use pml_sandbox::Preview;
use serde_json::value::RawValue;

use super::report::{Operated, preview};
use crate::trace::Operation;

/// An operation that gave something.
#[derive(Debug)]
pub(super) struct OperationSeen<'s> {
    pub(super) point: u32,
    pub(super) context: u32,
    took: Duration,
    gave: &'s RawValue,
    whole: bool,
}

/// Where an operation stands.
pub(super) struct OperationPlace<'p> {
    /// The node of the run's own structure.
    pub(super) node_id: Option<NodeId>,
    pub(super) tool: &'p str,
    /// The name of the capability it is a part of, where it is.
    pub(super) capability: Option<String>,
}

impl<'s> OperationSeen<'s> {
    /// As a worker tells of it; nothing where the preview is no JSON, which its host has made sure of.
    pub(super) fn new(
        point: u32,
        context: u32,
        took: Duration,
        gave: &'s Preview,
    ) -> Option<OperationSeen<'s>> {
        let Preview { json, whole } = gave;
        let gave: &RawValue = serde_json::from_str(json).ok()?;
        Some(OperationSeen { point, context, took, gave, whole: *whole })
    }

    /// For the trace of the program it is a part of.
    pub(super) fn at<'o>(&'o self, node: NodeId, tool: &'o str) -> Operation<'o> {
        Operation { node, tool, gave: self.gave, whole: self.whole, took: self.took }
    }

    /// For people who look at the run; `after` so many calls, at `at`.
    pub(super) fn told(&self, place: OperationPlace<'_>, after: u32, at: i64) -> Operated {
        let OperationPlace { node_id, tool, capability } = place;
        Operated {
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
