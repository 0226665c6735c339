//! Recorded results in a dry run: found for its calls, and judged by what became of them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use pml_model::mocks::{MockId, MockOutcome, MockStatus};
use pml_model::structure::{NodeId, Structure};
use pml_model::trace::ErrorType;
use pml_model::{Digest, Principal, ToolId};
use serde_json::Value;

use super::taint;
use crate::error_type;
use crate::execute::dry_run::DryRunRecord;
use crate::knowledge::{Knowledge, RecordedMock};
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
    pub(super) fn report(&self, structure: &Structure, record: &DryRunRecord, used: &[UsedMock]) {
        for mock in used {
            if let Some(outcome) = outcome(structure, record, mock) {
                self.knowledge.mocks.report_use(&self.principal, &mock.id, outcome);
            }
        }
    }
}

/// What happened downstream of a recorded result; `None` if something failed that it has no part in.
fn outcome(structure: &Structure, record: &DryRunRecord, mock: &UsedMock) -> Option<MockOutcome> {
    let call = record.calls.iter().find(|call| call.call == mock.call)?;
    // The calls of a capability have nodes of its own structure.
    let node = call.node.filter(|_| call.capability.is_none());
    let downstream: BTreeSet<NodeId> = node.into_iter().flat_map(|node| reached(structure, node)).collect();
    let failed = record.calls.iter().filter(|call| call.capability.is_none()).find_map(|call| {
        let Some(Err(failure)) = &call.end else { return None };
        call.node.filter(|node| downstream.contains(node)).map(|_| kind(failure))
    });
    match (failed, &record.report.error) {
        (Some(kind), _) => Some(MockOutcome::Failure(kind)),
        (None, None) => Some(MockOutcome::Success),
        (None, Some(_)) if record.calls.iter().any(|call| matches!(call.end, Some(Err(_)))) => None,
        // The program itself stumbled over a value, perhaps this one.
        (None, Some(_)) => Some(MockOutcome::Failure(ErrorType::Unknown)),
    }
}

/// The nodes that a value of `node` reaches.
fn reached(structure: &Structure, node: NodeId) -> Vec<NodeId> {
    taint::reaches(structure, &BTreeSet::from([node])).into_keys().collect()
}

fn kind(failure: &RunFailure) -> ErrorType {
    error_type::of(failure.code.as_str(), &failure.message, None)
}
