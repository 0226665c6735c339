//! Predicts the next tool, given an intent and the tools used so far.
//!
//! Two things speak for a tool: that it is part of what serves the intent at all, and that it came next when similar
//! intents had got as far. When no similar intent had, the general successors of the last tool are used instead. Where
//! schemas are known, [`paths`] tells which of the tools that nothing was observed of can be called with what is at hand.

pub mod capabilities;
pub mod paths;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::linear::sigmoid;
use crate::procedure::{ProcedureBeliefs, ProcedureMemory, ProcedureRequest};

/// Prediction of the next step.
#[derive(Debug, Clone, PartialEq)]
pub struct NextPrediction {
    /// Candidates, likeliest first.
    pub tools: Vec<NextToolCandidate>,
    /// Probability that the procedure is complete.
    pub done_probability: f32,
}

/// A tool that may come next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NextToolCandidate {
    /// Index of the tool in the catalogue.
    pub tool: u32,
    /// Probability that it is the next one. All confidences and `done_probability` sum to 1.
    pub confidence: f32,
    /// The strongest reason for it.
    pub reason: NextReason,
}

/// Reason why a tool may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextReason {
    /// It came next when similar intents had got as far; `trace` is the nearest of them.
    SimilarRequests {
        /// Index of the trace.
        trace: usize,
    },
    /// It came after the last tool this often, whatever the intent.
    FollowsOften {
        /// Number of occurrences.
        times: u32,
    },
    /// The request asks for it.
    MatchesRequest,
    /// It can be called with what is at hand, and serves the request or leads to what does.
    Path {
        /// Index of the used tool whose result it takes.
        from: u32,
        /// Index of the tool that serves the request; its own where it does so itself.
        towards: u32,
    },
}

/// Weight of the log probability that a tool serves the intent. This and the next weight were fitted on three sets of
/// requests together; each alone gives nearly the same.
const SERVES: f32 = 0.9;
/// Weight of the share of traces in which the tool came next.
const CONTINUES: f32 = 4.0;

/// Vote weight of the general successors; the votes of all similar intents sum to about 1.
const IN_GENERAL: f32 = 0.1;

/// Weight of the share of similar intents that ended here.
const END: f32 = 3.6;
/// Weight of the summed probability of the serving tools that are left.
const LEFT: f32 = -2.0;
/// Constant term of the log-odds of the end.
const END_OFFSET: f32 = 0.5;

/// Minimum share of successors for it to be named as the reason.
const REASON_ENOUGH: f32 = 0.25;

/// Number of tools that serve the intent which are considered in addition to earlier successors.
const CONSIDERED: usize = 20;

/// Predicts what comes after `used`, the tools used so far in order, for `request`.
///
/// # Panics
/// If a match of the request is a tool that the memory was not created with.
pub fn predict_next_tools(
    memory: &ProcedureMemory,
    request: &ProcedureRequest<'_>,
    used: &[u32],
) -> NextPrediction {
    let recall = ProcedureBeliefs::new(memory, request);
    let continued = Continuations::after(used, &recall);
    let already: HashSet<u32> = used.iter().copied().collect();
    let mut candidates: Vec<u32> = recall.tools().iter().copied().take(CONSIDERED).collect();
    candidates.extend(continued.tools());
    candidates.sort_unstable();
    candidates.dedup();
    let left: f32 = candidates
        .iter()
        .filter(|tool| !already.contains(tool))
        .map(|tool| recall.tool_probability(*tool))
        .sum();
    // Before the first step the procedure is never complete if any tool is a candidate.
    let nothing_more = if candidates.is_empty() {
        1.0
    } else if used.is_empty() {
        0.0
    } else {
        sigmoid(END * continued.share(None) + LEFT * left + END_OFFSET)
    };
    let value = |tool: u32| {
        let again = if already.contains(&tool) { memory.repeat_ratio(tool).ln() } else { 0.0 };
        SERVES * recall.tool_probability(tool).ln() + CONTINUES * continued.share(Some(tool)) + again
    };
    let valued: Vec<(u32, f32)> = candidates.into_iter().map(|tool| (tool, value(tool))).collect();
    let largest = valued.iter().map(|(_, value)| *value).fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = valued.iter().map(|(_, value)| (value - largest).exp()).sum();
    let mut tools: Vec<NextToolCandidate> = (valued.into_iter())
        .map(|(tool, value)| NextToolCandidate {
            tool,
            confidence: (1.0 - nothing_more) * (value - largest).exp() / sum,
            reason: continued.reason(tool),
        })
        .collect();
    tools.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    NextPrediction { tools, done_probability: nothing_more }
}

/// What came next when earlier intents had got as far; `None` is the end.
#[derive(Default)]
struct Continuations {
    similar: BTreeMap<Option<u32>, ContinuationVotes>,
    /// Sum of all votes.
    votes: f32,
    /// General successors with counts, and their sum.
    general: BTreeMap<Option<u32>, u32>,
    times: u32,
}

#[derive(Default)]
struct ContinuationVotes {
    weight: f32,
    nearest: usize,
}

impl Continuations {
    fn after(used: &[u32], recall: &ProcedureBeliefs<'_>) -> Continuations {
        let general = recall.memory.successors(used.last().copied()).cloned().unwrap_or_default();
        let mut continued =
            Continuations { times: general.values().sum(), general, ..Continuations::default() };
        for (trace, weight) in recall.voting_traces() {
            let calls = recall.memory.calls_of(trace);
            match used.last() {
                None => continued.vote(calls.first().copied(), trace, weight),
                Some(last) => {
                    // Where a tool is called again and again, only the place that is as far counts.
                    let places = (0..calls.len()).filter(|at| calls[*at] == *last);
                    let places = places.map(|at| (at, likeness(&calls[..=at], used)));
                    if let Some((at, likeness)) = places.max_by(|one, other| one.1.total_cmp(&other.1)) {
                        continued.vote(calls.get(at + 1).copied(), trace, weight * likeness);
                    }
                }
            }
        }
        continued
    }

    fn vote(&mut self, next: Option<u32>, trace: usize, weight: f32) {
        self.votes += weight;
        self.similar.entry(next).or_insert(ContinuationVotes { weight: 0.0, nearest: trace }).weight +=
            weight;
    }

    fn tools(&self) -> impl Iterator<Item = u32> {
        self.similar.keys().chain(self.general.keys()).filter_map(|tool| *tool)
    }

    /// Share of `next` among all successors.
    fn share(&self, next: Option<u32>) -> f32 {
        let similar = self.similar.get(&next).map_or(0.0, |votes| votes.weight);
        (similar + self.general_weight(next)) / (self.votes + IN_GENERAL)
    }

    fn general_weight(&self, next: Option<u32>) -> f32 {
        let times = self.general.get(&next).copied().unwrap_or(0);
        // One is added, so that a single observation is not taken for a rule.
        IN_GENERAL * times as f32 / (self.times as f32 + 1.0)
    }

    fn reason(&self, tool: u32) -> NextReason {
        let similar = self.similar.get(&Some(tool)).filter(|votes| votes.weight > 0.0);
        let times = self.general.get(&Some(tool)).copied().unwrap_or(0);
        match similar {
            Some(votes) if votes.weight / (self.votes + IN_GENERAL) >= REASON_ENOUGH => {
                NextReason::SimilarRequests { trace: votes.nearest }
            }
            _ if times as f32 / (self.times as f32 + 1.0) >= REASON_ENOUGH => {
                NextReason::FollowsOften { times }
            }
            _ => NextReason::MatchesRequest,
        }
    }
}

/// Jaccard similarity of two sequences of calls, whatever their order. Repeated calls count as often as they are there, so
/// that a run is compared with where another had got as far.
fn likeness(a: &[u32], b: &[u32]) -> f32 {
    let times = |calls: &[u32], tool: u32| calls.iter().filter(|call| **call == tool).count();
    let tools: BTreeSet<u32> = a.iter().chain(b).copied().collect();
    let (mut both, mut either) = (0, 0);
    for tool in tools {
        let (one, other) = (times(a, tool), times(b, tool));
        both += one.min(other);
        either += one.max(other);
    }
    both as f32 / either as f32
}
