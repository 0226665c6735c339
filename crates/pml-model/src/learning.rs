//! Learning: a fold over traces, in the order in which they were stored.
//!
//! [`fold_traces`] takes the current state and the new traces, and returns the changes. It reads no clock and no
//! store. Every number depends only on the traces and their order: several batches give the same numbers as one, and
//! learning everything again gives the same numbers as before.

mod lesson;

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use crate::paths::learn_mean;
pub use crate::paths::{DecisionStats, LearnedPaths, OutcomeStats, PathStats};
pub use lesson::{CallCounts, CallDigest, Lesson, is_intent_evidence, result_digest};

use crate::capability::{CapabilityStatistics, DEGRADING_FAILURES};
use crate::observed::ObservedShape;
use crate::trace::{EdgeKind, TraceFailure, TraceStatus};
use crate::{CapabilityId, Digest, Principal};

/// 30 min: a run that starts later in the same session does not count as following the previous one.
const FOLLOWS_MS: i64 = 30 * 60 * 1000;
/// Maximum number of different values per parameter that are kept as examples.
const MOST_EXAMPLES: usize = 5;
/// Maximum length of an error that a reason quotes, in characters.
const LONGEST_REASON: usize = 200;

/// A trace to be learned.
#[derive(Debug, Clone)]
pub struct NewTrace {
    /// Position in the order of learning.
    pub seq: i64,
    /// The principal that the run belonged to.
    pub principal: Principal,
    /// The session that requested it.
    pub session: String,
    /// The capability it counts for, if any.
    pub capability: Option<CapabilityId>,
    /// Whether that capability is the one that was run, not one it was merged into.
    pub is_own_procedure: bool,
    /// The intent, as text.
    pub intent: String,
    /// How the run ended.
    pub status: TraceStatus,
    /// The failure; `None` for a run with a result.
    pub error: Option<TraceFailure>,
    /// Duration in milliseconds.
    pub duration_ms: i64,
    /// When the run ended, in milliseconds since the Unix epoch.
    pub created_at: i64,
    /// Whether it was called within another run.
    pub is_nested: bool,
    /// Whether the result came from the cache.
    pub cached: bool,
    /// Whether it was run to find something out, not for its result. Then it counts for nothing here.
    pub exploratory: bool,
    /// Whether its intent counts for its capability.
    pub intent_counts: bool,
    /// The first tool that it called.
    pub first_tool: Option<String>,
    /// The last tool that it called.
    pub last_tool: Option<String>,
    /// The calling capability, if the trace of that one was stored before.
    pub caller: Option<CapabilityId>,
    /// The called capabilities, as far as their traces were stored before.
    pub callees: Vec<CapabilityId>,
    /// The extract of the trace that learning needs.
    pub lesson: Lesson,
}

/// The state before traces are folded in. It has to hold only what they touch; anything missing counts as new.
#[derive(Debug, Clone, Default)]
pub struct LearningState {
    /// The capabilities of the traces. A trace whose capability is missing here counts for none.
    pub capabilities: HashMap<CapabilityId, LearnedCapability>,
    /// The last trace of each session, by principal and session.
    pub sessions: HashMap<(Principal, String), PreviousTrace>,
    /// Observed results of tools.
    pub observed: HashMap<ObservedTool, ObservedShape>,
}

/// A tool with one of its definitions: principal, `server:tool`, digest of the definition.
pub type ObservedTool = (Principal, String, Digest);

/// What was learned of a capability.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LearnedCapability {
    /// Usage and success counts.
    pub statistics: CapabilityStatistics,
    /// Why it is degraded, if failures degraded it.
    pub failing_because: Option<String>,
    /// Position of the last successful trace.
    pub last_success_seq: i64,
    /// Paths and decisions.
    pub learning: LearnedPaths,
    /// Example values, by parameter.
    pub examples: Map<String, Value>,
}

/// The previous trace of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousTrace {
    /// The capability it counts for, if any.
    pub capability: Option<CapabilityId>,
    /// When the run ended, in milliseconds since the Unix epoch.
    pub created_at: i64,
    /// The last tool that it called.
    pub last_tool: Option<String>,
    /// Its calls, see [`Lesson::calls`].
    pub calls: Vec<CallDigest>,
}

/// The changes from a batch of traces.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LearningChanges {
    /// Priority (surprise) of each trace, from 0 to 1, in the order of the traces.
    pub priorities: Vec<f64>,
    /// The new state of the capabilities that were learned.
    pub capabilities: BTreeMap<CapabilityId, LearnedCapability>,
    /// Successful runs by intent, to be added to the stored counts.
    pub intents: BTreeMap<(CapabilityId, String), IntentCount>,
    /// Counts to be added to edges: principal, from, kind, to.
    pub edges: BTreeMap<(Principal, String, EdgeKind, String), u64>,
    /// Calls and failures to be added, by principal and tool.
    pub tool_uses: BTreeMap<(Principal, String), CallCounts>,
    /// Calls and failures to be added, by principal, tool and pattern of arguments.
    pub argument_patterns: BTreeMap<(Principal, String, String), CallCounts>,
    /// The new state of the observed results of tools.
    pub observed: HashMap<ObservedTool, ObservedShape>,
    /// The capabilities that one of the traces degraded.
    pub degraded: Vec<DegradedCapability>,
}

/// Number of successful runs for an intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntentCount {
    /// Number of occurrences.
    pub count: u64,
    /// When the first of them ended.
    pub first_at: i64,
    /// When the last of them ended.
    pub last_at: i64,
}

/// A capability that failures in a row have degraded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DegradedCapability {
    /// Position of the trace with the decisive failure.
    pub seq: i64,
    /// The principal that the capability belongs to.
    pub principal: Principal,
    /// Id of the capability.
    pub capability: CapabilityId,
}

/// Learns from traces, given in the order in which they were stored.
pub fn fold_traces(state: LearningState, traces: Vec<NewTrace>) -> LearningChanges {
    let mut fold = Fold { state, changes: LearningChanges::default() };
    for trace in traces {
        fold.learn_capability(&trace);
        if !trace.exploratory {
            fold.learn_surroundings(trace);
        }
    }
    fold.changes
}

/// Learns only what traces show of their capabilities.
pub fn fold_capabilities(state: LearningState, traces: &[NewTrace]) -> LearningChanges {
    let mut fold = Fold { state, changes: LearningChanges::default() };
    for trace in traces {
        fold.learn_capability(trace);
    }
    fold.changes
}

struct Fold {
    state: LearningState,
    changes: LearningChanges,
}

impl Fold {
    fn learn_capability(&mut self, trace: &NewTrace) {
        if trace.exploratory {
            // A path that was only explored is a run of nothing.
            self.changes.priorities.push(0.0);
            return;
        }
        let known = trace.capability.as_ref().filter(|id| self.state.capabilities.contains_key(*id));
        let Some(id) = known else {
            // Without a capability nothing is known to compare with, so evidence counts as fully surprising.
            let tells = !trace.cached && trace.status.evidence().is_some();
            self.changes.priorities.push(if tells { 1.0 } else { 0.0 });
            return;
        };
        let before = &self.state.capabilities[id];
        let capability = self.changes.capabilities.entry(id.clone()).or_insert_with(|| before.clone());
        let priority = capability.learn(trace);
        if capability.was_degraded_by(trace) {
            let (seq, principal) = (trace.seq, trace.principal.clone());
            self.changes.degraded.push(DegradedCapability { seq, principal, capability: id.clone() });
        }
        self.changes.priorities.push(priority);
        if trace.intent_counts && !trace.intent.is_empty() && trace.tells_intent() {
            self.add_intent(id.clone(), &trace.intent, trace.created_at);
        }
    }

    fn add_intent(&mut self, capability: CapabilityId, text: &str, at: i64) {
        let fresh = IntentCount { count: 0, first_at: at, last_at: at };
        let intent = self.changes.intents.entry((capability, text.to_owned())).or_insert(fresh);
        intent.count += 1;
        intent.first_at = intent.first_at.min(at);
        intent.last_at = intent.last_at.max(at);
    }

    /// Learns what a trace shows beside its capability: edges, call counts and results of tools.
    fn learn_surroundings(&mut self, trace: NewTrace) {
        self.follow(&trace);
        if trace.cached {
            return;
        }
        self.contain(&trace);
        let NewTrace { principal, lesson, .. } = trace;
        for (from, to, kind) in lesson.edges {
            self.add_edge(&principal, from, kind, to);
        }
        for (tool, uses) in lesson.call_counts {
            self.changes.tool_uses.entry((principal.clone(), tool)).or_default().add(uses);
        }
        for (tool, pattern, counts) in lesson.argument_patterns {
            let key = (principal.clone(), tool, pattern);
            self.changes.argument_patterns.entry(key).or_default().add(counts);
        }
        for (tool, digest, shape) in lesson.observed_shapes {
            let key = (principal.clone(), tool, digest);
            let before = self.state.observed.remove(&key).unwrap_or_default();
            self.changes.observed.entry(key).or_insert(before).merge(&shape);
        }
    }

    /// Adds an edge from the previous trace of the session.
    fn follow(&mut self, trace: &NewTrace) {
        if trace.is_nested {
            return;
        }
        let present = PreviousTrace {
            capability: trace.capability.clone(),
            created_at: trace.created_at,
            last_tool: trace.last_tool.clone(),
            calls: trace.lesson.calls.clone(),
        };
        let session = (trace.principal.clone(), trace.session.clone());
        let Some(previous) = self.state.sessions.insert(session, present) else { return };
        if trace.created_at.saturating_sub(previous.created_at) > FOLLOWS_MS {
            return;
        }
        if let (Some(from), Some(to)) = (&previous.capability, &trace.capability) {
            self.relate(&trace.principal, from, EdgeKind::Follows, to);
        }
        // The very same call again says nothing about what comes next.
        let is_new = |call: &CallDigest| !previous.calls.contains(call);
        let begins_anew = trace.lesson.calls.first().is_some_and(is_new);
        if let (Some(from), Some(to)) = (previous.last_tool, &trace.first_tool)
            && (from != *to || begins_anew)
        {
            self.add_edge(&trace.principal, from, EdgeKind::Follows, to.clone());
        }
    }

    /// Adds an edge from the calling to the called capability. The trace that is stored last adds it.
    fn contain(&mut self, trace: &NewTrace) {
        let Some(capability) = &trace.capability else { return };
        if let Some(outer) = &trace.caller {
            self.relate(&trace.principal, outer, EdgeKind::Contains, capability);
        }
        for inner in &trace.callees {
            self.relate(&trace.principal, capability, EdgeKind::Contains, inner);
        }
    }

    fn relate(&mut self, principal: &Principal, from: &CapabilityId, kind: EdgeKind, to: &CapabilityId) {
        self.add_edge(principal, from.as_str().to_owned(), kind, to.as_str().to_owned());
    }

    fn add_edge(&mut self, principal: &Principal, from: String, kind: EdgeKind, to: String) {
        *self.changes.edges.entry((principal.clone(), from, kind, to)).or_default() += 1;
    }
}

impl NewTrace {
    fn tells_intent(&self) -> bool {
        is_intent_evidence(self.status, self.cached, self.exploratory)
    }

    /// Whether the capability succeeded; `None` if the trace is no evidence of that.
    fn evidence(&self) -> Option<bool> {
        self.status.evidence().filter(|_| !self.cached)
    }
}

impl LearnedCapability {
    /// Learns from a trace and returns its priority.
    fn learn(&mut self, trace: &NewTrace) -> f64 {
        if !matches!(trace.status, TraceStatus::Blocked | TraceStatus::Cancelled | TraceStatus::Diverged) {
            self.statistics.usage_count += 1;
            self.statistics.last_used = self.statistics.last_used.max(Some(trace.created_at));
        }
        let Some(worked) = trace.evidence() else { return 0.0 };
        if worked {
            self.count_success(trace);
        } else {
            self.count_failure(trace);
        }
        if trace.tells_intent() {
            self.add_examples(&trace.lesson.parameter_values);
        }
        self.learn_path(trace, worked)
    }

    fn count_success(&mut self, trace: &NewTrace) {
        let statistics = &mut self.statistics;
        statistics.success_count += 1;
        learn_mean(&mut statistics.avg_duration_ms, trace.duration_ms as f64, statistics.success_count);
        statistics.failures_in_a_row = 0;
        self.failing_because = None;
        self.last_success_seq = trace.seq;
    }

    fn count_failure(&mut self, trace: &NewTrace) {
        let statistics = &mut self.statistics;
        statistics.failure_count += 1;
        statistics.failures_in_a_row += 1;
        if statistics.failures_in_a_row >= DEGRADING_FAILURES {
            self.failing_because = Some(reason(statistics.failures_in_a_row, trace.error.as_ref()));
        }
    }

    /// Whether this trace, which was just learned, is the failure that degrades the capability.
    fn was_degraded_by(&self, trace: &NewTrace) -> bool {
        trace.evidence() == Some(false) && self.statistics.failures_in_a_row == DEGRADING_FAILURES
    }

    /// Learns from the path of the trace, and returns how surprising it was.
    fn learn_path(&mut self, trace: &NewTrace, worked: bool) -> f64 {
        let (lesson, duration) = (&trace.lesson, trace.duration_ms as f64);
        if !trace.is_own_procedure {
            // The nodes are those of a merged procedure, which has another structure.
            0.0
        } else {
            self.learning.learn_run(&lesson.path, &lesson.decisions, worked, duration)
        }
    }

    fn add_examples(&mut self, values: &Map<String, Value>) {
        for (name, value) in values {
            let known = self.examples.entry(name.as_str()).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(known) = known
                && known.len() < MOST_EXAMPLES
                && !known.contains(value)
            {
                known.push(value.clone());
            }
        }
    }
}

fn reason(failures: u64, error: Option<&TraceFailure>) -> String {
    match error {
        Some(TraceFailure { message, .. }) => {
            let message: String = message.chars().take(LONGEST_REASON).collect();
            format!("{failures} failures in a row: {message}")
        }
        None => format!("{failures} failures in a row"),
    }
}

#[cfg(test)]
mod tests;
