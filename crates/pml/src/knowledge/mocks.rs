//! Real results that stand in for calls that a dry run does not make.
//!
//! Runs note their results; nothing is written before they have ended. Calls by name and the reads of dry runs note
//! theirs too. The learning task removes secrets and writes what was noted, so that no reply waits for it. What is noted
//! when the process dies is lost, and the next run notes it again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use pml_model::mocks::{MockId, MockOutcome, MockStatus, adapt_result};
use pml_model::trace::{TaskResult, Trace};
use pml_model::{Digest, Principal, ToolId};
use pml_store::{MockLookups, NewMock, Store};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::clock::now_ms;
use crate::runtime::run_blocking;
use crate::sanitise::Sanitiser;

/// Maximum number of results that wait to be written; further ones are not recorded.
const MAX_PENDING: usize = 2_000;
/// 10 KiB: larger arguments and results are not recorded, as those of runs.
const MAX_BYTES: usize = 10 << 10;

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
    /// Results outside runs, in which there may be secrets.
    unchecked: Vec<NewMock>,
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

    /// Notes what a tool really returned outside a run.
    pub(crate) fn note_result(
        &self,
        principal: &Principal,
        (tool, definition): (&ToolId, &Digest),
        arguments: &RawValue,
        result: &RawValue,
    ) {
        if arguments.get().len() > MAX_BYTES || result.get().len() > MAX_BYTES {
            return;
        }
        let mut pending = self.pending.lock();
        if pending.unchecked.len() < MAX_PENDING {
            pending.unchecked.push(NewMock {
                principal: principal.clone(),
                tool: tool.clone(),
                digest: definition.clone(),
                arguments: arguments.to_owned(),
                result: result.to_owned(),
            });
        }
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

    /// Writes what was noted, apart from results with secrets.
    pub(super) async fn flush(&self, sanitiser: &Arc<Sanitiser>) {
        let PendingNotes { mut results, unchecked, uses, lookups } =
            std::mem::take(&mut *self.pending.lock());
        if !unchecked.is_empty() {
            let sanitiser = Arc::clone(sanitiser);
            results.extend(run_blocking(move || without_secrets(unchecked, &sanitiser)).await);
        }
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

/// The latest of the results for the same arguments, without those that would have to be altered.
fn without_secrets(results: Vec<NewMock>, sanitiser: &Sanitiser) -> Vec<NewMock> {
    let mut seen = HashSet::new();
    let call = |mock: &NewMock| (mock.principal.clone(), mock.tool.clone(), mock.arguments.get().to_owned());
    let mut latest: Vec<NewMock> = results.into_iter().rev().filter(|mock| seen.insert(call(mock))).collect();
    latest.retain(|mock| {
        let sanitiser = sanitiser.with_secrets_in(&mock.arguments);
        !sanitiser.clean_json(&mock.arguments).changed && !sanitiser.clean_json(&mock.result).changed
    });
    latest
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
