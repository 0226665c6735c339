//! Which tool comes next, given an intent and the tools that were used so far.
//!
//! Two things speak for a tool: that it is part of what serves the intent at all, and that it came next
//! when similar intents had got as far. Where no similar one had, what follows the last tool in general
//! takes their place.

use std::collections::{BTreeMap, HashSet};

use crate::linear::sigmoid;
use crate::procedure::{Memory, Recall, Request};

/// What will come next.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Likeliest first.
    pub tools: Vec<Next>,
    /// How likely it is that all is done.
    pub nothing_more: f32,
}

/// A tool that may come next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Next {
    /// Its number.
    pub tool: u32,
    /// How likely it is the next one. With those of all others and `nothing_more` it sums up to 1.
    pub confidence: f32,
    /// What speaks for it most.
    pub reason: Reason,
}

/// Why a tool may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It came next when similar intents had got as far; `trace` is the nearest of them.
    SimilarRequests {
        /// Its number.
        trace: usize,
    },
    /// It came after the last tool so many times, whatever the intent.
    FollowsOften {
        /// How often.
        times: u32,
    },
    /// The request asks for it.
    MatchesRequest,
}

/// How much it counts that a tool serves the intent, that it came next before, and that it was used
/// already. Fitted on three sets of requests together; each alone gives nearly the same.
const SERVES: f32 = 0.9;
const CONTINUES: f32 = 4.0;
const USED: f32 = -2.0;

/// What follows in general counts as much as this much weight of similar intents; all of them have about 1.
const IN_GENERAL: f32 = 0.1;

/// What speaks for the end: that similar intents ended here, and that few tools are left that serve the
/// intent.
const END: f32 = 3.6;
const LEFT: f32 = -2.0;
const END_OFFSET: f32 = 0.5;

/// Which share of what came next a tool has to have for that to be named as the reason.
const REASON_ENOUGH: f32 = 0.25;

/// How many tools that serve the intent are considered beside those that came next before.
const CONSIDERED: usize = 20;

/// What comes after `used`, the tools used so far in that order, for `request`.
///
/// # Panics
/// If a match of the request is a tool that the memory was not made for.
pub fn next(memory: &Memory, request: &Request<'_>, used: &[u32]) -> Prediction {
    let recall = Recall::new(memory, request);
    let continued = Continued::after(used, &recall);
    let already: HashSet<u32> = used.iter().copied().collect();
    let mut candidates: Vec<u32> = recall.tools().iter().copied().take(CONSIDERED).collect();
    candidates.extend(continued.tools());
    candidates.sort_unstable();
    candidates.dedup();
    let left: f32 =
        candidates.iter().filter(|tool| !already.contains(tool)).map(|tool| recall.chance(*tool)).sum();
    // Before the first step there is something to do wherever a tool is known.
    let nothing_more = if candidates.is_empty() {
        1.0
    } else if used.is_empty() {
        0.0
    } else {
        sigmoid(END * continued.share(None) + LEFT * left + END_OFFSET)
    };
    let value = |tool: u32| {
        let again = if already.contains(&tool) { USED } else { 0.0 };
        SERVES * recall.chance(tool).ln() + CONTINUES * continued.share(Some(tool)) + again
    };
    let valued: Vec<(u32, f32)> = candidates.into_iter().map(|tool| (tool, value(tool))).collect();
    let largest = valued.iter().map(|(_, value)| *value).fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = valued.iter().map(|(_, value)| (value - largest).exp()).sum();
    let mut tools: Vec<Next> = (valued.into_iter())
        .map(|(tool, value)| Next {
            tool,
            confidence: (1.0 - nothing_more) * (value - largest).exp() / sum,
            reason: continued.reason(tool),
        })
        .collect();
    tools.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    Prediction { tools, nothing_more }
}

/// What came next when earlier intents had got as far; `None` is the end.
#[derive(Default)]
struct Continued {
    similar: BTreeMap<Option<u32>, Votes>,
    /// All votes together.
    votes: f32,
    /// How often in general, and all of those together.
    general: BTreeMap<Option<u32>, u32>,
    times: u32,
}

#[derive(Default)]
struct Votes {
    weight: f32,
    nearest: usize,
}

impl Continued {
    fn after(used: &[u32], recall: &Recall<'_>) -> Continued {
        let general = recall.memory.followers(used.last().copied()).cloned().unwrap_or_default();
        let mut continued = Continued { times: general.values().sum(), general, ..Continued::default() };
        for (trace, weight) in recall.voices() {
            let calls = recall.memory.calls(trace);
            match used.last() {
                None => continued.vote(calls.first().copied(), trace, weight),
                Some(last) => {
                    for at in (0..calls.len()).filter(|at| calls[*at] == *last) {
                        let likeness = likeness(&calls[..=at], used);
                        continued.vote(calls.get(at + 1).copied(), trace, weight * likeness);
                    }
                }
            }
        }
        continued
    }

    fn vote(&mut self, next: Option<u32>, trace: usize, weight: f32) {
        self.votes += weight;
        self.similar.entry(next).or_insert(Votes { weight: 0.0, nearest: trace }).weight += weight;
    }

    fn tools(&self) -> impl Iterator<Item = u32> {
        self.similar.keys().chain(self.general.keys()).filter_map(|tool| *tool)
    }

    /// Which share of all that came next this is.
    fn share(&self, next: Option<u32>) -> f32 {
        let similar = self.similar.get(&next).map_or(0.0, |votes| votes.weight);
        (similar + self.general_weight(next)) / (self.votes + IN_GENERAL)
    }

    fn general_weight(&self, next: Option<u32>) -> f32 {
        let times = self.general.get(&next).copied().unwrap_or(0);
        // One more, so that what was seen once is not taken for a rule.
        IN_GENERAL * times as f32 / (self.times as f32 + 1.0)
    }

    fn reason(&self, tool: u32) -> Reason {
        let similar = self.similar.get(&Some(tool)).filter(|votes| votes.weight > 0.0);
        let times = self.general.get(&Some(tool)).copied().unwrap_or(0);
        match similar {
            Some(votes) if votes.weight / (self.votes + IN_GENERAL) >= REASON_ENOUGH => {
                Reason::SimilarRequests { trace: votes.nearest }
            }
            _ if times as f32 / (self.times as f32 + 1.0) >= REASON_ENOUGH => Reason::FollowsOften { times },
            _ => Reason::MatchesRequest,
        }
    }
}

/// Which share of the tools of both are in both.
fn likeness(a: &[u32], b: &[u32]) -> f32 {
    let (a, b): (HashSet<u32>, HashSet<u32>) = (a.iter().copied().collect(), b.iter().copied().collect());
    a.intersection(&b).count() as f32 / a.union(&b).count() as f32
}
