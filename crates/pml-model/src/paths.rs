//! The paths a procedure takes: how often each was taken, how often it worked, and how surprising a run is.
//!
//! Numbers are folded from one trace after the other, so the same traces in the same order give the same numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::structure::NodeId;
use crate::trace::Decision;

/// How much one trace counts.
const RATE: f64 = 0.1;
/// What is expected of a way nobody has gone.
const PRIOR: f64 = 0.5;
/// How often a way must have been gone to be the usual one.
const USUAL: u64 = 3;
/// Durations up to this many milliseconds say nothing by their ratio.
const MEASURABLE_MS: f64 = 20.0;
/// How many different ways are told apart; those found later are not kept.
const MOST_PATHS: usize = 200;
/// How many outcomes of one decision are told apart.
const MOST_OUTCOMES: usize = 50;

/// What is known of a procedure's ways.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Learning {
    /// The ways it went, in the order they were first gone.
    pub paths: Vec<PathStats>,
    /// The way it usually goes.
    pub dominant_path: Vec<NodeId>,
    /// Its decisions, in the order they were first met.
    pub decision_stats: Vec<DecisionStats>,
}

/// One way a procedure went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PathStats {
    /// The nodes it came to.
    pub path: Vec<NodeId>,
    /// How often.
    pub count: u64,
    /// How likely it works.
    pub success_rate: f64,
    /// How long it takes.
    pub avg_duration_ms: f64,
}

/// What a decision came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionStats {
    /// Which.
    pub node_id: NodeId,
    /// What is tested.
    pub condition: String,
    /// By outcome.
    pub outcomes: BTreeMap<String, OutcomeStats>,
}

/// One outcome of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutcomeStats {
    /// In how many runs.
    pub count: u64,
    /// How likely those worked.
    pub success_rate: f64,
}

impl OutcomeStats {
    fn learn(&mut self, worked: bool) {
        self.count += 1;
        self.success_rate += RATE * (actual(worked) - self.success_rate);
    }
}

/// Whether a run took less than half or more than twice its usual time. Where either is shorter than
/// [`MEASURABLE_MS`], scheduling and the resolution of the clock make up such a factor by themselves.
fn is_unusual(duration_ms: f64, usual_ms: f64) -> bool {
    let measurable = duration_ms > MEASURABLE_MS && usual_ms > MEASURABLE_MS;
    measurable && (duration_ms > 2.0 * usual_ms || duration_ms < 0.5 * usual_ms)
}

fn actual(worked: bool) -> f64 {
    f64::from(u8::from(worked))
}

impl Learning {
    /// How surprising a run that went this way is, from 0 to 1.
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

    /// Takes in a run, and says how surprising it was before.
    pub fn learn(&mut self, path: &[NodeId], decisions: &[Decision], worked: bool, duration_ms: f64) -> f64 {
        let priority = self.priority(path, worked, duration_ms);
        if let Some(known) = self.way(path, duration_ms) {
            known.count += 1;
            known.success_rate += RATE * (actual(worked) - known.success_rate);
            known.avg_duration_ms += RATE * (duration_ms - known.avg_duration_ms);
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

    fn outcome(&mut self, decision: &Decision) -> Option<&mut OutcomeStats> {
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

    /// The way with most successes to expect among those that were gone often enough; the first where none was.
    fn usual(&self) -> Vec<NodeId> {
        let mut best: Option<&PathStats> = None;
        let worth = |path: &PathStats| path.count as f64 * path.success_rate;
        for path in self.paths.iter().filter(|path| path.count >= USUAL) {
            // Of equals the older one stays.
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

    fn exists(outcome: &str) -> Decision {
        Decision {
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
    fn what_was_expected_is_no_surprise() {
        let paths = vec![stats("n1 d1 n2", 95, 0.95), stats("n1 d1 n3", 5, 0.5)];
        let known = Learning { paths, ..Learning::default() };
        assert!(close(known.priority(&path("n1 d1 n2"), true, 100.0), 0.05));
        assert!(close(known.priority(&path("n1 d1 n2"), false, 100.0), 0.95));
        assert!(close(known.priority(&path("n1 d1 n3"), true, 100.0), 0.60));
        assert!(close(known.priority(&path("n1"), true, 100.0), 1.0));
    }

    #[test]
    fn an_unusual_duration_is_a_surprise_once_the_usual_one_is_known() {
        let at = |count, duration| {
            let known = Learning { paths: vec![stats("n1", count, 0.95)], ..Learning::default() };
            known.priority(&path("n1"), true, duration)
        };
        assert!(close(at(6, 201.0), 0.25));
        assert!(close(at(6, 49.0), 0.25));
        assert!(close(at(6, 200.0), 0.05));
        assert!(close(at(5, 1_000.0), 0.05));
        let short = |usual, duration| {
            let path_stats = PathStats { avg_duration_ms: usual, ..stats("n1", 9, 0.95) };
            let known = Learning { paths: vec![path_stats], ..Learning::default() };
            known.priority(&path("n1"), true, duration)
        };
        assert!(close(short(1.0, 9.0), 0.05), "a few milliseconds are noise");
        assert!(close(short(5.0, 60.0), 0.05) && close(short(60.0, 5.0), 0.05), "so they are on one side");
        assert!(close(short(21.0, 43.0), 0.25) && close(short(43.0, 21.0), 0.25));
        let known = Learning { paths: vec![stats("n1", 9, 0.1)], ..Learning::default() };
        assert!(close(known.priority(&path("n1"), true, 1_000.0), 1.0), "never above 1");
    }

    #[test]
    fn three_runs_the_same_way() {
        let mut known = Learning::default();
        let surprises: Vec<f64> = (0..3).map(|_| known.learn(&path("n1 n2"), &[], true, 100.0)).collect();
        assert!(close(surprises[0], 1.0) && close(surprises[1], 0.45) && close(surprises[2], 0.405));
        assert_eq!(known.paths.len(), 1);
        assert_eq!(known.paths[0].count, 3);
        assert!(close(known.paths[0].success_rate, 0.6355));
        assert_eq!(known.dominant_path, path("n1 n2"));
    }

    #[test]
    fn two_ways_through_one_decision() {
        let mut known = Learning::default();
        known.learn(&path("n1 d1 n2"), &[exists("true")], true, 10.0);
        known.learn(&path("n1 d1 n3"), &[exists("false")], true, 10.0);
        known.learn(&path("n1 d1 n2"), &[exists("true")], true, 10.0);
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
        let mut known = Learning::default();
        known.learn(&path("n1"), &[], true, 1.0);
        for _ in 0..4 {
            known.learn(&path("n2"), &[], false, 1.0);
        }
        for _ in 0..3 {
            known.learn(&path("n3"), &[], true, 1.0);
        }
        assert_eq!(known.dominant_path, path("n3"));
    }

    #[test]
    fn there_is_an_end_to_what_is_kept() {
        let mut known = Learning::default();
        for number in 1..=MOST_PATHS as u32 + 5 {
            let node = NodeId { letter: crate::structure::Letter::N, number };
            let decision = Decision { outcome: format!("case:{number}"), ..exists("") };
            assert!(close(known.learn(&[node], &[decision], true, 1.0), 1.0));
        }
        assert_eq!(known.paths.len(), MOST_PATHS);
        assert_eq!(known.decision_stats[0].outcomes.len(), MOST_OUTCOMES);
    }
}
