//! Priors: evidence for or against a tool that does not depend on the request, namely reliability and closeness.

use pml_model::capability::expected_success;
use pml_model::learning::CallCounts;

/// The largest share of the remaining distance to 1 that closeness to recently used tools can add to a score.
const CLOSE: f64 = 0.5;

/// Evidence that does not depend on the request.
#[derive(Debug, Clone, Copy)]
pub struct Prior {
    /// The estimated success rate, from 0 to 1; 1 where nothing is known.
    pub reliability: f64,
    /// The closeness in the tool graph to what was just used, from 0 to 1.
    pub closeness: f64,
}

impl Default for Prior {
    fn default() -> Prior {
        Prior { reliability: 1.0, closeness: 0.0 }
    }
}

impl Prior {
    /// The score with the prior applied. A score near 0 stays near 0, since closeness alone does not make a tool
    /// relevant, and an unreliable tool is raised less.
    pub fn apply(self, score: f64) -> f64 {
        let score = score * self.reliability;
        score + (1.0 - score) * score.sqrt() * CLOSE * self.closeness * self.reliability
    }
}

/// The number of calls of the tool in general that weigh as much as the calls with a pattern.
const GENERAL: f64 = 2.0;

/// The factor for the rank of a tool that is expected to succeed with the probability `general`, and was called with
/// `patterns` that the intent has too. The one that worked least decides.
pub(super) fn reliability_by_patterns(general: f64, patterns: &[CallCounts]) -> f64 {
    let rate = |counts: &CallCounts| {
        let worked = counts.calls.saturating_sub(counts.failures) as f64;
        (worked + GENERAL * general) / (counts.calls as f64 + GENERAL)
    };
    let lowest = patterns.iter().map(rate).fold(1.0, f64::min);
    (lowest / expected_success(0, 0)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_just_used_lifts_what_fits_and_nothing_else() {
        let close = Prior { closeness: 1.0, ..Prior::default() };
        assert!(close.apply(0.4) > 0.5 && close.apply(0.4) < 0.7);
        assert!(close.apply(0.001) < 0.05);
        assert!((0.0..=1.0).contains(&close.apply(1.0)));
        assert!((Prior::default().apply(0.4) - 0.4).abs() < 1e-12);
    }

    #[test]
    fn what_fails_with_such_values_sinks_and_a_single_call_says_little() {
        let of = |calls, failures| reliability_by_patterns(0.8, &[CallCounts { calls, failures }]);
        assert!((of(10, 0) - 1.0).abs() < 1e-12);
        assert!(of(10, 9) < 0.4 && of(1, 1) > 0.6, "{} {}", of(10, 9), of(1, 1));
        // Where the tool fails otherwise, values that work with it make up for that.
        assert!(reliability_by_patterns(0.3, &[CallCounts { calls: 20, failures: 1 }]) > 0.95);
        let both = [CallCounts { calls: 10, failures: 0 }, CallCounts { calls: 10, failures: 9 }];
        assert!(reliability_by_patterns(0.8, &both) < 0.4);
    }

    #[test]
    fn what_fails_sinks_and_is_not_lifted_over_what_works() {
        let failing = Prior { reliability: 0.5, closeness: 1.0 };
        assert!(failing.apply(0.6) < Prior::default().apply(0.4));
        assert!(Prior { reliability: 0.0, closeness: 1.0 }.apply(0.9) < 1e-12);
    }
}
