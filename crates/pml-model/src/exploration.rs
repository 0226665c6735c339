//! Explored paths: how much what traces show of them counts.
//!
//! A path that is explored is run dry, so it proves less than a run. It counts towards nothing but the choice among
//! paths: how exploration orders them, and which of them becomes a capability to be suggested.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::capability::weighted_reliability;
pub use crate::explored_path::{ExploredPath, MisleadingCause, PathOutcome};
use crate::id::CapabilityId;
use crate::structure::NodeId;
use crate::trace::{ErrorType, TaskResult, TraceBody, TraceFailure, TraceStatus};
use crate::{Digest, ErrorCode};

/// Least share of real calls of a trace that counts for its path: below it, mostly made-up values were tried.
pub const LEAST_REAL: f64 = 0.7;
/// Weight of viable explorations after which a path becomes a capability. One shows that the values at hand fit, two
/// may be one client that asks again; three of real calls, or four with some made up, are a habit.
pub const PROMOTING_WEIGHT: f64 = 3.0;
/// Least share of common words of two intents that are similar.
const SIMILAR: f64 = 0.5;
/// Largest difference between a sum of weights and a threshold that it reaches: weights such as 5/6 are not exact.
const ROUNDING: f64 = 1e-9;

impl TraceBody {
    /// How much an explored trace that returned counts, from 0 to 1: the mean weight of its calls, and nothing where
    /// too few of them were real.
    pub fn viable_weight(&self) -> f64 {
        let calls = || self.task_results.iter().filter(|task| task.call > 0);
        if calls().count() == 0 || self.share_of_mocks() > 1.0 - LEAST_REAL + ROUNDING {
            return 0.0;
        }
        calls().map(TaskResult::training_weight).sum::<f64>() / calls().count() as f64
    }

    /// How much an explored trace that failed counts against its path, 0 or 1. Only a real call with real arguments
    /// says something of the path, and only if it refused what it was wired to: what does not exist or cannot be
    /// reached now may be there for other values or later.
    pub fn failed_weight(&self, tainted: &BTreeSet<NodeId>) -> f64 {
        let failed = self.task_results.iter().find(|task| task.call > 0 && task.error.is_some());
        let counts = failed.is_some_and(|task| {
            let kind = task.error.as_ref().map(|error| error.error_type);
            let is_real = !task.mocked && task.node_id.is_none_or(|node| !tainted.contains(&node));
            is_real && matches!(kind, Some(ErrorType::Validation | ErrorType::Internal | ErrorType::Unknown))
        });
        if counts { 1.0 } else { 0.0 }
    }
}

/// How a path was tried when it was explored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriedCalls {
    /// The calls that were not made.
    pub mocked: BTreeSet<NodeId>,
    /// The calls whose arguments depended on made-up values.
    pub tainted: BTreeSet<NodeId>,
}

/// What the run of a chosen path shows: it worked, it failed and exploring it misled, or neither.
pub fn judge_chosen(
    status: TraceStatus,
    error: Option<&TraceFailure>,
    tasks: &[TaskResult],
    tried: &TriedCalls,
) -> (PathOutcome, Option<MisleadingCause>) {
    let code = error.and_then(|error| ErrorCode::parse(&error.code));
    if code == Some(ErrorCode::ToolChanged) {
        return (PathOutcome::Misleading, Some(MisleadingCause::ToolChange));
    }
    let named = error.and_then(|error| NodeId::try_from(error.node_id.clone()?).ok());
    let failing = named.or_else(|| tasks.iter().find(|task| task.error.is_some())?.node_id);
    let made_up = failing.is_some_and(|node| tried.mocked.contains(&node) || tried.tainted.contains(&node));
    // Arguments that a tool refuses are the caller's fault, unless they came from a call that was made up before.
    let refused = code == Some(ErrorCode::InvalidArguments)
        && failing.is_some_and(|node| tried.tainted.contains(&node));
    match status.evidence() {
        Some(true) => (PathOutcome::Worked, None),
        Some(false) if made_up => (PathOutcome::Misleading, Some(MisleadingCause::Mock)),
        Some(false) => (PathOutcome::Misleading, Some(MisleadingCause::Tool)),
        None if refused => (PathOutcome::Misleading, Some(MisleadingCause::Mock)),
        None => (PathOutcome::Undecided, None),
    }
}

/// What is known of explored paths, by what traces show of them, oldest first.
#[derive(Debug, Clone, Default)]
pub struct PathHistory {
    seen: Vec<ExploredPath>,
}

/// What is known of one path for one kind of intent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PathEvidence {
    /// Weight of the explorations in which it returned.
    pub viable: f64,
    /// Weight of those in which it failed.
    pub failed: f64,
    /// Runs that succeeded.
    pub worked: u64,
    /// Runs that failed.
    pub misled: u64,
    /// Explorations in which it was viable, but another path was chosen and worked.
    pub passed_over: u64,
    /// The latest failure of a run, unless a later run succeeded; also with earlier definitions of its tools.
    pub misleading: Option<MisleadingRun>,
}

/// A run of a viable path that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MisleadingRun {
    /// Why exploring misled.
    pub cause: MisleadingCause,
    /// The failure, in the words of the tool.
    pub message: String,
    /// Whether the tools have had other definitions since then.
    pub is_outdated: bool,
}

impl PathHistory {
    /// The history of these paths, oldest first.
    pub fn new(seen: Vec<ExploredPath>) -> PathHistory {
        PathHistory { seen }
    }

    /// Whether anything speaks for or against a path.
    pub fn is_telling(&self) -> bool {
        self.seen.iter().any(|path| match path.outcome {
            PathOutcome::Misleading | PathOutcome::Worked => true,
            PathOutcome::Failed => path.weight > 0.0,
            PathOutcome::Viable | PathOutcome::Undecided => false,
        })
    }

    /// What is known of a path for intents that are similar to this one.
    pub fn evidence(&self, procedure: &CapabilityId, definitions: &Digest, intent: &str) -> PathEvidence {
        let mut evidence = PathEvidence::default();
        let similar =
            |path: &&ExploredPath| path.procedure == *procedure && is_similar(&path.masked_intent, intent);
        for path in self.seen.iter().filter(similar) {
            let is_current = path.definitions == *definitions;
            evidence.add(path, is_current);
            let passed_over = is_current && path.outcome == PathOutcome::Viable && self.chose_another(path);
            evidence.passed_over += u64::from(passed_over);
        }
        evidence
    }

    /// Whether another path of the same exploration was chosen and worked.
    fn chose_another(&self, path: &ExploredPath) -> bool {
        self.seen.iter().any(|other| {
            other.outcome == PathOutcome::Worked
                && other.exploration_id == path.exploration_id
                && other.procedure != path.procedure
        })
    }

    /// Adds what a further trace shows.
    pub fn add(&mut self, path: Option<ExploredPath>) {
        self.seen.extend(path);
    }

    /// Whether a path is to become a capability: it was viable often enough for exactly this kind of intent, and nothing
    /// speaks against it.
    pub fn is_due(&self, procedure: &CapabilityId, definitions: &Digest, intent: &str) -> bool {
        let evidence = self.evidence(procedure, definitions, intent);
        if evidence.failed > 0.0 || evidence.misled > 0 {
            return false;
        }
        let mut weights: HashMap<&str, f64> = HashMap::new();
        let viable = self.seen.iter().filter(|path| {
            path.outcome == PathOutcome::Viable
                && path.procedure == *procedure
                && path.definitions == *definitions
                && path.masked_intent == intent
        });
        for path in viable {
            let weight = weights.entry(path.exploration_id.as_str()).or_default();
            *weight = weight.max(path.weight);
        }
        weights.values().sum::<f64>() >= PROMOTING_WEIGHT - ROUNDING
    }
}

impl PathEvidence {
    fn add(&mut self, path: &ExploredPath, is_current: bool) {
        match path.outcome {
            PathOutcome::Viable if is_current => self.viable += path.weight,
            PathOutcome::Failed if is_current => self.failed += path.weight,
            PathOutcome::Worked => {
                self.worked += u64::from(is_current);
                self.misleading = None;
            }
            PathOutcome::Misleading => {
                self.misled += u64::from(is_current);
                self.misleading = path.cause.map(|cause| MisleadingRun {
                    cause,
                    message: path.message.clone().unwrap_or_default(),
                    is_outdated: !is_current,
                });
            }
            PathOutcome::Viable | PathOutcome::Failed | PathOutcome::Undecided => {}
        }
    }

    /// Factor from 0 to 1 for the rank of the path. Runs and explorations count apart, so that any number of
    /// explorations cannot outweigh a run that failed.
    pub fn reliability(&self) -> f64 {
        let runs = weighted_reliability(self.worked as f64, (self.worked + self.misled) as f64);
        runs * weighted_reliability(self.viable, self.viable + self.failed)
    }

    /// Whether the path comes first: it was chosen and worked more often than another was chosen instead of it.
    pub fn is_preferred(&self) -> bool {
        self.misleading.is_none() && self.worked > self.passed_over
    }

    /// Whether the path comes after those that are not known to mislead.
    pub fn is_misleading(&self) -> bool {
        self.misleading.as_ref().is_some_and(|run| !run.is_outdated)
    }
}

/// Whether two masked intents are about the same: word for word, or with most of their words in common.
fn is_similar(one: &str, other: &str) -> bool {
    let words = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 2);
        words.map(str::to_lowercase).collect()
    };
    if one == other {
        return true;
    }
    let (one, other) = (words(one), words(other));
    let common = one.intersection(&other).count() as f64;
    common > 0.0 && common / one.union(&other).count() as f64 >= SIMILAR
}

#[cfg(test)]
mod tests;
