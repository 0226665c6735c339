//! How likely the branches of a program are, by what its decisions were in earlier runs.

use std::collections::HashMap;

use pml_model::learning::DecisionStats;
use pml_model::structure::NodeId;

use super::order::Condition;

/// The share of an outcome of which nothing is known.
const EVEN: f64 = 0.5;
/// The weight of even odds, in runs: after this many, what was seen counts as much.
const EVEN_WEIGHT: f64 = 4.0;

/// How often each decision had each outcome.
#[derive(Debug, Default)]
pub(crate) struct OutcomeShares(HashMap<NodeId, Vec<(String, f64)>>);

impl OutcomeShares {
    /// Adds what was learned of the decision that `node` stands for here.
    pub(crate) fn add(&mut self, node: NodeId, learned: &DecisionStats) {
        #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
        let counts = learned.outcomes.iter().map(|(outcome, seen)| (outcome.clone(), seen.count as f64));
        self.0.insert(node, counts.collect());
    }

    /// The probability that a decision has one of the outcomes of a condition.
    pub(super) fn of(&self, condition: &Condition) -> f64 {
        let counts = self.0.get(&condition.decision).map(Vec::as_slice).unwrap_or_default();
        let all: f64 = counts.iter().map(|(_, count)| count).sum();
        let leading = counts.iter().filter(|(outcome, _)| condition.outcomes.contains(outcome));
        let leading: f64 = leading.map(|(_, count)| count).sum();
        (leading + EVEN_WEIGHT * EVEN) / (all + EVEN_WEIGHT)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pml_model::learning::OutcomeStats;
    use pml_model::structure::NodeLetter;

    use super::*;

    fn share(yes: u64, no: u64) -> f64 {
        let decision = NodeId { letter: NodeLetter::D, number: 1 };
        let seen = |count| OutcomeStats { count, success_rate: 1.0 };
        let outcomes = BTreeMap::from([("true".to_owned(), seen(yes)), ("false".to_owned(), seen(no))]);
        let mut shares = OutcomeShares::default();
        shares.add(decision, &DecisionStats { node_id: decision, condition: String::new(), outcomes });
        shares.of(&Condition { decision, outcomes: vec!["true".to_owned()] })
    }

    #[test]
    fn an_outcome_that_was_never_seen_or_is_not_known_has_even_odds_at_first() {
        assert!((share(0, 0) - EVEN).abs() < 1e-9);
        assert!((0.5..0.7).contains(&share(1, 0)), "one run says little: {}", share(1, 0));
    }

    #[test]
    fn many_runs_outweigh_even_odds() {
        assert!(share(40, 0) > 0.9);
        assert!(share(0, 40) < 0.1);
        assert!((share(30, 10) - 0.75).abs() < 0.05);
    }
}
