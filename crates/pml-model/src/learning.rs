//! What is learned from traces: a fold over them, in the order in which they were stored.
//!
//! [`fold`] takes what is known and the traces that are new, and gives what changes. It reads no clock and no store,
//! and every number depends on the traces and their order alone: traces that come in several batches give the same
//! numbers as all of them at once, and learning everything anew gives the same numbers again.

mod lesson;

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

pub use crate::paths::{DecisionStats, Learning, OutcomeStats, PathStats};
pub use lesson::{CallCounts, Lesson, tells_intent};

use crate::capability::{DEGRADING_FAILURES, Statistics};
use crate::observed::Shape;
use crate::trace::{EdgeKind, Failed, Status};
use crate::{CapabilityId, Digest, Principal};

/// 30 min: a run that starts later in the same session no longer follows the one before.
const FOLLOWS_MS: i64 = 30 * 60 * 1000;
/// How many different values of a parameter are kept as examples.
const MOST_EXAMPLES: usize = 5;
/// How much of an error a reason quotes, in characters.
const LONGEST_REASON: usize = 200;
/// How much one duration counts in the mean.
const RATE: f64 = 0.1;

/// A trace that was not learned from yet.
#[derive(Debug, Clone)]
pub struct NewTrace {
    /// Its place in the order of learning.
    pub seq: i64,
    /// Whose it is.
    pub principal: Principal,
    /// The session it was run in.
    pub session: String,
    /// The capability it counts for, where there is one.
    pub capability: Option<CapabilityId>,
    /// The capability is the very one that was run, not one that it was merged into.
    pub own: bool,
    /// What it was run for.
    pub intent: String,
    /// How it ended.
    pub status: Status,
    /// Why it has no result.
    pub error: Option<Failed>,
    /// How long it took.
    pub duration_ms: i64,
    /// When it ended.
    pub created_at: i64,
    /// It was called within another run.
    pub is_part: bool,
    /// The answer came from a cache.
    pub cached: bool,
    /// It was run to find something out.
    pub exploratory: bool,
    /// Its intent counts for its capability.
    pub tells: bool,
    /// The tool it called first.
    pub first_tool: Option<String>,
    /// The tool it called last.
    pub last_tool: Option<String>,
    /// The capability that called it, where the trace of that one was stored before.
    pub called_by: Option<CapabilityId>,
    /// The capabilities it called, as far as their traces were stored before.
    pub called: Vec<CapabilityId>,
    /// What it teaches.
    pub lesson: Lesson,
}

/// What is known before traces are folded in. Only what they touch has to be there; what is not there is new.
#[derive(Debug, Clone, Default)]
pub struct LearningState {
    /// The capabilities of the traces. A trace of a capability that is missing here counts for none.
    pub capabilities: HashMap<CapabilityId, LearnedCapability>,
    /// The last trace of each session, by principal and session.
    pub sessions: HashMap<(Principal, String), PreviousTrace>,
    /// What tools were seen to return.
    pub observed: HashMap<ObservedTool, Shape>,
}

/// A tool with one of its definitions: whose, `server:tool` and the digest of the definition.
pub type ObservedTool = (Principal, String, Digest);

/// What has been learned of a capability.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LearnedCapability {
    /// How it does.
    pub statistics: Statistics,
    /// Why it is taken for broken.
    pub failing: Option<String>,
    /// The last trace in which it worked.
    pub worked_seq: i64,
    /// Its paths and decisions.
    pub learning: Learning,
    /// Values its parameters were given, by parameter.
    pub examples: Map<String, Value>,
}

/// The trace that came last in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousTrace {
    /// The capability it counts for.
    pub capability: Option<CapabilityId>,
    /// When it ended.
    pub created_at: i64,
    /// The tool it called last.
    pub last_tool: Option<String>,
}

/// What traces change.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LearningChanges {
    /// How surprising each trace was, from 0 to 1, in the order of the traces.
    pub priorities: Vec<f64>,
    /// What is known now of the capabilities that were learned from.
    pub capabilities: BTreeMap<CapabilityId, LearnedCapability>,
    /// What capabilities were run for, to be added to what is known.
    pub intents: BTreeMap<(CapabilityId, String), IntentCount>,
    /// How much oftener one thing came after another: whose, from, kind, to.
    pub edges: BTreeMap<(Principal, String, EdgeKind, String), u64>,
    /// How much oftener tools were called, by principal and tool.
    pub tool_uses: BTreeMap<(Principal, String), CallCounts>,
    /// What is known now of what tools return.
    pub observed: HashMap<ObservedTool, Shape>,
    /// The capabilities that are taken for broken because of one of the traces.
    pub degraded: Vec<Degraded>,
}

/// How often a capability worked for an intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntentCount {
    /// How often.
    pub count: u64,
    /// When it first did.
    pub first_at: i64,
    /// When it last did.
    pub last_at: i64,
}

/// A capability that failed so often that it is taken for broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Degraded {
    /// The place of the trace with the decisive failure.
    pub seq: i64,
    /// Whose capability it is.
    pub principal: Principal,
    /// Which.
    pub capability: CapabilityId,
}

/// Learns from traces, which are given in the order in which they were stored.
pub fn fold(state: LearningState, traces: Vec<NewTrace>) -> LearningChanges {
    let mut fold = Fold { state, changes: LearningChanges::default() };
    for trace in traces {
        fold.learn_capability(&trace);
        fold.learn_surroundings(trace);
    }
    fold.changes
}

/// Learns from traces what they tell of their capabilities, and nothing else.
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
        let known = trace.capability.as_ref().filter(|id| self.state.capabilities.contains_key(*id));
        let Some(id) = known else {
            // Nothing is known of what has no capability, so all of it is new.
            let tells = !trace.cached && trace.status.evidence().is_some();
            self.changes.priorities.push(if tells { 1.0 } else { 0.0 });
            return;
        };
        let before = &self.state.capabilities[id];
        let capability = self.changes.capabilities.entry(id.clone()).or_insert_with(|| before.clone());
        let priority = capability.learn(trace);
        if capability.was_degraded_by(trace) {
            let (seq, principal) = (trace.seq, trace.principal.clone());
            self.changes.degraded.push(Degraded { seq, principal, capability: id.clone() });
        }
        self.changes.priorities.push(priority);
        if trace.tells && !trace.intent.is_empty() && trace.tells_intent() {
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

    /// What a trace tells beside its capability: what came after what, how tools do and what they return.
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
        for (tool, uses) in lesson.uses {
            self.changes.tool_uses.entry((principal.clone(), tool)).or_default().add(uses);
        }
        for (tool, digest, shape) in lesson.seen {
            let key = (principal.clone(), tool, digest);
            let before = self.state.observed.remove(&key).unwrap_or_default();
            self.changes.observed.entry(key).or_insert(before).merge(&shape);
        }
    }

    /// Counts that this was asked for after what came before it in its session.
    fn follow(&mut self, trace: &NewTrace) {
        if trace.is_part {
            return;
        }
        let present = PreviousTrace {
            capability: trace.capability.clone(),
            created_at: trace.created_at,
            last_tool: trace.last_tool.clone(),
        };
        let session = (trace.principal.clone(), trace.session.clone());
        let Some(previous) = self.state.sessions.insert(session, present) else { return };
        if trace.created_at.saturating_sub(previous.created_at) > FOLLOWS_MS {
            return;
        }
        if let (Some(from), Some(to)) = (&previous.capability, &trace.capability) {
            self.relate(&trace.principal, from, EdgeKind::Follows, to);
        }
        if let (Some(from), Some(to)) = (previous.last_tool, &trace.first_tool) {
            self.add_edge(&trace.principal, from, EdgeKind::Follows, to.clone());
        }
    }

    /// Counts that a capability was called within another: by whichever of the two traces is stored last.
    fn contain(&mut self, trace: &NewTrace) {
        let Some(capability) = &trace.capability else { return };
        if let Some(outer) = &trace.called_by {
            self.relate(&trace.principal, outer, EdgeKind::Contains, capability);
        }
        for inner in &trace.called {
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
        tells_intent(self.status, self.cached, self.exploratory)
    }

    /// Whether its capability worked; nothing where it says nothing of that.
    fn evidence(&self) -> Option<bool> {
        self.status.evidence().filter(|_| !self.cached)
    }
}

impl LearnedCapability {
    /// Takes in a trace; gives its priority.
    fn learn(&mut self, trace: &NewTrace) -> f64 {
        if !matches!(trace.status, Status::Blocked | Status::Cancelled | Status::Diverged) {
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
            self.add_examples(&trace.lesson.values);
        }
        self.learn_path(trace, worked)
    }

    fn count_success(&mut self, trace: &NewTrace) {
        let (statistics, duration) = (&mut self.statistics, trace.duration_ms as f64);
        if statistics.success_count == 0 {
            statistics.avg_duration_ms = duration;
        } else {
            statistics.avg_duration_ms += RATE * (duration - statistics.avg_duration_ms);
        }
        statistics.success_count += 1;
        statistics.failures_in_a_row = 0;
        self.failing = None;
        self.worked_seq = trace.seq;
    }

    fn count_failure(&mut self, trace: &NewTrace) {
        let statistics = &mut self.statistics;
        statistics.failure_count += 1;
        statistics.failures_in_a_row += 1;
        if statistics.failures_in_a_row >= DEGRADING_FAILURES {
            self.failing = Some(reason(statistics.failures_in_a_row, trace.error.as_ref()));
        }
    }

    /// Whether the trace that was just learned from is the failure that makes it degraded.
    fn was_degraded_by(&self, trace: &NewTrace) -> bool {
        trace.evidence() == Some(false) && self.statistics.failures_in_a_row == DEGRADING_FAILURES
    }

    /// Learns the way it went, and says how surprising that was.
    fn learn_path(&mut self, trace: &NewTrace, worked: bool) -> f64 {
        let (lesson, duration) = (&trace.lesson, trace.duration_ms as f64);
        if !trace.own {
            // The nodes are those of another structure.
            0.0
        } else if trace.exploratory {
            self.learning.priority(&lesson.path, worked, duration)
        } else {
            self.learning.learn(&lesson.path, &lesson.decisions, worked, duration)
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

fn reason(failures: u64, error: Option<&Failed>) -> String {
    match error {
        Some(Failed { message, .. }) => {
            let message: String = message.chars().take(LONGEST_REASON).collect();
            format!("{failures} failures in a row: {message}")
        }
        None => format!("{failures} failures in a row"),
    }
}

#[cfg(test)]
mod tests;
