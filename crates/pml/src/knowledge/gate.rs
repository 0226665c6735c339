//! Judges each learned part by the principal's own runs: whether what earlier ones taught helps with later ones.
//!
//! A part is on as long as there are too few runs to tell, because it helps on public data. With enough runs it stays on
//! only where it wins: where the gain on later runs is positive by a bootstrap interval. The gain of past intents is computed
//! by [`experience`](super::experience), that of what the ends of calls teach here.

use std::collections::HashMap;

use pml_model::Principal;
use pml_model::learning::{CallCounts, Lesson};
use pml_store::Store;
use serde::Serialize;
use utoipa::ToSchema;

use super::PrincipalKnowledge;
use crate::runtime::run_blocking;

/// The number of later runs from which on a part is judged.
pub(super) const LEAST_JUDGED: usize = 30;
/// The share of the runs that are learned from, as a fraction; the later ones are judged.
pub(super) const LEARNED_SHARE: (usize, usize) = (2, 3);
/// The number of samples of the bootstrap, and how many of them are beyond each end of the interval: one in twenty.
const SAMPLES: usize = 400;
const BEYOND: usize = SAMPLES / 20;

/// A part of what is learned that can be on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LearnedPart {
    /// Past intents raise the tools that served them.
    PastIntents,
    /// Past runs predict the next tool.
    NextStep,
    /// Tools that fail sink.
    Reliability,
    /// Tools that fail with a kind of value sink for intents that name one.
    ArgumentPatterns,
}

impl LearnedPart {
    /// Every part.
    pub const ALL: [LearnedPart; 4] = [
        LearnedPart::PastIntents,
        LearnedPart::NextStep,
        LearnedPart::Reliability,
        LearnedPart::ArgumentPatterns,
    ];

    /// Its name in words.
    pub fn name(self) -> &'static str {
        match self {
            LearnedPart::PastIntents => "past intents",
            LearnedPart::NextStep => "next step",
            LearnedPart::Reliability => "reliability",
            LearnedPart::ArgumentPatterns => "argument patterns",
        }
    }

    /// What its gain is measured in.
    pub fn measure(self) -> &'static str {
        match self {
            LearnedPart::PastIntents => "nDCG@5",
            LearnedPart::NextStep => "share of right first guesses",
            LearnedPart::Reliability | LearnedPart::ArgumentPatterns => "log-likelihood of a call's end",
        }
    }
}

/// What is known of the worth of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartState {
    /// There are too few runs to tell; the part is on.
    NotJudged,
    /// The part helps with later runs, and is on.
    Helps,
    /// The part does not help, and is off.
    Off,
}

/// The worth of a part on later runs.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PartVerdict {
    /// The part.
    pub part: LearnedPart,
    /// Whether it is on, and why.
    pub state: PartState,
    /// The number of later runs that it was judged on.
    pub judged: usize,
    /// The mean gain, in what the part is measured in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    /// The lower end of the interval that the gain is in with a probability of nine tenths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Its upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

impl PartVerdict {
    fn unjudged(part: LearnedPart, judged: usize) -> PartVerdict {
        PartVerdict { part, state: PartState::NotJudged, judged, gain: None, low: None, high: None }
    }

    /// The verdict on a part with these gains on later runs.
    pub(super) fn of(part: LearnedPart, gains: &[f64]) -> PartVerdict {
        if gains.len() < LEAST_JUDGED {
            return PartVerdict::unjudged(part, gains.len());
        }
        let [low, high] = bootstrap_interval(gains);
        let round = |number: f64| (number * 1e4).round() / 1e4;
        PartVerdict {
            part,
            state: if low > 0.0 { PartState::Helps } else { PartState::Off },
            judged: gains.len(),
            gain: Some(round(gains.iter().sum::<f64>() / gains.len() as f64)),
            low: Some(round(low)),
            high: Some(round(high)),
        }
    }
}

impl PrincipalKnowledge {
    /// Whether there are so many more intents than when the parts were judged that they are judged again; then they count
    /// as judged.
    pub(super) fn is_judging_due(&self, intents: usize) -> bool {
        let mut judged = self.judged.lock();
        let due = intents >= 3 * LEAST_JUDGED && has_grown(judged.0 as u64, intents as u64);
        if due {
            judged.0 = intents;
        }
        due
    }

    /// Judges what the ends of calls teach, where there are many more of them than the last time.
    pub(super) async fn judge_calls(
        &self,
        store: &Store,
        principal: &Principal,
    ) -> Result<(), pml_store::Error> {
        let calls = self.uses().values().map(|uses| uses.calls).sum();
        if !has_grown(self.judged.lock().1, calls) {
            return Ok(());
        }
        let lessons = store.latest_lessons(principal, MOST_LESSONS).await?;
        let (tools, patterns) = run_blocking(move || gains_of_counts(&lessons)).await;
        self.judged.lock().1 = calls;
        let mut gate = self.gate.write();
        gate.set(&PartVerdict::of(LearnedPart::Reliability, &tools));
        gate.set(&PartVerdict::of(LearnedPart::ArgumentPatterns, &patterns));
        Ok(())
    }
}

/// The share by which there must be more before a part is judged again, as a divisor.
const GROWTH: u64 = 8;
/// The number of latest runs whose calls are judged.
const MOST_LESSONS: u32 = 2_000;

fn has_grown(before: u64, now: u64) -> bool {
    now > before + before / GROWTH
}

/// The verdicts on all parts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gate {
    verdicts: [PartVerdict; LearnedPart::ALL.len()],
}

impl Default for Gate {
    fn default() -> Gate {
        Gate { verdicts: LearnedPart::ALL.map(|part| PartVerdict::unjudged(part, 0)) }
    }
}

impl Gate {
    pub(crate) fn is_on(&self, part: LearnedPart) -> bool {
        self.verdicts.iter().all(|verdict| verdict.part != part || verdict.state != PartState::Off)
    }

    pub(crate) fn verdicts(&self) -> &[PartVerdict] {
        &self.verdicts
    }

    pub(super) fn set(&mut self, verdict: &PartVerdict) {
        for known in self.verdicts.iter_mut().filter(|known| known.part == verdict.part) {
            known.clone_from(verdict);
        }
    }
}

/// The interval of the mean: the middle nine tenths of the means of random samples. The same gains give the same interval.
fn bootstrap_interval(gains: &[f64]) -> [f64; 2] {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut means: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            let sample = (0..gains.len()).map(|_| gains[(random() % gains.len() as u64) as usize]);
            sample.sum::<f64>() / gains.len() as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    [means[BEYOND], means[SAMPLES - 1 - BEYOND]]
}

/// The index from which on runs in order of time are judged.
pub(super) fn first_judged(runs: usize) -> usize {
    runs * LEARNED_SHARE.0 / LEARNED_SHARE.1
}

/// The gains of the reliability of tools and of patterns of arguments, for the later ones of these lessons, oldest first.
pub(super) fn gains_of_counts(lessons: &[Lesson]) -> (Vec<f64>, Vec<f64>) {
    let (earlier, later) = lessons.split_at(first_judged(lessons.len()));
    let (tools, all) = counts_of(earlier.iter().flat_map(|lesson| &lesson.call_counts));
    let patterns = || earlier.iter().flat_map(|lesson| &lesson.argument_patterns);
    let (of_tool, _) = counts_of(patterns().map(|(tool, _, counts)| (tool, counts)));
    let keyed: Vec<((&str, &str), &CallCounts)> =
        patterns().map(|(tool, pattern, counts)| ((tool.as_str(), pattern.as_str()), counts)).collect();
    let mut of_pattern: HashMap<(&str, &str), CallCounts> = HashMap::new();
    for (key, counts) in keyed {
        of_pattern.entry(key).or_default().add(*counts);
    }
    let usual = rate(all, expected_usually());
    let by_tool = later.iter().filter_map(|lesson| {
        let gains = lesson.call_counts.iter().map(|(tool, ends)| {
            let known = tools.get(tool.as_str()).copied().unwrap_or_default();
            (gain(*ends, rate(known, usual), usual), ends.calls)
        });
        mean_per_call(gains)
    });
    let by_pattern = later.iter().filter_map(|lesson| {
        let gains = lesson.argument_patterns.iter().map(|(tool, pattern, ends)| {
            let general = rate(of_tool.get(tool.as_str()).copied().unwrap_or_default(), expected_usually());
            let known = of_pattern.get(&(tool.as_str(), pattern.as_str())).copied().unwrap_or_default();
            (gain(*ends, rate(known, general), general), ends.calls)
        });
        mean_per_call(gains)
    });
    (by_tool.collect(), by_pattern.collect())
}

/// The counts of each tool, and of all together.
fn counts_of<'l>(
    counts: impl Iterator<Item = (&'l String, &'l CallCounts)>,
) -> (HashMap<&'l str, CallCounts>, CallCounts) {
    let (mut each, mut all) = (HashMap::<&str, CallCounts>::new(), CallCounts::default());
    for (tool, counts) in counts {
        each.entry(tool).or_default().add(*counts);
        all.add(*counts);
    }
    (each, all)
}

/// The success that is expected where nothing is known.
fn expected_usually() -> f64 {
    pml_model::capability::expected_success(0, 0)
}

/// The success rate after these counts, where `prior` weighs as much as two calls.
fn rate(counts: CallCounts, prior: f64) -> f64 {
    (counts.calls.saturating_sub(counts.failures) as f64 + 2.0 * prior) / (counts.calls as f64 + 2.0)
}

/// How much likelier one rate makes these ends than another, as a logarithm.
fn gain(ends: CallCounts, with: f64, without: f64) -> f64 {
    let likelihood = |rate: f64| {
        let rate = rate.clamp(0.01, 0.99);
        ends.calls.saturating_sub(ends.failures) as f64 * rate.ln() + ends.failures as f64 * (1.0 - rate).ln()
    };
    likelihood(with) - likelihood(without)
}

/// The mean gain of a call of a run; `None` if it made none.
fn mean_per_call(gains: impl Iterator<Item = (f64, u64)>) -> Option<f64> {
    let (sum, calls) = gains.fold((0.0, 0), |(sum, calls), (gain, more)| (sum + gain, calls + more));
    (calls > 0).then(|| sum / calls as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deterministic pseudo-random numbers.
    fn random(seed: u64) -> impl FnMut() -> u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        }
    }

    /// Runs of two tools with values of two kinds; `fails` tells which of them fail.
    fn lessons(count: u64, mut fails: impl FnMut(&str, &str, u64) -> bool) -> Vec<Lesson> {
        let mut next = random(7);
        (0..count)
            .map(|_| {
                let pick = next() >> 20;
                let tool = if pick & 1 == 0 { "a:x" } else { "b:y" };
                let pattern = if pick & 2 == 0 { "*.json" } else { "#prod" };
                let ends = CallCounts { calls: 1, failures: u64::from(fails(tool, pattern, pick >> 8)) };
                Lesson {
                    call_counts: [(tool.to_owned(), ends)].into_iter().collect(),
                    argument_patterns: vec![(tool.to_owned(), pattern.to_owned(), ends)],
                    ..Lesson::default()
                }
            })
            .collect()
    }

    fn states(lessons: &[Lesson]) -> (PartState, PartState) {
        let (tools, patterns) = gains_of_counts(lessons);
        (
            PartVerdict::of(LearnedPart::Reliability, &tools).state,
            PartVerdict::of(LearnedPart::ArgumentPatterns, &patterns).state,
        )
    }

    #[test]
    fn a_planted_pattern_is_accepted() {
        let by_pattern = lessons(300, |_, pattern, pick| pattern == "#prod" && pick % 10 < 8);
        assert_eq!(states(&by_pattern).1, PartState::Helps);
        let by_tool = lessons(300, |tool, _, pick| tool == "b:y" && pick % 10 < 7);
        assert_eq!(states(&by_tool).0, PartState::Helps);
    }

    #[test]
    fn shuffled_ends_are_refused() {
        // As many fail as before, whatever the tool and the value.
        assert_eq!(states(&lessons(300, |_, _, pick| pick % 10 < 4)), (PartState::Off, PartState::Off));
    }

    #[test]
    fn few_runs_decide_nothing() {
        let few = lessons(60, |_, pattern, _| pattern == "#prod");
        assert_eq!(states(&few), (PartState::NotJudged, PartState::NotJudged));
        assert!(LearnedPart::ALL.iter().all(|part| Gate::default().is_on(*part)));
    }

    #[test]
    fn a_part_that_does_not_help_is_off_and_no_other() {
        let mut gate = Gate::default();
        gate.set(&PartVerdict::of(LearnedPart::NextStep, &[0.0; 40]));
        assert!(!gate.is_on(LearnedPart::NextStep) && gate.is_on(LearnedPart::PastIntents));
        gate.set(&PartVerdict::of(LearnedPart::NextStep, &[0.2; 40]));
        assert!(gate.is_on(LearnedPart::NextStep));
    }

    #[test]
    fn the_interval_is_around_the_mean_and_always_the_same() {
        let mut next = random(3);
        let gains: Vec<f64> = (0..100).map(|_| (next() >> 40) as f64 / f64::from(1 << 24) - 0.3).collect();
        let mean = gains.iter().sum::<f64>() / 100.0;
        let [low, high] = bootstrap_interval(&gains);
        assert!(low < mean && mean < high && high - low < 0.2, "{low} {mean} {high}");
        assert_eq!(bootstrap_interval(&gains).map(f64::to_bits), [low, high].map(f64::to_bits));
    }
}
