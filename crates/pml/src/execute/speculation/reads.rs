//! The reads made for runs, under way or ready, until the runs ask for them.
//!
//! The results that wait are bounded in bytes, by run and in all; the oldest go first.

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

/// 32 MiB: the results that wait for one run; two of the largest that a server may send.
const RUN_BYTES: usize = 32 << 20;
/// 128 MiB: the results that wait for all runs.
const ALL_BYTES: usize = 128 << 20;
/// 1 h: how long it is known which reads of a run were dropped because they were too old.
const EXPIRED_FOR: Duration = Duration::from_secs(60 * 60);

/// The pending reads of all runs of this process.
pub(super) struct PendingReads {
    state: Mutex<ReadsState>,
    /// The limits in bytes, of one run and of all.
    limits: (usize, usize),
}

#[derive(Default)]
struct ReadsState {
    runs: HashMap<RunId, RunReads>,
    last_number: u64,
}

/// A call, by its tool and the digest of its arguments.
type CallKey = (ToolId, Digest);

/// The reads made for one run and not asked for yet.
struct RunReads {
    principal: Principal,
    by_call: HashMap<CallKey, VecDeque<PendingRead>>,
    /// The reads that were dropped because they were too old, and when.
    expired: Vec<(CallKey, Instant)>,
}

impl Default for PendingReads {
    fn default() -> PendingReads {
        PendingReads { state: Mutex::default(), limits: (RUN_BYTES, ALL_BYTES) }
    }
}

/// A read under way or ready.
pub(crate) struct PendingRead {
    /// Identifies it among the pending reads; set when it is added to them.
    pub(super) number: u64,
    pub(super) tool: ToolId,
    pub(super) arguments: Arc<str>,
    pub(super) definition: Digest,
    pub(super) began: Instant,
    /// The size of the result, once it is there.
    pub(super) bytes: usize,
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
    /// The write epoch before the read began.
    pub(super) mark: EpochMark,
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
        self.state.lock().runs.get(run).map_or(0, |reads| reads.by_call.values().map(made_ahead).sum())
    }

    /// Whether half of what may wait for a run is there: more would drive out what it asks for first.
    pub(super) fn is_half_full(&self, run: &RunId) -> bool {
        self.state.lock().runs.get(run).is_some_and(|reads| reads.bytes() > self.limits.0 / 2)
    }

    /// The reads made ahead of a run and not asked for yet, by tool and arguments.
    pub(super) fn unused(&self, run: &RunId) -> HashMap<CallKey, usize> {
        let state = self.state.lock();
        let calls = state.runs.get(run).into_iter().flat_map(|reads| &reads.by_call);
        let counted = calls.map(|(call, waiting)| (call.clone(), made_ahead(waiting)));
        counted.filter(|(_, reads)| *reads > 0).collect()
    }

    /// Whether the dry run that a run confirms made this call.
    pub(super) fn has_earlier(&self, run: &RunId, tool: &ToolId, arguments: &Digest) -> bool {
        let state = self.state.lock();
        let Some(reads) = state.runs.get(run) else { return false };
        let waiting = reads.by_call.get(&(tool.clone(), arguments.clone()));
        waiting.is_some_and(|waiting| made_ahead(waiting) < waiting.len())
    }

    /// Adds a read made for a run. Returns its number.
    pub(super) fn add(&self, run: &RunId, principal: &Principal, mut read: PendingRead) -> u64 {
        let call = (read.tool.clone(), Digest::of(read.arguments.as_bytes()));
        let mut state = self.state.lock();
        state.last_number += 1;
        let number = state.last_number;
        read.number = number;
        let reads = state.runs.entry(run.clone()).or_insert_with(|| RunReads::of(principal));
        reads.by_call.entry(call).or_default().push_back(read);
        number
    }

    /// Records the size of the result of a read, if it still waits. Returns the reads that were dropped to make room for it.
    pub(super) fn note_result(&self, run: &RunId, number: u64, bytes: usize) -> Vec<UnusedRead> {
        let mut dropped = Vec::new();
        let state = &mut *self.state.lock();
        let Some(read) = state.runs.get_mut(run).and_then(|reads| reads.find(number)) else { return dropped };
        read.bytes = bytes;
        let (of_run, of_all) = self.limits;
        if let Some(reads) = state.runs.get_mut(run) {
            while reads.bytes() > of_run {
                dropped.extend(reads.drop_oldest());
            }
        }
        while state.runs.values().map(RunReads::bytes).sum::<usize>() > of_all {
            let with_result = state.runs.values_mut().filter(|reads| reads.oldest().is_some());
            let Some(reads) = with_result.min_by_key(|reads| reads.oldest().map(|(began, _)| began)) else {
                break;
            };
            dropped.extend(reads.drop_oldest());
        }
        dropped
    }

    /// Takes the read made for a call, if there is one.
    pub(super) fn take(&self, run: &RunId, tool: &ToolId, arguments: &Digest) -> Option<PendingRead> {
        let mut state = self.state.lock();
        state.runs.get_mut(run)?.take(&(tool.clone(), arguments.clone()), |_| true)
    }

    /// Takes a read that was made ahead for a call, if there is one.
    pub(super) fn take_ahead(&self, run: &RunId, tool: &ToolId, arguments: &Digest) -> Option<PendingRead> {
        let is_ahead = |read: &PendingRead| read.origin == ReadOrigin::Ahead;
        let mut state = self.state.lock();
        state.runs.get_mut(run)?.take(&(tool.clone(), arguments.clone()), is_ahead)
    }

    /// Takes the note that the read made for a call was dropped because it was too old.
    pub(super) fn take_expired(&self, run: &RunId, tool: &ToolId, arguments: &Digest) -> bool {
        let mut state = self.state.lock();
        let Some(reads) = state.runs.get_mut(run) else { return false };
        let place = reads.expired.iter().position(|((of, with), _)| of == tool && with == arguments);
        place.map(|place| reads.expired.swap_remove(place)).is_some()
    }

    /// Drops all reads of a run, which cancels those under way.
    pub(super) fn drop_run(&self, run: &RunId) -> Vec<UnusedRead> {
        let dropped = self.state.lock().runs.remove(run);
        dropped.into_iter().flat_map(RunReads::into_unused).collect()
    }

    /// Drops the reads that are older than `ttl`.
    pub(super) fn drop_expired(&self, ttl: Duration) -> Vec<UnusedRead> {
        let mut dropped = Vec::new();
        self.state.lock().runs.retain(|_, reads| {
            let RunReads { principal, by_call, expired } = reads;
            expired.retain(|(_, at)| at.elapsed() < EXPIRED_FOR);
            for (call, waiting) in by_call.iter_mut() {
                while let Some(old) = waiting.pop_front_if(|read| read.began.elapsed() > ttl) {
                    expired.push((call.clone(), Instant::now()));
                    dropped.extend(old.into_unused(principal));
                }
            }
            by_call.retain(|_, waiting| !waiting.is_empty());
            !by_call.is_empty() || !expired.is_empty()
        });
        dropped
    }

    /// Drops all reads of all runs.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut self.state.lock().runs);
        drop(all);
    }
}

impl RunReads {
    fn of(principal: &Principal) -> RunReads {
        RunReads { principal: principal.clone(), by_call: HashMap::new(), expired: Vec::new() }
    }

    fn all(&self) -> impl Iterator<Item = &PendingRead> {
        self.by_call.values().flatten()
    }

    fn bytes(&self) -> usize {
        self.all().map(|read| read.bytes).sum()
    }

    fn find(&mut self, number: u64) -> Option<&mut PendingRead> {
        self.by_call.values_mut().flatten().find(|read| read.number == number)
    }

    /// When the oldest read whose result is there began, and its number.
    fn oldest(&self) -> Option<(Instant, u64)> {
        self.all().filter(|read| read.bytes > 0).map(|read| (read.began, read.number)).min()
    }

    fn drop_oldest(&mut self) -> Option<UnusedRead> {
        let (_, number) = self.oldest()?;
        let call = self.by_call.iter().find(|(_, waiting)| waiting.iter().any(|read| read.number == number));
        let call = call.map(|(call, _)| call.clone())?;
        self.take(&call, |read| read.number == number)?.into_unused(&self.principal)
    }

    /// Takes the first read of a call that is `wanted`.
    fn take(&mut self, call: &CallKey, wanted: impl Fn(&PendingRead) -> bool) -> Option<PendingRead> {
        let waiting = self.by_call.get_mut(call)?;
        let read = waiting.iter().position(wanted).and_then(|place| waiting.remove(place));
        if waiting.is_empty() {
            self.by_call.remove(call);
        }
        read
    }

    fn into_unused(self) -> impl Iterator<Item = UnusedRead> {
        let RunReads { principal, by_call, .. } = self;
        by_call.into_values().flatten().filter_map(move |read| read.into_unused(&principal))
    }
}

fn made_ahead(waiting: &VecDeque<PendingRead>) -> usize {
    waiting.iter().filter(|read| read.origin == ReadOrigin::Ahead).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::new_run_id;
    use crate::execute::speculation::EarlierRead;

    const LIMITS: (usize, usize) = (100, 150);

    fn reads() -> PendingReads {
        PendingReads { state: Mutex::default(), limits: LIMITS }
    }

    /// Adds a read made ahead with a result of this size. Returns what was dropped for it.
    fn add(reads: &PendingReads, run: &RunId, arguments: &str, bytes: usize) -> usize {
        let read = PendingRead {
            arguments: Arc::from(arguments),
            origin: ReadOrigin::Ahead,
            bytes: 0,
            ..EarlierRead::of_size(1).into_pending()
        };
        let number = reads.add(run, &Principal::local(), read);
        reads.note_result(run, number, bytes).len()
    }

    fn has(reads: &PendingReads, run: &RunId, arguments: &str) -> bool {
        let tool = ToolId::parse("a:read").unwrap();
        reads.unused(run).contains_key(&(tool, Digest::of(arguments.as_bytes())))
    }

    #[test]
    fn the_results_that_wait_for_a_run_are_bounded_and_the_oldest_go_first() {
        let (reads, run) = (reads(), new_run_id().unwrap());
        assert_eq!(add(&reads, &run, "one", 40) + add(&reads, &run, "two", 40), 0);
        assert!(reads.is_half_full(&run));
        assert_eq!(add(&reads, &run, "three", 50), 1);
        assert!(!has(&reads, &run, "one") && has(&reads, &run, "two") && has(&reads, &run, "three"));
        assert_eq!(add(&reads, &run, "too large", 101), 3, "and a result that exceeds the limit alone");
        assert_eq!(reads.count(&run), 0);
    }

    #[test]
    fn the_results_that_wait_for_all_runs_are_bounded() {
        let (reads, runs) = (reads(), [(); 3].map(|()| new_run_id().unwrap()));
        assert_eq!(add(&reads, &runs[0], "oldest", 60) + add(&reads, &runs[1], "older", 60), 0);
        assert_eq!(add(&reads, &runs[2], "newest", 60), 1);
        assert!(!has(&reads, &runs[0], "oldest") && has(&reads, &runs[1], "older"));
    }

    #[test]
    fn what_was_dropped_for_its_age_is_known_until_it_is_asked_for() {
        let (reads, run) = (reads(), new_run_id().unwrap());
        add(&reads, &run, "one", 1);
        assert_eq!(reads.drop_expired(Duration::ZERO).len(), 1);
        let tool = ToolId::parse("a:read").unwrap();
        let asked = || reads.take_expired(&run, &tool, &Digest::of(b"one"));
        assert!(asked() && !asked());
    }
}
