//! What came of speculated reads and of prepared results: by principal and tool or capability, in memory and stored.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pml_model::Principal;
use pml_store::{SpeculationCounts, Store, ToolSpeculation};

use super::trust::SpeculationRecord;
use crate::metrics::{Metrics, SpeculationOutcome};
use crate::runtime::compute;
use crate::settings::AppSettings;

/// 100 ms: the least time that a read under way gets before the call is made beside it. Calls of most tools are over by
/// then, also on a busy machine.
const LEAST_PATIENCE: Duration = Duration::from_millis(100);
/// 250 ms: the same for a tool of which no call was seen yet, whose server may still be starting.
const FIRST_PATIENCE: Duration = Duration::from_millis(250);
/// How many times the usual duration of a tool's calls a read under way gets.
const PATIENCE_FACTOR: u32 = 2;
/// What a refusal by a rate limit counts as: the next reads had better be made only when asked for.
const RATE_LIMIT_WASTE: u32 = 10;
/// What a result that differs from that of the same call made later counts as, beside a miss.
const DIFFERENCE_WASTE: u32 = 20;
/// How much the latest call counts in the usual duration of a tool's calls.
const LATEST_SHARE: f64 = 0.2;

/// A principal, and the id of a tool or a capability.
type RecordKey = (Principal, String);

/// The records of all principals.
pub(super) struct SpeculationRecords {
    settings: Arc<AppSettings>,
    store: Store,
    metrics: Arc<Metrics>,
    histories: Mutex<HashMap<RecordKey, ToolHistory>>,
    /// The principals whose earlier records are loaded.
    loaded: Mutex<HashSet<Principal>>,
    /// What came of reads and is not stored yet.
    unstored: Mutex<HashMap<RecordKey, ToolSpeculation>>,
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

/// What is known about a tool's reads.
#[derive(Debug, Clone, Copy, Default)]
struct ToolHistory {
    record: SpeculationRecord,
    /// The usual duration of a call, in seconds; `None` if none was seen.
    usual: Option<f64>,
    /// Whether the last read that was waited for was left unanswered.
    unanswered: bool,
}

impl ToolHistory {
    fn add_duration(&mut self, took: Duration) {
        let took = took.as_secs_f64();
        self.usual = Some(self.usual.map_or(took, |usual| usual + LATEST_SHARE * (took - usual)));
    }
}

impl SpeculationRecords {
    pub(super) fn new(settings: Arc<AppSettings>, store: Store, metrics: Arc<Metrics>) -> SpeculationRecords {
        SpeculationRecords {
            settings,
            store,
            metrics,
            histories: Mutex::default(),
            loaded: Mutex::default(),
            unstored: Mutex::default(),
        }
    }

    /// Loads what came of the principal's reads in earlier processes, the first time it has any to make.
    pub(super) fn load(&self, principal: &Principal) {
        if !self.loaded.lock().insert(principal.clone()) {
            return;
        }
        // A database server may not answer for seconds, so the tasks of this thread go on elsewhere meanwhile.
        let stored = match compute(|| self.store.blocking().speculation(principal)) {
            Ok(stored) => stored,
            Err(error) => {
                tracing::warn!(%error, "what came of earlier reads ahead could not be read");
                return;
            }
        };
        let mut histories = self.histories.lock();
        for ToolSpeculation { tool, counts, .. } in stored {
            histories.entry((principal.clone(), tool)).or_default().record = record_of(&counts);
        }
    }

    /// Whether a read or a capability is made ahead that is asked for with this confidence.
    pub(super) fn admits(&self, principal: &Principal, id: &str, confidence: f64) -> bool {
        let preset = self.settings.config().speculation.min_confidence();
        self.change(principal, id, |history| history.record.admits(confidence, preset))
    }

    /// When the call is made beside a read that is still under way: once it takes longer than calls of this tool usually
    /// do, and at once if the tool left a read unanswered before. So a server that answers no reads ahead delays a run
    /// once.
    pub(super) fn patience(
        &self,
        principal: &Principal,
        tool: &str,
        (began, asked): (Instant, Instant),
    ) -> Instant {
        let histories = self.histories.lock();
        let history = histories.get(&(principal.clone(), tool.to_owned())).copied().unwrap_or_default();
        let patience = match history.usual {
            _ if history.unanswered => return asked,
            Some(usual) => LEAST_PATIENCE.max(Duration::from_secs_f64(usual) * PATIENCE_FACTOR),
            None => FIRST_PATIENCE,
        };
        (began + patience).max(asked)
    }

    /// Records how long a call took that was made because a read ahead was of no use.
    pub(super) fn note_call(&self, principal: &Principal, tool: &str, took: Duration) {
        self.change(principal, tool, |history| history.add_duration(took));
    }

    /// Records how long a read took that was answered.
    pub(super) fn note_duration(&self, principal: &Principal, tool: &str, took: Duration) {
        self.change(principal, tool, |history| {
            history.add_duration(took);
            history.unanswered = false;
        });
    }

    /// Records a result that was made ahead with this confidence, was asked for and used.
    pub(super) fn note_hit(&self, principal: &Principal, id: &str, (confidence, saved): (f64, Duration)) {
        self.change(principal, id, |history| history.record.add_hit());
        let saved_us = u64::try_from(saved.as_micros()).unwrap_or(u64::MAX);
        self.metrics.note_speculation_saved(saved_us);
        self.count(principal, id, |counted| counted.saved_us += saved_us);
        self.count_outcome(principal, id, (SpeculationOutcome::Hit, confidence));
    }

    /// Records a result that was made ahead with this confidence, was asked for and could not be used.
    pub(super) fn note_miss(
        &self,
        principal: &Principal,
        id: &str,
        (confidence, miss): (f64, SpeculationMiss),
    ) {
        tracing::debug!(tool = id, ?miss, "a result that was read ahead could not be used");
        self.change(principal, id, |history| {
            history.record.add_waste(1);
            history.unanswered |= miss == SpeculationMiss::Unanswered;
        });
        self.count_outcome(principal, id, (SpeculationOutcome::Miss, confidence));
    }

    /// Records a result that was made ahead with this confidence and that nobody asked for.
    pub(super) fn note_wasted(&self, principal: &Principal, id: &str, confidence: f64) {
        self.change(principal, id, |history| history.record.add_waste(1));
        self.count_outcome(principal, id, (SpeculationOutcome::Wasted, confidence));
    }

    /// Records that a server refused a read because there were too many.
    pub(super) fn note_rate_limit(&self, principal: &Principal, tool: &str) {
        self.change(principal, tool, |history| history.record.add_waste(RATE_LIMIT_WASTE));
    }

    /// Records a result that was made ahead with this confidence and differed from that of the same call made later. It
    /// counts as a miss, and more.
    pub(super) fn note_difference(&self, principal: &Principal, tool: &str, confidence: f64) {
        self.change(principal, tool, |history| history.record.add_waste(1 + DIFFERENCE_WASTE));
        self.metrics.note_speculation_difference();
        self.count(principal, tool, |counted| counted.differing += 1);
        self.count_outcome(principal, tool, (SpeculationOutcome::Miss, confidence));
    }

    /// Queues what came of reads for storing.
    pub(super) fn store_counts(&self) {
        let counts: Vec<(Principal, ToolSpeculation)> = self
            .unstored
            .lock()
            .drain()
            .map(|((principal, tool), counted)| (principal, ToolSpeculation { tool, ..counted }))
            .collect();
        if !counts.is_empty() {
            self.store.add_speculation(counts);
        }
    }

    fn change<T>(&self, principal: &Principal, id: &str, change: impl FnOnce(&mut ToolHistory) -> T) -> T {
        change(self.histories.lock().entry((principal.clone(), id.to_owned())).or_default())
    }

    fn count(&self, principal: &Principal, id: &str, add: impl FnOnce(&mut SpeculationCounts)) {
        add(&mut self.unstored.lock().entry((principal.clone(), id.to_owned())).or_default().counts);
    }

    fn count_outcome(
        &self,
        principal: &Principal,
        id: &str,
        (outcome, confidence): (SpeculationOutcome, f64),
    ) {
        self.metrics.note_speculation(outcome, confidence);
        let mut unstored = self.unstored.lock();
        let counted = unstored.entry((principal.clone(), id.to_owned())).or_default();
        let by_confidence = counted.by_confidence.entry(percent(confidence)).or_default();
        match outcome {
            SpeculationOutcome::Hit => {
                counted.counts.hits += 1;
                by_confidence.hits += 1;
            }
            SpeculationOutcome::Miss => {
                counted.counts.misses += 1;
                by_confidence.misses += 1;
            }
            SpeculationOutcome::Wasted => {
                counted.counts.wasted += 1;
                by_confidence.wasted += 1;
            }
        }
    }
}

/// A probability in whole per cent.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the number is from 0 to 100")]
fn percent(confidence: f64) -> u8 {
    (confidence.clamp(0.0, 1.0) * 100.0).round() as u8
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
