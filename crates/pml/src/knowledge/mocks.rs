//! Real results that stand in for calls that a dry run does not make.
//!
//! Runs note their results; nothing is written before they have ended. The learning task writes what was noted, so
//! that no reply waits for it. What is noted when the process dies is lost, and the next run notes it again.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use pml_model::mocks::{MockId, MockOutcome, MockStatus, adapt_result};
use pml_model::trace::{TaskResult, Trace};
use pml_model::{Digest, Principal, ToolId};
use pml_store::{MockLookups, NewMock, Store};
use serde_json::Value;

use crate::clock::now_ms;

/// Maximum number of results that wait to be written; further ones are not recorded.
const MAX_PENDING: usize = 2_000;

/// The recorded results of all principals.
#[derive(Debug)]
pub struct MockRegistry {
    store: Store,
    pending: Mutex<PendingNotes>,
}

/// What was noted and not written yet.
#[derive(Debug, Default)]
struct PendingNotes {
    results: Vec<NewMock>,
    uses: Vec<(Principal, MockId, MockOutcome)>,
    lookups: HashMap<(Principal, String), MockLookups>,
}

/// A recorded result for a call.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedMock {
    /// Id of the mock, to report its use with.
    pub id: MockId,
    /// The result, with the arguments that it repeats replaced by those of the call.
    pub value: Value,
    /// How far it is trusted.
    pub status: MockStatus,
    /// Whether it was recorded for equal arguments; else for similar ones.
    pub is_equal: bool,
}

impl MockRegistry {
    pub(super) fn new(store: Store) -> MockRegistry {
        MockRegistry { store, pending: Mutex::default() }
    }

    /// Notes the results of a run's calls, as far as they are what the tools really returned.
    pub(crate) fn note_results(&self, trace: &Trace) {
        if trace.cached {
            return;
        }
        let mut seen = HashSet::new();
        // The latest of several results for the same arguments.
        let tasks = trace.body.task_results.iter().rev().filter(|task| is_real(task));
        let fresh = tasks.filter(|task| seen.insert((task.tool.as_str(), task.args.get())));
        let results: Vec<NewMock> = fresh.filter_map(|task| new_mock(&trace.principal, task)).collect();
        let mut pending = self.pending.lock();
        let room = MAX_PENDING.saturating_sub(pending.results.len());
        pending.results.extend(results.into_iter().take(room));
    }

    /// The recorded result for a call of `tool` under the definition with this digest: for equal arguments, else for
    /// similar ones. A database that cannot be read has none.
    pub async fn recorded(
        &self,
        principal: &Principal,
        tool: &ToolId,
        definition: &Digest,
        arguments: &Value,
    ) -> Option<RecordedMock> {
        let found = match self.store.find_mock(principal, tool, definition, arguments).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, %tool, "recorded results could not be read");
                None
            }
        };
        let mut pending = self.pending.lock();
        let lookups = pending.lookups.entry((principal.clone(), tool.to_string())).or_default();
        match &found {
            Some(found) if found.is_equal => lookups.equal += 1,
            Some(_) => lookups.similar += 1,
            None => lookups.missing += 1,
        }
        let found = found?;
        Some(RecordedMock {
            value: adapt_result(&found.mock.result, &found.mock.arguments, arguments),
            id: found.mock.id,
            status: found.mock.status,
            is_equal: found.is_equal,
        })
    }

    /// Notes what happened downstream of a recorded result.
    pub fn report_use(&self, principal: &Principal, id: &MockId, outcome: MockOutcome) {
        let mut pending = self.pending.lock();
        if pending.uses.len() < MAX_PENDING {
            pending.uses.push((principal.clone(), id.clone(), outcome));
        }
    }

    /// Writes what was noted.
    pub(crate) async fn flush(&self) {
        let PendingNotes { results, uses, lookups } = std::mem::take(&mut *self.pending.lock());
        let lookups =
            lookups.into_iter().map(|((principal, tool), counted)| (principal, tool, counted)).collect();
        let written = async {
            // Uses first: a result that is recorded now was not what they used.
            self.store.report_mock_uses(uses, now_ms()).await?;
            self.store.record_mocks(results, now_ms()).await?;
            self.store.add_mock_lookups(lookups).await
        };
        if let Err(error) = written.await {
            tracing::warn!(%error, "results of the last runs could not be recorded");
        }
    }
}

/// Whether a task is a call whose arguments and result are in the trace as they were.
fn is_real(task: &TaskResult) -> bool {
    task.call > 0 && task.success && !task.mocked && !task.altered && task.result.is_some()
}

fn new_mock(principal: &Principal, task: &TaskResult) -> Option<NewMock> {
    Some(NewMock {
        principal: principal.clone(),
        tool: ToolId::parse(&task.tool).ok()?,
        digest: task.tool_digest.clone(),
        arguments: task.args.clone(),
        result: task.result.clone()?,
    })
}
