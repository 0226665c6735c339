//! Recorded results in a dry run: found for its calls, and judged by what became of them.

use std::collections::HashMap;
use std::sync::Arc;

use pml_model::mocks::{MockId, MockOutcome, MockStatus};
use pml_model::trace::ErrorType;
use pml_model::{Digest, Principal, ToolId};
use serde_json::Value;

use super::places;
use crate::error_type;
use crate::execute::dry_run::{DryCallRecord, DryRunRecord};
use crate::knowledge::{Knowledge, RecordedMock};
use crate::plan::Plan;
use crate::report::RunFailure;

/// The recorded results of the tools of a plan.
pub(super) struct RecordedResults {
    pub(super) knowledge: Arc<Knowledge>,
    pub(super) principal: Principal,
    /// The definitions that the tools have now.
    pub(super) definitions: HashMap<ToolId, Digest>,
}

/// A recorded result that answered a call.
#[derive(Debug, Clone)]
pub(super) struct UsedMock {
    pub(super) call: u32,
    pub(super) id: MockId,
    pub(super) status: MockStatus,
}

impl RecordedResults {
    /// The recorded result for a call.
    pub(super) async fn find(&self, tool: &ToolId, arguments: &Value) -> Option<RecordedMock> {
        let definition = self.definitions.get(tool)?;
        self.knowledge.mocks.recorded(&self.principal, tool, definition, arguments).await
    }

    /// Reports what became of the recorded results that a dry run used.
    pub(super) fn report(&self, plan: &Plan, record: &DryRunRecord, used: &[UsedMock]) {
        for mock in used {
            if let Some(outcome) = outcome(plan, record, mock) {
                self.knowledge.mocks.report_use(&self.principal, &mock.id, outcome);
            }
        }
    }
}

/// What happened downstream of a recorded result; `None` if something failed that it has no part in.
fn outcome(plan: &Plan, record: &DryRunRecord, mock: &UsedMock) -> Option<MockOutcome> {
    let call = record.calls.iter().find(|call| call.call == mock.call)?;
    let is_given = |later: &DryCallRecord| match (&call.place, &later.place) {
        (Some(from), Some(to)) => places::flows_to(plan, from, to),
        _ => false,
    };
    let failed = record.calls.iter().filter(|later| later.call > call.call).find_map(|later| {
        let Some(Err(failure)) = &later.end else { return None };
        is_given(later).then(|| kind(failure))
    });
    match (failed, &record.report.error) {
        (Some(kind), _) => Some(MockOutcome::Failure(kind)),
        (None, None) => Some(MockOutcome::Success),
        (None, Some(_)) if record.calls.iter().any(|call| matches!(call.end, Some(Err(_)))) => None,
        // The program itself stumbled over a value, perhaps this one.
        (None, Some(_)) => Some(MockOutcome::Failure(ErrorType::Unknown)),
    }
}

fn kind(failure: &RunFailure) -> ErrorType {
    error_type::of(failure.code.as_str(), &failure.message, None)
}
