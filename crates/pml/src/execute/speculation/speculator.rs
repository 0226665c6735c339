//! Makes reads ahead of runs and hands out their results.
//!
//! A result is used at most once, by the run it was read for, for a call with exactly the same bytes, while the tool's
//! definition and the write epoch are unchanged. One that a dry run read is used by the run that confirms it, and only
//! if the result cache would keep it. Anything else means that the call is made as usual.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pml_model::{CapabilityId, Digest, Principal, RunId, ServerName, ToolId};
use pml_store::Store;
use serde_json::value::RawValue;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::budget::{BudgetSlot, ReadBudget, RunCounts};
use super::earlier::EarlierRead;
use super::prepared::PreparedResults;
use super::reads::{PendingRead, PendingReads, ReadOrigin, ReadOutcome, UnusedRead};
use super::records::{SpeculationMiss, SpeculationRecords};
use super::speculative_call::{SpeculativeCall, SpeculativeCaller};
use super::turn_marks::TurnMarks;
use crate::builtin::ReadRecorder;
use crate::epoch::EpochMark;
use crate::knowledge::cache;
use crate::metrics::Metrics;
use crate::plan::PlannedTool;
use crate::problem::{ErrorCode, Problem};
use crate::settings::AppSettings;
use crate::tools::{CallOutcome, Toolset};

/// 1 s: how long servers may take to receive the cancellation of a read when the process ends.
const CALLING_OFF: Duration = Duration::from_secs(1);

/// A quarter of the calls that a run, or a server, may have at a time is kept free of reads ahead: a call that somebody
/// waits for finds a place.
const RESERVED_SHARE: usize = 4;

/// The part of a call's timeout for which a read under way is awaited at most. The call itself has all of its timeout.
const PATIENCE_SHARE: u32 = 4;

/// The speculated reads of this process, and what has become of earlier ones.
pub(crate) struct Speculator {
    tools: Arc<Toolset>,
    settings: Arc<AppSettings>,
    caller: SpeculativeCaller,
    reads: PendingReads,
    budget: Arc<ReadBudget>,
    counts: RunCounts,
    records: SpeculationRecords,
    prepared: PreparedResults,
    tasks: TaskTracker,
    /// Cancels what is still under way when the process ends.
    closing: CancellationToken,
}

/// A result that was ready, or nearly, when the program asked for it.
pub(crate) struct SpeculationHit {
    pub(crate) result: Box<RawValue>,
    /// How much sooner it was there than if it had been asked for only now.
    pub(crate) saved: Duration,
    /// Its age, if a dry run had read it.
    pub(crate) age: Option<Duration>,
}

/// What a program receives for a call for which a read was made.
pub(crate) enum ClaimedResult {
    /// The result of the read.
    Ahead(SpeculationHit),
    /// The outcome of the call itself, and why the read was of no use; `None` if the call was cancelled.
    Called(CallOutcome, Option<SpeculationMiss>),
}

/// A call that a program asks for, and for which a read was made.
pub(crate) struct AskedCall<'c> {
    pub(crate) principal: &'c Principal,
    pub(crate) run: &'c RunId,
    /// What the read has read is added to it.
    pub(crate) witness: Option<&'c ReadRecorder>,
    /// Cancels the call.
    pub(crate) cancel: &'c CancellationToken,
    /// The timeout of the call.
    pub(crate) timeout: Option<Duration>,
}

/// A read to be made ahead.
pub(crate) struct NewRead<'r> {
    pub(crate) principal: &'r Principal,
    pub(crate) run: &'r RunId,
    pub(crate) tool: &'r PlannedTool,
    pub(crate) arguments: &'r str,
    /// The confidence that the program asks for it.
    pub(crate) confidence: f64,
    /// The write epochs of the reads that are started together with it.
    pub(crate) marks: &'r Arc<TurnMarks>,
}

impl std::fmt::Debug for Speculator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Speculator").finish_non_exhaustive()
    }
}

impl Speculator {
    pub(crate) fn new(
        (tools, settings, metrics): (Arc<Toolset>, Arc<AppSettings>, Arc<Metrics>),
        store: Store,
    ) -> Arc<Speculator> {
        Arc::new(Speculator {
            caller: SpeculativeCaller::new(Arc::clone(&tools)),
            reads: PendingReads::default(),
            budget: ReadBudget::new(),
            counts: RunCounts::default(),
            records: SpeculationRecords::new(Arc::clone(&settings), store, metrics),
            prepared: PreparedResults::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            tools,
            settings,
        })
    }

    /// Loads what came of the principal's reads in earlier processes.
    pub(crate) fn load_records(&self, principal: &Principal) {
        self.records.load(principal);
    }

    /// How many more reads a run may have that are under way or not asked for yet, while `calls` of its own are under
    /// way of the `most` that it may make at a time.
    pub(crate) fn room(&self, run: &RunId, calls: usize, most: usize) -> usize {
        if self.reads.is_half_full(run) {
            return 0;
        }
        let concurrent = self.settings.config().speculation.concurrent as usize;
        let beside_calls = most.saturating_sub(reserve(most) + calls);
        concurrent.min(beside_calls).saturating_sub(self.reads.count(run))
    }

    /// The reads made ahead of a run and not asked for yet, by tool and arguments.
    pub(crate) fn unused_reads(&self, run: &RunId) -> HashMap<(ToolId, Digest), usize> {
        self.reads.unused(run)
    }

    /// How many reads were made ahead of a run so far.
    pub(crate) fn reads_made(&self, run: &RunId) -> u32 {
        self.counts.get(run)
    }

    /// Whether a read of a tool is made ahead that the program asks for with this confidence.
    pub(crate) fn admits(&self, principal: &Principal, tool: &ToolId, confidence: f64) -> bool {
        self.records.admits(principal, &tool.to_string(), confidence)
    }

    /// Makes a read ahead. Returns `false` if a budget is used up, or if the server is to be left alone.
    pub(crate) fn start(self: &Arc<Self>, read: &NewRead<'_>) -> bool {
        let server = read.tool.id.server.clone();
        let Some(slot) = self.take_slot(&server) else { return false };
        let (cancel, (tell, outcome)) = (CancellationToken::new(), oneshot::channel());
        let pending = PendingRead {
            number: 0,
            tool: read.tool.id.clone(),
            arguments: Arc::from(read.arguments),
            definition: read.tool.digest.clone(),
            bytes: 0,
            began: Instant::now(),
            outcome,
            origin: ReadOrigin::Ahead,
            confidence: read.confidence,
            witness: ReadRecorder::default(),
            _cancel: cancel.clone().drop_guard(),
        };
        let call = SpeculativeCall {
            witness: Some(pending.witness.clone()),
            ..pending.call(read.principal, read.run, cancel)
        };
        let number = self.reads.add(read.run, read.principal, pending);
        self.counts.add_one(read.run);
        let (speculator, run, marks) = (Arc::clone(self), read.run.clone(), Arc::clone(read.marks));
        self.tasks.spawn(async move {
            // The driver of the run does not wait for the database.
            let Some(mark) = marks.of(&speculator.tools.epoch, &server).await else { return };
            let began = Instant::now();
            let outcome = speculator.make(call, slot).await;
            if let CallOutcome::Ok(result) = &outcome {
                speculator.note_unused(speculator.reads.note_result(&run, number, result.get().len()));
            }
            // Nobody listens any more if the run has ended or has made the call itself.
            drop(tell.send(ReadOutcome { outcome, mark, took: began.elapsed() }));
        });
        true
    }

    /// Makes a read for which there is room, and then gives its place in the budget back.
    pub(super) async fn make(&self, read: SpeculativeCall, slot: BudgetSlot) -> CallOutcome {
        let (principal, tool) = (read.principal.clone(), read.tool.clone());
        let outcome = self.caller.call(read).await;
        drop(slot);
        if let CallOutcome::NotSent(problem) = &outcome
            && problem.code == ErrorCode::RateLimited
        {
            self.records.note_rate_limit(&principal, &tool.to_string());
        }
        outcome
    }

    /// Takes one read of a server out of the budget; `None` if it is used up, if the server is to be left alone, or if
    /// calls that somebody waits for need what the server can do.
    pub(super) fn take_slot(&self, server: &ServerName) -> Option<BudgetSlot> {
        if self.tools.is_rate_limited(server) {
            return None;
        }
        let config = self.settings.config();
        let most = config.limits.concurrent_per_server;
        let calls = self.tools.requested_calls(server);
        let beside_calls = most.saturating_sub(reserve(most as usize) as u32 + calls);
        let settings = &config.speculation;
        self.budget.take(server, settings.per_server.min(beside_calls), settings.per_minute)
    }

    /// Changes whenever a read ahead has ended, so that there may be room for another.
    pub(crate) fn room_returns(&self) -> watch::Receiver<()> {
        self.budget.room_returns()
    }

    /// Gives a run the reads of the dry run that it confirms, at most `most`, as far as they can be used now.
    pub(crate) async fn add_earlier_reads(
        &self,
        (principal, run): (&Principal, &RunId),
        reads: Vec<EarlierRead>,
        most: u32,
    ) {
        for read in reads.into_iter().take(most as usize) {
            let mark = read.mark;
            let read = read.into_pending();
            match self.check_usable(&read, mark).await {
                Ok(()) => {
                    let bytes = read.bytes;
                    let number = self.reads.add(run, principal, read);
                    self.note_unused(self.reads.note_result(run, number, bytes));
                }
                Err(miss) => tracing::debug!(tool = %read.tool, ?miss, "a read of a dry run cannot be used"),
            }
        }
    }

    /// Whether the dry run that a run confirms made this call, so that it need not be made ahead.
    pub(crate) fn has_earlier_read(&self, run: &RunId, tool: &ToolId, arguments: &str) -> bool {
        self.reads.has_earlier(run, tool, &Digest::of(arguments.as_bytes()))
    }

    /// Takes the read made for a call, if there is one.
    pub(crate) fn take(&self, run: &RunId, tool: &ToolId, arguments: &Digest) -> Option<PendingRead> {
        self.reads.take(run, tool, arguments)
    }

    /// Whether the read made for a call was dropped because it was too old.
    pub(crate) fn has_expired(&self, run: &RunId, tool: &ToolId, arguments: &Digest) -> bool {
        self.reads.take_expired(run, tool, arguments)
    }

    /// Drops a read that was made ahead for a call that the program will not make. One under way is cancelled.
    pub(crate) fn release(&self, (principal, run): (&Principal, &RunId), tool: &ToolId, arguments: &Digest) {
        if let Some(read) = self.reads.take_ahead(run, tool, arguments) {
            self.records.note_wasted(principal, &tool.to_string(), read.confidence);
        }
    }

    /// Drops the read made for a call, if there is one: what came before the call has failed.
    pub(crate) fn discard(&self, (principal, run): (&Principal, &RunId), tool: &ToolId, arguments: &Digest) {
        if let Some(read) = self.take(run, tool, arguments)
            && read.origin == ReadOrigin::Ahead
        {
            self.records.note_wasted(principal, &tool.to_string(), read.confidence);
        }
    }

    /// Waits for a read that was made for a call, and takes its result if that may be used now. Otherwise the outcome of
    /// the call itself is taken. The call is also made beside a read that takes longer than usual, and the first result
    /// counts: sending a read twice changes nothing.
    pub(crate) async fn claim<C>(
        self: &Arc<Self>,
        asker: &AskedCall<'_>,
        mut read: PendingRead,
        call: impl Fn() -> C,
    ) -> ClaimedResult
    where
        C: Future<Output = CallOutcome>,
    {
        let (principal, asked) = (asker.principal, Instant::now());
        let usual = self.records.patience(principal, &read.tool.to_string(), (read.began, asked));
        let beside_at = asker.timeout.map_or(usual, |time| usual.min(asked + time / PATIENCE_SHARE));
        // A result that is there is taken also where the time is up: it is looked at first.
        tokio::select! {
            biased;
            ended = &mut read.outcome => return match self.check_ended(principal, &read, (ended.ok(), asked)).await {
                Ok(hit) => self.take_hit(asker, read, hit),
                Err(miss) => {
                    self.note_miss(principal, &read, miss);
                    ClaimedResult::Called(call().await, Some(miss))
                }
            },
            () = asker.cancel.cancelled() => {
                let text = format!("the call to `{}` was cancelled", read.tool);
                let outcome = CallOutcome::NotSent(Problem::new(ErrorCode::Cancelled, text));
                return ClaimedResult::Called(outcome, None);
            }
            () = tokio::time::sleep_until(beside_at.into()) => {}
        }
        if !self.tools.may_speculate(&read.tool, &read.definition) {
            let miss = SpeculationMiss::Changed;
            self.note_miss(principal, &read, miss);
            drop(read);
            return ClaimedResult::Called(call().await, Some(miss));
        }
        let began = Instant::now();
        let mut beside = std::pin::pin!(call());
        let (miss, outcome) = tokio::select! {
            biased;
            ended = &mut read.outcome => match self.check_ended(principal, &read, (ended.ok(), asked)).await {
                Ok(hit) => return self.take_hit(asker, read, hit),
                Err(miss) => (miss, beside.await),
            },
            outcome = &mut beside => (SpeculationMiss::Unanswered, outcome),
        };
        self.note_miss(principal, &read, miss);
        if let CallOutcome::Ok(_) = &outcome {
            self.records.note_call(principal, &read.tool.to_string(), began.elapsed());
        }
        // A server may refuse the second of two calls, or both may have failed together. The program is to see what it
        // would see without the read.
        let repeats = may_be_due_to_read(&outcome) && self.tools.may_speculate(&read.tool, &read.definition);
        drop(read);
        ClaimedResult::Called(if repeats { call().await } else { outcome }, Some(miss))
    }

    fn take_hit(
        self: &Arc<Self>,
        asker: &AskedCall<'_>,
        read: PendingRead,
        (hit, mark): (SpeculationHit, EpochMark),
    ) -> ClaimedResult {
        if let Some(witness) = asker.witness {
            self.add_to_witness(&read, witness);
        }
        if read.origin == ReadOrigin::Ahead {
            let slot = self.is_sampled(asker.run, &read).then(|| self.take_slot(&read.tool.server)).flatten();
            match slot {
                Some(slot) => self.compare_later((asker.principal, asker.run), (read, mark), &hit, slot),
                None => {
                    let of_read = (read.confidence, hit.saved);
                    self.records.note_hit(asker.principal, &read.tool.to_string(), of_read);
                }
            }
        }
        ClaimedResult::Ahead(hit)
    }

    fn note_miss(&self, principal: &Principal, read: &PendingRead, miss: SpeculationMiss) {
        if read.origin == ReadOrigin::Ahead {
            self.records.note_miss(principal, &read.tool.to_string(), (read.confidence, miss));
        }
    }

    /// Checks that a read that has ended has a result that may be used now; `None` if it was never made.
    async fn check_ended(
        &self,
        principal: &Principal,
        read: &PendingRead,
        (ended, asked): (Option<ReadOutcome>, Instant),
    ) -> Result<(SpeculationHit, EpochMark), SpeculationMiss> {
        let Some(ended) = ended else { return Err(SpeculationMiss::Unanswered) };
        self.records.note_duration(principal, &read.tool.to_string(), ended.took);
        let CallOutcome::Ok(result) = ended.outcome else { return Err(SpeculationMiss::Unanswered) };
        if pml_mcp::protocol::is_input_required(&result) {
            return Err(SpeculationMiss::Unanswered);
        }
        self.check_usable(read, ended.mark).await?;
        let age = (read.origin == ReadOrigin::DryRun).then(|| read.began.elapsed());
        let saved = ended.took.saturating_sub(asked.elapsed());
        Ok((SpeculationHit { result, saved, age }, ended.mark))
    }

    /// Checks that the result of a read may be used now. The write epoch comes last: nothing is awaited after it.
    async fn check_usable(&self, read: &PendingRead, mark: EpochMark) -> Result<(), SpeculationMiss> {
        if read.began.elapsed() > self.settings.config().speculation.ttl {
            return Err(SpeculationMiss::Expired);
        }
        if read.origin == ReadOrigin::DryRun {
            self.check_cacheable(read).await?;
        }
        if !self.tools.may_speculate(&read.tool, &read.definition) {
            return Err(SpeculationMiss::Changed);
        }
        if self.was_written_since(&read.tool.server, mark) {
            return Err(SpeculationMiss::Written);
        }
        Ok(())
    }

    /// Checks that the result cache would still return the result of a read: between a dry run and its confirmation, as
    /// between two runs, the world may have changed without a call of PML's.
    async fn check_cacheable(&self, read: &PendingRead) -> Result<(), SpeculationMiss> {
        let Ok(lifetime) = cache::call_lifetime(&self.tools, &read.tool) else {
            return Err(SpeculationMiss::Changed);
        };
        if lifetime.is_some_and(|lifetime| read.began.elapsed() > lifetime) {
            return Err(SpeculationMiss::Expired);
        }
        if !cache::is_compared(&self.tools, &read.tool) {
            return Ok(());
        }
        let Some(stamps) = read.witness.stamps(1) else { return Err(SpeculationMiss::Written) };
        let unchanged = cache::stamps_hold(&self.tools, stamps.into()).await;
        if unchanged { Ok(()) } else { Err(SpeculationMiss::Written) }
    }

    /// Adds what a read has read to what the run reads. The result of the run is not cached if the read had a limited
    /// lifetime: it would be counted anew from the end of the run.
    fn add_to_witness(&self, read: &PendingRead, witness: &ReadRecorder) {
        witness.absorb(&read.witness);
        let limited = || !matches!(cache::call_lifetime(&self.tools, &read.tool), Ok(None));
        if read.origin == ReadOrigin::DryRun && limited() {
            witness.record_unknown();
        }
    }

    /// Whether anything that a read of a server may depend on may have changed since this mark.
    fn was_written_since(&self, server: &ServerName, mark: EpochMark) -> bool {
        self.tools.epoch.mark_for_server(server).ok() != Some(mark)
    }

    fn is_sampled(&self, run: &RunId, read: &PendingRead) -> bool {
        let share = self.settings.config().speculation.sample;
        if share == 0 {
            return false;
        }
        // Drawn by the run and the call, so that it does not depend on timing.
        let drawn = Digest::of(format!("{run} {} {}", read.tool, read.arguments).as_bytes());
        u32::from_str_radix(&drawn.as_str()[..6], 16).is_ok_and(|number| number % 100 < share)
    }

    /// Makes the call of a read again and compares the results, off the run's path and within the budget. Only then it
    /// counts as a hit or as a miss.
    fn compare_later(
        self: &Arc<Self>,
        (principal, run): (&Principal, &RunId),
        (read, mark): (PendingRead, EpochMark),
        hit: &SpeculationHit,
        slot: BudgetSlot,
    ) {
        let (speculator, principal) = (Arc::clone(self), principal.clone());
        let (served, saved) = (hit.result.clone(), hit.saved);
        let call = read.call(&principal, run, self.closing.child_token());
        self.tasks.spawn(async move {
            let (again, tool) = (speculator.make(call, slot).await, read.tool.to_string());
            if let CallOutcome::Ok(now) = again
                && !speculator.was_written_since(&read.tool.server, mark)
                && now.get() != served.get()
            {
                tracing::info!(%tool, "a result that was read ahead differs from the one read later");
                speculator.records.note_difference(&principal, &tool, read.confidence);
            } else {
                speculator.records.note_hit(&principal, &tool, (read.confidence, saved));
            }
        });
    }

    /// Drops the reads of a run that has slept: they were right, but too early. They say nothing against their tools.
    pub(crate) fn drop_early(&self, run: &RunId) {
        drop(self.reads.drop_run(run));
    }

    /// Drops the unused reads of a run that goes on: what they returned may be out of date.
    pub(crate) fn drop_unused(&self, run: &RunId) {
        self.note_unused(self.reads.drop_run(run));
    }

    /// Drops everything made for a run that has ended.
    pub(crate) fn end_run(&self, run: &RunId) {
        self.drop_unused(run);
        self.counts.remove(run);
        self.records.store_counts();
    }

    /// Drops the reads of parked runs, and the prepared results, that nobody asked for in time.
    pub(crate) fn drop_expired(&self) {
        let ttl = self.settings.config().speculation.ttl;
        self.note_unused(self.reads.drop_expired(ttl));
        self.counts.remove_old();
        for prepared in self.prepared.take_expired(ttl) {
            let (principal, capability) = (&prepared.principal, prepared.capability.as_str());
            self.records.note_wasted(principal, capability, prepared.confidence);
        }
        self.records.store_counts();
    }

    fn note_unused(&self, unused: Vec<UnusedRead>) {
        for UnusedRead { principal, tool, confidence } in unused {
            self.records.note_wasted(&principal, &tool.to_string(), confidence);
        }
    }

    /// Calls the reads under way off, and gives the servers a moment to hear of it.
    pub(crate) async fn close(&self) {
        self.reads.clear();
        self.closing.cancel();
        self.tasks.close();
        if tokio::time::timeout(CALLING_OFF, self.tasks.wait()).await.is_err() {
            tracing::debug!("a read ahead did not end when it was called off");
        }
        self.records.store_counts();
    }

    /// Whether a capability with this probability of being asked for next is run ahead.
    pub(crate) fn admits_prediction(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        confidence: f64,
    ) -> bool {
        self.records.load(principal);
        self.settings.config().speculation.reads_per_run() > 0
            && self.records.admits(principal, id.as_str(), confidence)
    }

    /// Records that the result of a capability is kept under `key` before anybody asked for it, which somebody does with
    /// this confidence.
    pub(crate) fn note_prediction(&self, of: (&Principal, &CapabilityId), confidence: f64, key: Digest) {
        self.prepared.add(of, confidence, key);
    }

    /// Records that the result under `key` was asked for, if it was prepared.
    pub(crate) fn note_prediction_used(&self, key: &Digest) {
        if let Some(prepared) = self.prepared.take(key) {
            let hit = (prepared.confidence, Duration::ZERO);
            self.records.note_hit(&prepared.principal, prepared.capability.as_str(), hit);
        }
    }
}

/// How many of so many calls at a time are kept free of reads ahead.
fn reserve(most: usize) -> usize {
    most.div_ceil(RESERVED_SHARE)
}

/// Whether a call failed in a way that may be due to the read beside it. A server that did not answer in time would not
/// have answered without the read either.
fn may_be_due_to_read(outcome: &CallOutcome) -> bool {
    match outcome {
        CallOutcome::ToolError(_) | CallOutcome::NotSent(_) => true,
        CallOutcome::Unknown(problem) => !matches!(problem.code, ErrorCode::Timeout | ErrorCode::Cancelled),
        CallOutcome::Ok(_) | CallOutcome::NeedsApproval(_) | CallOutcome::Withheld(_) => false,
    }
}
