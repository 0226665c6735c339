//! The speculated reads of this process: under way or ready, until a run asks for them.
//!
//! A read is made through the same path as any call, with [`CallMode::Speculative`], so the gate refuses whatever may
//! not be speculated. Its result is used at most once, by the run it was made for, for a call with exactly the same
//! bytes, while the tool's definition and the write epoch are unchanged. Anything else means that the call is made as
//! usual.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pml_mcp::Caller;
use pml_model::json::Fields;
use pml_model::{CapabilityId, Digest, Principal, RunId, ServerName, ToolId};
use pml_store::{SpeculationCounts, Store, ToolSpeculation};
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::trust::SpeculationRecord;
use crate::builtin::ReadRecorder;
use crate::config::SpeculationSettings;
use crate::epoch::EpochMark;
use crate::plan::PlannedTool;
use crate::problem::ErrorCode;
use crate::settings::AppSettings;
use crate::tools::{self, Authority, CallContext, CallMode, CallOutcome, Permit, Toolset};

/// 250 ms: the least time that a run waits for a read under way before it makes the call itself.
const LEAST_PATIENCE: Duration = Duration::from_millis(250);
/// How many times the usual duration of a tool's calls a run waits for a read under way.
const PATIENCE_FACTOR: u32 = 3;
/// What a refusal by a rate limit counts as: the next reads had better be made only when asked for.
const RATE_LIMIT_WASTE: u32 = 10;
/// What a result that differs from that of the same call made later counts as.
const DIFFERENCE_WASTE: u32 = 20;
/// 1 s: how long servers may take to receive the cancellation of a read when the process ends.
const CALLING_OFF: Duration = Duration::from_secs(1);
/// How much the latest call counts in the usual duration of a tool's calls.
const LATEST_SHARE: f64 = 0.2;

/// The speculated reads of this process, and what has become of earlier ones.
pub(crate) struct Speculator {
    tools: Arc<Toolset>,
    settings: Arc<AppSettings>,
    store: Store,
    runs: Mutex<HashMap<RunId, RunReads>>,
    budget: Mutex<Budget>,
    records: Mutex<HashMap<(Principal, String), ToolHistory>>,
    /// The results of capabilities that were prepared and not asked for yet, by cache key.
    prepared: Mutex<HashMap<Digest, PreparedResult>>,
    /// The principals whose earlier records are loaded.
    loaded: Mutex<HashSet<Principal>>,
    /// What came of reads and is not stored yet.
    unstored: Mutex<HashMap<(Principal, String), SpeculationCounts>>,
    silent: Caller,
    tasks: TaskTracker,
    /// Cancels what is still under way when the process ends.
    closing: CancellationToken,
}

/// The reads made for one run and not asked for yet.
struct RunReads {
    principal: Principal,
    by_call: HashMap<(ToolId, Digest), VecDeque<PendingRead>>,
}

/// The result of a capability that was prepared before anybody asked for it.
struct PreparedResult {
    principal: Principal,
    capability: CapabilityId,
    at: Instant,
}

/// What is known about a tool's reads.
#[derive(Debug, Clone, Copy, Default)]
struct ToolHistory {
    record: SpeculationRecord,
    /// The usual duration of a call, in seconds.
    usual: f64,
    /// Whether the last read that was waited for was left unanswered.
    unanswered: bool,
}

/// A read under way or ready.
pub(crate) struct PendingRead {
    tool: ToolId,
    arguments: Arc<str>,
    definition: Digest,
    mark: EpochMark,
    began: Instant,
    outcome: oneshot::Receiver<ReadOutcome>,
    /// Records the files that were read.
    witness: ReadRecorder,
    /// Cancels the call when nobody wants its result any more.
    _cancel: DropGuard,
}

struct ReadOutcome {
    outcome: CallOutcome,
    took: Duration,
}

/// A result that was ready, or nearly, when the program asked for it.
pub(crate) struct SpeculationHit {
    pub(crate) result: Box<RawValue>,
    /// How much sooner it was there than if it had been asked for only now.
    pub(crate) saved: Duration,
}

/// Why a speculated read could not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpeculationMiss {
    /// Something may have been changed since the read began.
    Written,
    /// The read failed, or its server did not answer in time.
    Unanswered,
    /// The tool has another definition, or may no longer be speculated.
    Changed,
    /// The read is older than results may be.
    Expired,
}

/// The budget that all runs share.
struct Budget {
    by_server: HashMap<ServerName, u32>,
    /// The reads that may still be made now; it fills up over a minute.
    left: f64,
    filled: Instant,
}

/// A read to be made ahead.
pub(crate) struct NewRead<'r> {
    pub(crate) principal: &'r Principal,
    pub(crate) run: &'r RunId,
    pub(crate) tool: &'r PlannedTool,
    pub(crate) arguments: String,
    pub(crate) confidence: f64,
}

impl std::fmt::Debug for Speculator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Speculator").finish_non_exhaustive()
    }
}

impl Speculator {
    pub(crate) fn new(tools: Arc<Toolset>, settings: Arc<AppSettings>, store: Store) -> Arc<Speculator> {
        Arc::new(Speculator {
            tools,
            settings,
            store,
            runs: Mutex::default(),
            budget: Mutex::new(Budget { by_server: HashMap::new(), left: f64::MAX, filled: Instant::now() }),
            records: Mutex::default(),
            prepared: Mutex::default(),
            loaded: Mutex::default(),
            unstored: Mutex::default(),
            silent: Caller::silent(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        })
    }

    /// How many more reads a run may have that are under way or not asked for yet.
    pub(crate) fn room(&self, run: &RunId) -> usize {
        let concurrent = self.settings.config().speculation.concurrent as usize;
        let runs = self.runs.lock();
        let unused = runs.get(run).map_or(0, |reads| reads.by_call.values().map(VecDeque::len).sum());
        concurrent.saturating_sub(unused)
    }

    /// Whether a read of a tool is made ahead that the program asks for with this confidence.
    pub(crate) fn admits(&self, principal: &Principal, tool: &ToolId, confidence: f64) -> bool {
        let preset = self.settings.config().speculation.min_confidence();
        let mut records = self.records.lock();
        records.entry((principal.clone(), tool.to_string())).or_default().record.admits(confidence, preset)
    }

    /// Makes a read ahead. Returns `false` if a budget is used up, or if the tool's reads are wasted too often.
    pub(crate) fn start(self: &Arc<Self>, read: &NewRead<'_>) -> bool {
        let config = self.settings.config();
        let settings = &config.speculation;
        let server = &read.tool.id.server;
        if !self.admits(read.principal, &read.tool.id, read.confidence) || self.tools.is_rate_limited(server)
        {
            return false;
        }
        let Ok(mark) = self.tools.epoch.mark_for_server(server) else { return false };
        let Some(slot) = BudgetSlot::take(self, server, settings) else { return false };
        let (cancel, arguments) = (CancellationToken::new(), Arc::<str>::from(read.arguments.as_str()));
        let (tell, outcome) = oneshot::channel();
        let pending = PendingRead {
            tool: read.tool.id.clone(),
            definition: read.tool.digest.clone(),
            arguments: Arc::clone(&arguments),
            mark,
            began: Instant::now(),
            outcome,
            witness: ReadRecorder::default(),
            _cancel: cancel.clone().drop_guard(),
        };
        let context = self.context(read, cancel, pending.witness.clone());
        let (speculator, id) = (Arc::clone(self), read.tool.id.clone());
        self.tasks.spawn(async move {
            let began = Instant::now();
            let outcome = speculator.call(&context, &id, &arguments).await;
            drop(slot);
            if let CallOutcome::NotSent(problem) = &outcome
                && problem.code == ErrorCode::RateLimited
            {
                speculator.note_waste(&context.principal, &id.to_string(), RATE_LIMIT_WASTE);
            }
            // Nobody listens any more if the run has ended or has made the call itself.
            drop(tell.send(ReadOutcome { outcome, took: began.elapsed() }));
        });
        let call = (read.tool.id.clone(), Digest::of(read.arguments.as_bytes()));
        let mut runs = self.runs.lock();
        let reads = runs
            .entry(read.run.clone())
            .or_insert_with(|| RunReads { principal: read.principal.clone(), by_call: HashMap::new() });
        reads.by_call.entry(call).or_default().push_back(pending);
        true
    }

    fn context(&self, read: &NewRead<'_>, cancel: CancellationToken, witness: ReadRecorder) -> CallContext {
        CallContext {
            principal: read.principal.clone(),
            run: Some(read.run.clone()),
            deadline: None,
            cancel,
            mode: CallMode::Speculative,
            caller: self.silent.clone(),
            authority: Authority::Run(Permit { definition: read.tool.digest.clone(), approval: None }),
            witness: Some(witness),
        }
    }

    async fn call(&self, context: &CallContext, id: &ToolId, arguments: &str) -> CallOutcome {
        let arguments: &RawValue = serde_json::from_str(arguments).expect("it was printed from a JSON value");
        tools::call(&self.tools, context, id, arguments, Fields::default()).await
    }

    /// Takes the read made for a call, if there is one.
    pub(crate) fn take(&self, run: &RunId, tool: &ToolId, arguments: &Digest) -> Option<PendingRead> {
        let mut runs = self.runs.lock();
        let reads = runs.get_mut(run)?;
        let key = (tool.clone(), arguments.clone());
        let waiting = reads.by_call.get_mut(&key)?;
        let read = waiting.pop_front();
        if waiting.is_empty() {
            reads.by_call.remove(&key);
        }
        read
    }

    /// Waits for a read and checks that its result may be used now. What it read is added to `witness`.
    pub(crate) async fn claim(
        self: &Arc<Self>,
        (principal, run): (&Principal, &RunId),
        mut read: PendingRead,
        witness: Option<&ReadRecorder>,
    ) -> Result<SpeculationHit, SpeculationMiss> {
        let asked = Instant::now();
        let hit = self.await_result(principal, &mut read, asked).await;
        match &hit {
            Ok(hit) => {
                if let Some(witness) = witness {
                    witness.absorb(&read.witness);
                }
                self.note_hit(principal, &read.tool.to_string(), hit.saved);
                if self.is_sampled(run, &read) {
                    self.compare_later(principal, run, read, hit.result.clone());
                }
            }
            Err(miss) => self.note_miss(principal, &read.tool.to_string(), *miss),
        }
        hit
    }

    async fn await_result(
        &self,
        principal: &Principal,
        read: &mut PendingRead,
        asked: Instant,
    ) -> Result<SpeculationHit, SpeculationMiss> {
        let until = self.patience(principal, read, asked);
        // A result that is there is taken also where the time is up: the timeout looks at it first.
        let Ok(Ok(ended)) = tokio::time::timeout_at(until.into(), &mut read.outcome).await else {
            return Err(SpeculationMiss::Unanswered);
        };
        if read.began.elapsed() > self.settings.config().speculation.ttl {
            return Err(SpeculationMiss::Expired);
        }
        self.learn_duration(principal, &read.tool, ended.took);
        let CallOutcome::Ok(result) = ended.outcome else { return Err(SpeculationMiss::Unanswered) };
        if pml_mcp::protocol::is_input_required(&result) {
            return Err(SpeculationMiss::Unanswered);
        }
        if !self.tools.may_speculate(&read.tool, &read.definition) {
            return Err(SpeculationMiss::Changed);
        }
        if self.tools.epoch.mark_for_server(&read.tool.server).ok() != Some(read.mark) {
            return Err(SpeculationMiss::Written);
        }
        Ok(SpeculationHit { result, saved: ended.took.saturating_sub(asked.elapsed()) })
    }

    /// Until when a read under way is waited for: some time after it is asked for, but if the tool left a read
    /// unanswered before, some time after the read began. So a server that answers no reads ahead delays a run once.
    fn patience(&self, principal: &Principal, read: &PendingRead, asked: Instant) -> Instant {
        let records = self.records.lock();
        let history = records.get(&(principal.clone(), read.tool.to_string())).copied().unwrap_or_default();
        let patience = LEAST_PATIENCE.max(Duration::from_secs_f64(history.usual) * PATIENCE_FACTOR);
        let from = if history.unanswered { read.began } else { asked };
        (from + patience).max(asked)
    }

    fn learn_duration(&self, principal: &Principal, tool: &ToolId, took: Duration) {
        let mut records = self.records.lock();
        let history = records.entry((principal.clone(), tool.to_string())).or_default();
        history.usual += LATEST_SHARE * (took.as_secs_f64() - history.usual);
        history.unanswered = false;
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

    /// Makes the call of a read again and compares the results, off the run's path.
    fn compare_later(
        self: &Arc<Self>,
        principal: &Principal,
        run: &RunId,
        read: PendingRead,
        served: Box<RawValue>,
    ) {
        let (speculator, principal, run) = (Arc::clone(self), principal.clone(), run.clone());
        self.tasks.spawn(async move {
            let context = CallContext {
                principal: principal.clone(),
                run: Some(run),
                deadline: None,
                cancel: speculator.closing.child_token(),
                mode: CallMode::Speculative,
                caller: speculator.silent.clone(),
                authority: Authority::Run(Permit { definition: read.definition.clone(), approval: None }),
                witness: None,
            };
            let again = speculator.call(&context, &read.tool, &read.arguments).await;
            let unwritten =
                speculator.tools.epoch.mark_for_server(&read.tool.server).ok() == Some(read.mark);
            if let CallOutcome::Ok(now) = again
                && unwritten
                && now.get() != served.get()
            {
                tracing::info!(tool = %read.tool, "a result that was read ahead differs from the one read later");
                speculator.note_waste(&principal, &read.tool.to_string(), DIFFERENCE_WASTE);
                let counts = SpeculationCounts { differing: 1, ..SpeculationCounts::default() };
                speculator.count(&principal, &read.tool.to_string(), counts);
            }
        });
    }

    /// Drops the unused reads of a run that goes on: what they returned may be out of date.
    pub(crate) fn drop_unused(&self, run: &RunId) {
        let unused = match self.runs.lock().get_mut(run) {
            Some(reads) => (reads.principal.clone(), std::mem::take(&mut reads.by_call)),
            None => return,
        };
        self.note_unused(&unused.0, &unused.1);
    }

    /// Drops everything made for a run that has ended.
    pub(crate) fn end_run(&self, run: &RunId) {
        let reads = self.runs.lock().remove(run);
        if let Some(reads) = reads {
            self.note_unused(&reads.principal, &reads.by_call);
        }
        self.store_counts();
    }

    /// Drops the reads of parked runs that nobody asked for in time.
    pub(crate) fn drop_expired(&self) {
        let ttl = self.settings.config().speculation.ttl;
        let mut expired = Vec::new();
        self.runs.lock().retain(|_, reads| {
            for waiting in reads.by_call.values_mut() {
                while waiting.front().is_some_and(|read| read.began.elapsed() > ttl) {
                    expired.extend(waiting.pop_front().map(|read| (reads.principal.clone(), read.tool)));
                }
            }
            reads.by_call.retain(|_, waiting| !waiting.is_empty());
            !reads.by_call.is_empty()
        });
        for (principal, tool) in expired {
            self.note_wasted(&principal, &tool.to_string(), 1);
        }
        let mut outdated = Vec::new();
        self.prepared.lock().retain(|_, prepared| {
            let fresh = prepared.at.elapsed() <= ttl;
            if !fresh {
                outdated.push((prepared.principal.clone(), prepared.capability.to_string()));
            }
            fresh
        });
        outdated.iter().for_each(|(principal, id)| self.note_wasted(principal, id, 1));
        self.store_counts();
    }

    /// Calls the reads under way off, and gives the servers a moment to hear of it.
    pub(crate) async fn close(&self) {
        let left: Vec<RunReads> = self.runs.lock().drain().map(|(_, reads)| reads).collect();
        drop(left);
        self.closing.cancel();
        self.tasks.close();
        if tokio::time::timeout(CALLING_OFF, self.tasks.wait()).await.is_err() {
            tracing::debug!("a read ahead did not end when it was called off");
        }
        self.store_counts();
    }

    /// Loads what came of the principal's reads in earlier processes, the first time it has any to make. It reads a few
    /// rows, which takes less time than handing it to another thread.
    pub(crate) fn load_records(&self, principal: &Principal) {
        if !self.loaded.lock().insert(principal.clone()) {
            return;
        }
        let stored = match self.store.blocking().speculation(principal) {
            Ok(stored) => stored,
            Err(error) => {
                tracing::warn!(%error, "what came of earlier reads ahead could not be read");
                return;
            }
        };
        let mut records = self.records.lock();
        for ToolSpeculation { tool, counts } in stored {
            records.entry((principal.clone(), tool)).or_default().record = record_of(&counts);
        }
    }

    /// Whether a capability with this probability of being asked for next is run ahead.
    pub(crate) fn admits_prediction(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        confidence: f64,
    ) -> bool {
        self.load_records(principal);
        let config = self.settings.config();
        let mut records = self.records.lock();
        let history = records.entry((principal.clone(), id.to_string())).or_default();
        config.speculation.reads_per_run() > 0
            && history.record.admits(confidence, config.speculation.min_confidence())
    }

    /// Records that the result of a capability is kept under `key` before anybody asked for it.
    pub(crate) fn note_prediction(&self, principal: &Principal, id: &CapabilityId, key: Digest) {
        let prepared =
            PreparedResult { principal: principal.clone(), capability: id.clone(), at: Instant::now() };
        self.prepared.lock().insert(key, prepared);
    }

    /// Records that the result under `key` was asked for, if it was prepared.
    pub(crate) fn note_prediction_used(&self, key: &Digest) {
        let prepared = self.prepared.lock().remove(key);
        if let Some(prepared) = prepared {
            self.note_hit(&prepared.principal, prepared.capability.as_str(), Duration::ZERO);
        }
    }

    /// Queues what came of reads for storing.
    fn store_counts(&self) {
        let counts: Vec<(Principal, ToolSpeculation)> = self
            .unstored
            .lock()
            .drain()
            .map(|((principal, tool), counts)| {
                (principal, ToolSpeculation { tool: tool.to_string(), counts })
            })
            .collect();
        if !counts.is_empty() {
            self.store.add_speculation(counts);
        }
    }

    fn note_unused(&self, principal: &Principal, by_call: &HashMap<(ToolId, Digest), VecDeque<PendingRead>>) {
        let mut by_tool: HashMap<&ToolId, u32> = HashMap::new();
        for ((tool, _), waiting) in by_call {
            *by_tool.entry(tool).or_default() += u32::try_from(waiting.len()).unwrap_or(u32::MAX);
        }
        by_tool.into_iter().for_each(|(tool, reads)| self.note_wasted(principal, &tool.to_string(), reads));
    }

    fn note_hit(&self, principal: &Principal, id: &str, saved: Duration) {
        self.records.lock().entry((principal.clone(), id.to_owned())).or_default().record.add_hit();
        let saved_us = u64::try_from(saved.as_micros()).unwrap_or(u64::MAX);
        self.count(principal, id, SpeculationCounts { hits: 1, saved_us, ..SpeculationCounts::default() });
    }

    fn note_miss(&self, principal: &Principal, id: &str, miss: SpeculationMiss) {
        tracing::debug!(tool = id, ?miss, "a result that was read ahead could not be used");
        self.note_waste(principal, id, 1);
        if miss == SpeculationMiss::Unanswered {
            let key = (principal.clone(), id.to_owned());
            self.records.lock().entry(key).or_default().unanswered = true;
        }
        self.count(principal, id, SpeculationCounts { misses: 1, ..SpeculationCounts::default() });
    }

    fn note_wasted(&self, principal: &Principal, id: &str, reads: u32) {
        self.note_waste(principal, id, reads);
        let counts = SpeculationCounts { wasted: u64::from(reads), ..SpeculationCounts::default() };
        self.count(principal, id, counts);
    }

    fn note_waste(&self, principal: &Principal, id: &str, reads: u32) {
        self.records.lock().entry((principal.clone(), id.to_owned())).or_default().record.add_waste(reads);
    }

    fn count(&self, principal: &Principal, id: &str, counts: SpeculationCounts) {
        *self.unstored.lock().entry((principal.clone(), id.to_owned())).or_default() += counts;
    }
}

/// What stored counts say of a tool's reads.
fn record_of(counts: &SpeculationCounts) -> SpeculationRecord {
    let waste = counts.wasted + counts.misses + counts.differing * u64::from(DIFFERENCE_WASTE);
    SpeculationRecord::new(counts.hits, waste)
}

/// The confidence that a tool's reads need, given that of the preset and what came of earlier reads.
pub(crate) fn speculation_threshold(counts: &SpeculationCounts, preset: f64) -> f64 {
    record_of(counts).threshold(preset)
}

/// One call under way that counts against the budget of its server.
struct BudgetSlot {
    speculator: Arc<Speculator>,
    server: ServerName,
}

impl BudgetSlot {
    fn take(
        speculator: &Arc<Speculator>,
        server: &ServerName,
        settings: &SpeculationSettings,
    ) -> Option<BudgetSlot> {
        let mut budget = speculator.budget.lock();
        let now = Instant::now();
        let per_minute = f64::from(settings.per_minute);
        let refill = now.duration_since(budget.filled).as_secs_f64() * per_minute / 60.0;
        budget.left = (budget.left + refill).min(per_minute);
        budget.filled = now;
        let under_way = budget.by_server.entry(server.clone()).or_default();
        if *under_way >= settings.per_server {
            return None;
        }
        *under_way += 1;
        if budget.left < 1.0 {
            *budget.by_server.entry(server.clone()).or_default() -= 1;
            return None;
        }
        budget.left -= 1.0;
        Some(BudgetSlot { speculator: Arc::clone(speculator), server: server.clone() })
    }
}

impl Drop for BudgetSlot {
    fn drop(&mut self) {
        let mut budget = self.speculator.budget.lock();
        if let Some(under_way) = budget.by_server.get_mut(&self.server) {
            *under_way = under_way.saturating_sub(1);
        }
    }
}
