//! What this process has done, in numbers: counters and histograms for `GET /metrics` and `GET /api/metrics`.
//!
//! Counting never waits and stores nothing: the figures begin at zero with the process, as Prometheus expects. Labels are
//! bounded: the names of servers come from the configuration, and beyond [`family::MOST_SERIES`] they are counted together.

mod accepted;
mod family;
mod report;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pml_model::{RunState, ToolId};

pub(crate) use accepted::OpenSuggestions;
use family::{CounterFamily, HistogramFamily};
pub use report::{MetricFamily, MetricSample, MetricValue, MetricsReport};

/// Seconds: the bounds of call durations. Reads of a local file take a millisecond; slow services take a minute.
const CALL_BOUNDS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0];
/// Seconds: the bounds of run durations.
const RUN_BOUNDS: [f64; 11] = [0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0, 3_600.0];

/// Probabilities: the bounds of the confidence of reads ahead. No read is made with less than 0.4.
const CONFIDENCE_BOUNDS: [f64; 7] = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Counts one more.
    pub(crate) fn add_one(&self) {
        self.add(1);
    }

    fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The figures of one process.
#[derive(Debug)]
pub struct Metrics {
    /// Searches for capabilities.
    pub(crate) searched: Counter,
    /// Searches that found a capability.
    pub(crate) matched: Counter,
    /// Runs of learned capabilities that ended.
    executed: Counter,
    succeeded: Counter,
    /// Capabilities whose result was cached.
    pub(crate) capability_cache_hits: Counter,
    suggestions_generated: Counter,
    suggestions_accepted: Counter,
    /// Analysed plans.
    pub(crate) patterns: Counter,
    /// Plans that became a capability.
    pub(crate) promoted: Counter,
    /// The suggestions that no run has answered yet.
    pub(crate) open_suggestions: OpenSuggestions,
    runs_started: CounterFamily,
    runs_ended: CounterFamily,
    run_seconds: HistogramFamily,
    calls: CounterFamily,
    call_seconds: HistogramFamily,
    cache_lookups: CounterFamily,
    speculation: CounterFamily,
    speculation_confidence: HistogramFamily,
    speculation_saved_us: Counter,
    approvals: CounterFamily,
    sandbox: CounterFamily,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            searched: Counter::default(),
            matched: Counter::default(),
            executed: Counter::default(),
            succeeded: Counter::default(),
            capability_cache_hits: Counter::default(),
            suggestions_generated: Counter::default(),
            suggestions_accepted: Counter::default(),
            patterns: Counter::default(),
            promoted: Counter::default(),
            open_suggestions: OpenSuggestions::default(),
            runs_started: CounterFamily::new(&["kind"]),
            runs_ended: CounterFamily::new(&["status"]),
            run_seconds: HistogramFamily::new("status", &RUN_BOUNDS),
            calls: CounterFamily::new(&["server", "status"]),
            call_seconds: HistogramFamily::new("server", &CALL_BOUNDS),
            cache_lookups: CounterFamily::of_values(&["outcome"], &["hit", "miss"]),
            speculation: CounterFamily::of_values(&["outcome"], &["hit", "miss", "wasted", "differing"]),
            speculation_confidence: HistogramFamily::new("outcome", &CONFIDENCE_BOUNDS),
            speculation_saved_us: Counter::default(),
            approvals: CounterFamily::of_values(&["event"], &["asked", "approved", "denied"]),
            sandbox: CounterFamily::of_values(&["event"], &["taken", "busy", "failed", "crashed"]),
        }
    }
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallStatus {
    /// With a result.
    Ok,
    /// With an error, of the tool or on the way to it.
    Error,
    /// It was sent, and whether the tool acted is unknown.
    InDoubt,
}

/// What came of a result that was read before it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpeculationOutcome {
    /// It was used.
    Hit,
    /// It was asked for and could not be used.
    Miss,
    /// Nobody asked for it.
    Wasted,
}

impl SpeculationOutcome {
    fn as_str(self) -> &'static str {
        match self {
            SpeculationOutcome::Hit => "hit",
            SpeculationOutcome::Miss => "miss",
            SpeculationOutcome::Wasted => "wasted",
        }
    }
}

/// What happened to a question about approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalEvent {
    /// A run asked for approval.
    Asked,
    /// It was given.
    Approved,
    /// It was refused.
    Denied,
}

/// What happened to a sandbox worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SandboxEvent {
    /// A program got a worker.
    Taken,
    /// All workers were busy for too long.
    Busy,
    /// No worker could be started.
    Failed,
    /// A worker ended unexpectedly.
    Crashed,
}

impl Metrics {
    /// Counts a search for capabilities.
    pub(crate) fn note_search(&self, found_any: bool) {
        self.searched.add_one();
        if found_any {
            self.matched.add_one();
        }
    }

    /// Counts a run that starts for the first time.
    pub(crate) fn note_run_start(&self, kind: &'static str) {
        self.runs_started.add(&[kind], 1);
    }

    /// Counts the end of a run.
    pub(crate) fn note_run_end(&self, state: RunState, took: Duration, of_capability: bool) {
        self.runs_ended.add(&[state.as_str()], 1);
        self.run_seconds.observe(state.as_str(), took.as_secs_f64());
        if of_capability {
            self.executed.add_one();
            if state == RunState::Done {
                self.succeeded.add_one();
            }
        }
    }

    /// Counts a tool call that ended.
    pub(crate) fn note_call(&self, tool: &ToolId, status: CallStatus, took: Duration) {
        let status = match status {
            CallStatus::Ok => "ok",
            CallStatus::Error => "error",
            CallStatus::InDoubt => "in_doubt",
        };
        self.calls.add(&[tool.server.as_str(), status], 1);
        self.call_seconds.observe(tool.server.as_str(), took.as_secs_f64());
    }

    /// Counts a lookup in the result cache.
    pub(crate) fn note_cache_lookup(&self, hit: bool) {
        self.cache_lookups.add(&[if hit { "hit" } else { "miss" }], 1);
    }

    /// Counts what came of a result that was read ahead with this confidence.
    pub(crate) fn note_speculation(&self, outcome: SpeculationOutcome, confidence: f64) {
        self.speculation.add(&[outcome.as_str()], 1);
        self.speculation_confidence.observe(outcome.as_str(), confidence);
    }

    /// Adds the time that a result read ahead saved, in microseconds.
    pub(crate) fn note_speculation_saved(&self, saved_us: u64) {
        self.speculation_saved_us.add(saved_us);
    }

    /// Counts a result that was read ahead and differed from that of the same call made later.
    pub(crate) fn note_speculation_difference(&self) {
        self.speculation.add(&["differing"], 1);
    }

    /// Counts what happens to a question about approval.
    pub(crate) fn note_approval(&self, event: ApprovalEvent) {
        let event = match event {
            ApprovalEvent::Asked => "asked",
            ApprovalEvent::Approved => "approved",
            ApprovalEvent::Denied => "denied",
        };
        self.approvals.add(&[event], 1);
    }

    /// Counts what happens to a sandbox worker.
    pub(crate) fn note_sandbox(&self, event: SandboxEvent) {
        let event = match event {
            SandboxEvent::Taken => "taken",
            SandboxEvent::Busy => "busy",
            SandboxEvent::Failed => "failed",
            SandboxEvent::Crashed => "crashed",
        };
        self.sandbox.add(&[event], 1);
    }

    /// Adds the figures to a report.
    pub fn report(&self, to: &mut MetricsReport) {
        self.report_capabilities(to);
        to.family("pml_runs_started_total", "Runs that were begun, by kind of plan.", &self.runs_started);
        to.family("pml_runs_ended_total", "Runs that ended, by their last state.", &self.runs_ended);
        to.histogram(
            "pml_run_duration_seconds",
            "Time from the beginning of a run to its end.",
            &self.run_seconds,
        );
        to.family("pml_tool_calls_total", "Tool calls of runs that ended, by server.", &self.calls);
        to.histogram(
            "pml_tool_call_duration_seconds",
            "Time from sending a tool call to its end, by server.",
            &self.call_seconds,
        );
        to.family(
            "pml_cache_lookups_total",
            "Lookups of plans whose result may be cached.",
            &self.cache_lookups,
        );
        to.family(
            "pml_speculation_results_total",
            "Results read before they were asked for, by what came of them.",
            &self.speculation,
        );
        to.histogram(
            "pml_speculation_confidence",
            "Confidence with which results were read before they were asked for, by what came of them.",
            &self.speculation_confidence,
        );
        let saved = Duration::from_micros(self.speculation_saved_us.get()).as_secs_f64();
        to.counter(
            "pml_speculation_saved_seconds_total",
            "Time by which results were there sooner because they were read ahead.",
            saved,
        );
        to.family(
            "pml_approvals_total",
            "Questions about approval that were asked and answered.",
            &self.approvals,
        );
        to.family("pml_sandbox_workers_total", "What happened to sandbox workers.", &self.sandbox);
    }

    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    fn report_capabilities(&self, to: &mut MetricsReport) {
        let rate = |part: &Counter, of: &Counter| match of.get() {
            0 => f64::NAN,
            all => part.get() as f64 / all as f64,
        };
        for (name, help, counter) in [
            ("capabilities_searched_total", "Searches for capabilities by intent.", &self.searched),
            ("capabilities_matched_total", "Searches that found at least one capability.", &self.matched),
            ("capabilities_executed_total", "Runs of learned capabilities that ended.", &self.executed),
            (
                "capabilities_cache_hits",
                "Requests for a capability that a cached result served.",
                &self.capability_cache_hits,
            ),
            (
                "suggestions_generated_total",
                "Requests that were answered with suggestions.",
                &self.suggestions_generated,
            ),
            (
                "suggestions_accepted_total",
                "Suggestions that were answered by a run of what they named.",
                &self.suggestions_accepted,
            ),
            ("patterns_detected_total", "Plans that were analysed to be run.", &self.patterns),
            ("capabilities_promoted_total", "Plans that became a capability.", &self.promoted),
        ] {
            to.counter(name, help, counter.get() as f64);
        }
        for (name, help, rate) in [
            ("capabilities_match_rate", "Matched by searched.", rate(&self.matched, &self.searched)),
            (
                "capabilities_success_rate",
                "Runs of capabilities that ended with a result, by all that ended.",
                rate(&self.succeeded, &self.executed),
            ),
            ("promotion_rate", "Promoted by detected.", rate(&self.promoted, &self.patterns)),
        ] {
            to.gauge(name, help, &[(Vec::new(), rate)]);
        }
    }
}

#[cfg(test)]
mod tests;
