//! Learned paths of a procedure: how often each was taken, how often it succeeded, and how surprising a run is.
//!
//! Numbers are folded from one trace after the other, so the same traces in the same order give the same numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::structure::NodeId;
use crate::trace::DecisionOutcome;

/// Learning rate: the weight of one trace in the exponential mean.
const RATE: f64 = 0.1;
/// Prior success rate of a path without runs.
const PRIOR: f64 = 0.5;
/// Number of runs from which on a path can become the dominant one.
const USUAL: u64 = 3;
/// Up to this duration in milliseconds the ratio of two durations is noise.
const MEASURABLE_MS: f64 = 20.0;
/// Maximum number of paths that are distinguished; later ones are not counted.
const MOST_PATHS: usize = 200;
/// Maximum number of outcomes of one decision that are distinguished.
const MOST_OUTCOMES: usize = 50;

/// Path and decision statistics of a procedure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LearnedPaths {
    /// The paths, in the order in which they were first taken.
    pub paths: Vec<PathStats>,
    /// The usual path: the one with the most expected successes.
    pub dominant_path: Vec<NodeId>,
    /// The decisions, in the order in which they were first reached.
    pub decision_stats: Vec<DecisionStats>,
}

/// Statistics of one path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PathStats {
    /// The nodes that were reached.
    pub path: Vec<NodeId>,
    /// Number of occurrences.
    pub count: u64,
    /// Exponential mean of success, from 0 to 1.
    pub success_rate: f64,
    /// Mean duration in milliseconds, see [`learn_mean`].
    pub avg_duration_ms: f64,
}

/// Statistics of one decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionStats {
    /// The node of the structure.
    pub node_id: NodeId,
    /// The tested expression, as written.
    pub condition: String,
    /// Statistics by outcome.
    pub outcomes: BTreeMap<String, OutcomeStats>,
}

/// Statistics of one outcome of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutcomeStats {
    /// Number of runs with this outcome.
    pub count: u64,
    /// Exponential mean of success of those runs, from 0 to 1.
    pub success_rate: f64,
}

impl OutcomeStats {
    fn learn(&mut self, worked: bool) {
        self.count += 1;
        self.success_rate += RATE * (actual(worked) - self.success_rate);
    }
}

/// Whether a run took less than half or more than twice its usual time. If either is shorter than [`MEASURABLE_MS`],
/// scheduling and the resolution of the clock produce such a ratio by themselves.
fn is_unusual(duration_ms: f64, usual_ms: f64) -> bool {
    let measurable = duration_ms > MEASURABLE_MS && usual_ms > MEASURABLE_MS;
    measurable && (duration_ms > 2.0 * usual_ms || duration_ms < 0.5 * usual_ms)
}

/// Adds value number `count` to a mean: the arithmetic mean of the first `1 / RATE` values, an exponential mean from then on. With
/// the exponential mean alone, the first run of a capability, which also starts servers, would outweigh the next twenty.
pub(crate) fn learn_mean(mean: &mut f64, value: f64, count: u64) {
    let weight = RATE.max(1.0 / count.max(1) as f64);
    *mean += weight * (value - *mean);
}

fn actual(worked: bool) -> f64 {
    f64::from(u8::from(worked))
}

impl LearnedPaths {
    /// How surprising a run on this path is, from 0 to 1. A new path has 1.
    pub fn priority(&self, path: &[NodeId], worked: bool, duration_ms: f64) -> f64 {
        let Some(known) = self.paths.iter().find(|known| known.path == path) else { return 1.0 };
        let mut priority = (known.success_rate - actual(worked)).abs();
        if known.count > 5 && is_unusual(duration_ms, known.avg_duration_ms) {
            priority += 0.2;
        }
        let all: u64 = self.paths.iter().map(|path| path.count).sum();
        if (known.count as f64) < 0.1 * all as f64 {
            priority += 0.1;
        }
        priority.min(1.0)
    }

    /// Learns from a run, and returns how surprising it was before.
    pub fn learn_run(
        &mut self,
        path: &[NodeId],
        decisions: &[DecisionOutcome],
        worked: bool,
        duration_ms: f64,
    ) -> f64 {
        let priority = self.priority(path, worked, duration_ms);
        if let Some(known) = self.way(path, duration_ms) {
            known.count += 1;
            known.success_rate += RATE * (actual(worked) - known.success_rate);
            learn_mean(&mut known.avg_duration_ms, duration_ms, known.count);
        }
        for decision in decisions {
            if let Some(outcome) = self.outcome(decision) {
                outcome.learn(worked);
            }
        }
        self.dominant_path = self.usual();
        priority
    }

    fn way(&mut self, path: &[NodeId], duration_ms: f64) -> Option<&mut PathStats> {
        let place = match self.paths.iter().position(|known| known.path == path) {
            Some(place) => place,
            None if self.paths.len() >= MOST_PATHS => return None,
            None => {
                self.paths.push(PathStats {
                    path: path.to_vec(),
                    count: 0,
                    success_rate: PRIOR,
                    avg_duration_ms: duration_ms,
                });
                self.paths.len() - 1
            }
        };
        self.paths.get_mut(place)
    }

    fn outcome(&mut self, decision: &DecisionOutcome) -> Option<&mut OutcomeStats> {
        let place = match self.decision_stats.iter().position(|known| known.node_id == decision.node_id) {
            Some(place) => place,
            None => {
                self.decision_stats.push(DecisionStats {
                    node_id: decision.node_id,
                    condition: decision.condition.clone(),
                    outcomes: BTreeMap::new(),
                });
                self.decision_stats.len() - 1
            }
        };
        let outcomes = &mut self.decision_stats.get_mut(place)?.outcomes;
        if outcomes.len() >= MOST_OUTCOMES && !outcomes.contains_key(&decision.outcome) {
            return None;
        }
        let fresh = OutcomeStats { count: 0, success_rate: PRIOR };
        Some(outcomes.entry(decision.outcome.clone()).or_insert(fresh))
    }

    /// The path with the most expected successes among those with at least [`USUAL`] runs; the first path if there is
    /// none.
    fn usual(&self) -> Vec<NodeId> {
        let mut best: Option<&PathStats> = None;
        let worth = |path: &PathStats| path.count as f64 * path.success_rate;
        for path in self.paths.iter().filter(|path| path.count >= USUAL) {
            // On a tie the older path stays.
            if best.is_none_or(|best| worth(path) > worth(best)) {
                best = Some(path);
            }
        }
        best.or(self.paths.first()).map(|path| path.path.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(nodes: &str) -> Vec<NodeId> {
        nodes.split(' ').map(|node| NodeId::try_from(node.to_owned()).unwrap()).collect()
    }

    fn stats(nodes: &str, count: u64, success_rate: f64) -> PathStats {
        PathStats { path: path(nodes), count, success_rate, avg_duration_ms: 100.0 }
    }

    fn exists(outcome: &str) -> DecisionOutcome {
        DecisionOutcome {
            node_id: path("d1")[0],
            condition: "file.exists".to_owned(),
            value: None,
            outcome: outcome.to_owned(),
            times: 1,
        }
    }

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn the_mean_of_the_first_runs_is_that_of_all_of_them() {
        let mut known = LearnedPaths::default();
        let mean = |known: &LearnedPaths| known.paths[0].avg_duration_ms;
        // The first run starts the servers.
        for (number, duration) in [700.0, 200.0, 210.0, 230.0].into_iter().enumerate() {
            known.learn_run(&path("n1"), &[], true, duration);
            assert_eq!(known.paths[0].count, number as u64 + 1);
        }
        assert!(close(mean(&known), 335.0), "{}", mean(&known));
        for _ in 4..10 {
            known.learn_run(&path("n1"), &[], true, 200.0);
        }
        assert!(close(mean(&known), 254.0), "{}", mean(&known));
        known.learn_run(&path("n1"), &[], true, 354.0);
        assert!(close(mean(&known), 264.0), "later runs weigh a tenth: {}", mean(&known));
    }

    #[test]
    fn what_was_expected_is_no_surprise() {
        let paths = vec![stats("n1 d1 n2", 95, 0.95), stats("n1 d1 n3", 5, 0.5)];
        let known = LearnedPaths { paths, ..LearnedPaths::default() };
        assert!(close(known.priority(&path("n1 d1 n2"), true, 100.0), 0.05));
        assert!(close(known.priority(&path("n1 d1 n2"), false, 100.0), 0.95));
        assert!(close(known.priority(&path("n1 d1 n3"), true, 100.0), 0.60));
        assert!(close(known.priority(&path("n1"), true, 100.0), 1.0));
    }

    #[test]
    fn an_unusual_duration_is_a_surprise_once_the_usual_one_is_known() {
        let at = |count, duration| {
            let known = LearnedPaths { paths: vec![stats("n1", count, 0.95)], ..LearnedPaths::default() };
            known.priority(&path("n1"), true, duration)
        };
        assert!(close(at(6, 201.0), 0.25));
        assert!(close(at(6, 49.0), 0.25));
        assert!(close(at(6, 200.0), 0.05));
        assert!(close(at(5, 1_000.0), 0.05));
        let short = |usual, duration| {
            let path_stats = PathStats { avg_duration_ms: usual, ..stats("n1", 9, 0.95) };
            let known = LearnedPaths { paths: vec![path_stats], ..LearnedPaths::default() };
            known.priority(&path("n1"), true, duration)
        };
        assert!(close(short(1.0, 9.0), 0.05), "a few milliseconds are noise");
        assert!(close(short(5.0, 60.0), 0.05) && close(short(60.0, 5.0), 0.05), "so they are on one side");
        assert!(close(short(21.0, 43.0), 0.25) && close(short(43.0, 21.0), 0.25));
        let known = LearnedPaths { paths: vec![stats("n1", 9, 0.1)], ..LearnedPaths::default() };
        assert!(close(known.priority(&path("n1"), true, 1_000.0), 1.0), "never above 1");
    }

    #[test]
    fn three_runs_the_same_way() {
        let mut known = LearnedPaths::default();
        let surprises: Vec<f64> = (0..3).map(|_| known.learn_run(&path("n1 n2"), &[], true, 100.0)).collect();
        assert!(close(surprises[0], 1.0) && close(surprises[1], 0.45) && close(surprises[2], 0.405));
        assert_eq!(known.paths.len(), 1);
        assert_eq!(known.paths[0].count, 3);
        assert!(close(known.paths[0].success_rate, 0.6355));
        assert_eq!(known.dominant_path, path("n1 n2"));
    }

    #[test]
    fn two_ways_through_one_decision() {
        let mut known = LearnedPaths::default();
        known.learn_run(&path("n1 d1 n2"), &[exists("true")], true, 10.0);
        known.learn_run(&path("n1 d1 n3"), &[exists("false")], true, 10.0);
        known.learn_run(&path("n1 d1 n2"), &[exists("true")], true, 10.0);
        let ways: Vec<(u64, f64)> = known.paths.iter().map(|path| (path.count, path.success_rate)).collect();
        assert!(ways[0].0 == 2 && close(ways[0].1, 0.595));
        assert!(ways[1].0 == 1 && close(ways[1].1, 0.55));
        let outcomes = &known.decision_stats[0].outcomes;
        assert!(outcomes["true"].count == 2 && close(outcomes["true"].success_rate, 0.595));
        assert!(outcomes["false"].count == 1 && close(outcomes["false"].success_rate, 0.55));
        assert_eq!(known.dominant_path, path("n1 d1 n2"), "the first, while none was gone three times");
    }

    #[test]
    fn the_usual_way_is_the_one_that_works_most_often() {
        let mut known = LearnedPaths::default();
        known.learn_run(&path("n1"), &[], true, 1.0);
        for _ in 0..4 {
            known.learn_run(&path("n2"), &[], false, 1.0);
        }
        for _ in 0..3 {
            known.learn_run(&path("n3"), &[], true, 1.0);
        }
        assert_eq!(known.dominant_path, path("n3"));
    }

    #[test]
    fn there_is_an_end_to_what_is_kept() {
        let mut known = LearnedPaths::default();
        for number in 1..=MOST_PATHS as u32 + 5 {
            let node = NodeId { letter: crate::structure::NodeLetter::N, number };
            let decision = DecisionOutcome { outcome: format!("case:{number}"), ..exists("") };
            assert!(close(known.learn_run(&[node], &[decision], true, 1.0), 1.0));
        }
        assert_eq!(known.paths.len(), MOST_PATHS);
        assert_eq!(known.decision_stats[0].outcomes.len(), MOST_OUTCOMES);
    }
}
