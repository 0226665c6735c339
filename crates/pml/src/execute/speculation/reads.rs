//! The reads made for runs, under way or ready, until the runs ask for them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pml_model::{Digest, Principal, RunId, ToolId};
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::speculative_call::SpeculativeCall;
use crate::builtin::ReadRecorder;
use crate::epoch::EpochMark;
use crate::tools::CallOutcome;

/// The pending reads of all runs of this process.
#[derive(Default)]
pub(super) struct PendingReads(Mutex<HashMap<RunId, RunReads>>);

/// The reads made for one run and not asked for yet.
struct RunReads {
    principal: Principal,
    by_call: HashMap<(ToolId, Digest), VecDeque<PendingRead>>,
}

/// A read under way or ready.
pub(crate) struct PendingRead {
    pub(super) tool: ToolId,
    pub(super) arguments: Arc<str>,
    pub(super) definition: Digest,
    /// The write epoch before the read began.
    pub(super) mark: EpochMark,
    pub(super) began: Instant,
    pub(super) outcome: oneshot::Receiver<ReadOutcome>,
    pub(super) origin: ReadOrigin,
    /// The confidence, when it was begun, that the program asks for it.
    pub(super) confidence: f64,
    /// Records the files that were read.
    pub(super) witness: ReadRecorder,
    /// Cancels the call when nobody wants its result any more.
    pub(super) _cancel: DropGuard,
}

/// For what a read was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadOrigin {
    /// For this run, before its program asked.
    Ahead,
    /// For the dry run that this run confirms. It was no bet on what the program does, so it moves no tool's record.
    DryRun,
}

/// How a read ended.
pub(super) struct ReadOutcome {
    pub(super) outcome: CallOutcome,
    pub(super) took: Duration,
}

/// A read that nobody asked for.
pub(super) struct UnusedRead {
    pub(super) principal: Principal,
    pub(super) tool: ToolId,
    pub(super) confidence: f64,
}

impl PendingRead {
    /// Drops the read, which cancels it. Returns what counts as waste: one of a dry run was no bet.
    fn into_unused(self, principal: &Principal) -> Option<UnusedRead> {
        let PendingRead { tool, origin, confidence, .. } = self;
        let is_waste = origin == ReadOrigin::Ahead;
        is_waste.then(|| UnusedRead { principal: principal.clone(), tool, confidence })
    }

    /// The call that reads it.
    pub(super) fn call(
        &self,
        principal: &Principal,
        run: &RunId,
        cancel: CancellationToken,
    ) -> SpeculativeCall {
        SpeculativeCall {
            principal: principal.clone(),
            run: run.clone(),
            tool: self.tool.clone(),
            definition: self.definition.clone(),
            arguments: Arc::clone(&self.arguments),
            cancel,
            witness: None,
        }
    }
}

impl PendingReads {
    /// How many reads made ahead of a run were not asked for yet.
    pub(super) fn count(&self, run: &RunId) -> usize {
        self.0.lock().get(run).map_or(0, |reads| reads.by_call.values().map(made_ahead).sum())
    }

    /// The reads made ahead of a run and not asked for yet, by tool and arguments.
    pub(super) fn unused(&self, run: &RunId) -> HashMap<(ToolId, Digest), usize> {
        let runs = self.0.lock();
        let calls = runs.get(run).into_iter().flat_map(|reads| &reads.by_call);
        let counted = calls.map(|(call, waiting)| (call.clone(), made_ahead(waiting)));
        counted.filter(|(_, reads)| *reads > 0).collect()
    }

    /// Whether the dry run that a run confirms made this call.
    pub(super) fn has_earlier(&self, run: &RunId, tool: &ToolId, arguments: &Digest) -> bool {
        let runs = self.0.lock();
        let Some(reads) = runs.get(run) else { return false };
        let waiting = reads.by_call.get(&(tool.clone(), arguments.clone()));
        waiting.is_some_and(|waiting| made_ahead(waiting) < waiting.len())
    }

    /// Adds a read made for a run.
    pub(super) fn add(&self, run: &RunId, principal: &Principal, read: PendingRead) {
        let call = (read.tool.clone(), Digest::of(read.arguments.as_bytes()));
        let mut runs = self.0.lock();
        let reads = runs
            .entry(run.clone())
            .or_insert_with(|| RunReads { principal: principal.clone(), by_call: HashMap::new() });
        reads.by_call.entry(call).or_default().push_back(read);
    }

    /// Takes the read made for a call, if there is one.
    pub(super) fn take(&self, run: &RunId, tool: &ToolId, arguments: &Digest) -> Option<PendingRead> {
        let mut runs = self.0.lock();
        let reads = runs.get_mut(run)?;
        let key = (tool.clone(), arguments.clone());
        let waiting = reads.by_call.get_mut(&key)?;
        let read = waiting.pop_front();
        if waiting.is_empty() {
            reads.by_call.remove(&key);
        }
        read
    }

    /// Drops all reads of a run, which cancels those under way.
    pub(super) fn drop_run(&self, run: &RunId) -> Vec<UnusedRead> {
        let dropped = self.0.lock().remove(run);
        dropped.into_iter().flat_map(RunReads::into_unused).collect()
    }

    /// Drops the reads that are older than `ttl`.
    pub(super) fn drop_expired(&self, ttl: Duration) -> Vec<UnusedRead> {
        let mut expired = Vec::new();
        self.0.lock().retain(|_, reads| {
            for waiting in reads.by_call.values_mut() {
                while waiting.front().is_some_and(|read| read.began.elapsed() > ttl) {
                    expired.extend(waiting.pop_front().and_then(|old| old.into_unused(&reads.principal)));
                }
            }
            reads.by_call.retain(|_, waiting| !waiting.is_empty());
            !reads.by_call.is_empty()
        });
        expired
    }

    /// Drops all reads of all runs.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.0.lock());
        drop(all);
    }
}

impl RunReads {
    fn into_unused(self) -> impl Iterator<Item = UnusedRead> {
        let RunReads { principal, by_call } = self;
        by_call.into_values().flatten().filter_map(move |read| read.into_unused(&principal))
    }
}

fn made_ahead(waiting: &VecDeque<PendingRead>) -> usize {
    waiting.iter().filter(|read| read.origin == ReadOrigin::Ahead).count()
}
