//! Confidence: the probability that the first result is right.
//!
//! The probability grows with the lead over the second result, with the share of the request that its words cover (most
//! where both are large), with the cosine, and when words alone would have put it first as well. The weights were
//! fitted over several public collections of tools and requests. How well they hold on an unseen collection is measured
//! with the weights fitted on the others. No signal depends on the number of tools.

/// Signals that predict whether the best item is right.
#[derive(Debug, Clone, Copy)]
pub struct ConfidenceSignals {
    /// Standard deviation of the scores over the catalogue.
    pub deviation: f32,
    /// Lead of the item over the next, in standard deviations.
    pub lead: f32,
    /// Share of the request that the item's words cover.
    pub coverage: f32,
    /// Cosine of its vector with that of the request or of a part; `None` without vectors.
    pub cosine: Option<f32>,
    /// Whether it would be first by words alone.
    pub first_by_words: bool,
    /// Number of parts of the request.
    pub parts: usize,
}

/// Number of features made from the signals.
pub const FEATURES: usize = 6;

/// Weight of each of the [`features`](ConfidenceSignals::features) in log-odds.
pub type ConfidenceWeights = [f64; FEATURES];

/// Weights when there are vectors.
const WITH_MEANING: ConfidenceWeights = [-2.23, 1.18, 0.93, 1.38, 3.18, 0.28];

/// Weights without vectors; the cosine then has weight 0.
const WORDS_ALONE: ConfidenceWeights = [-2.3, 0.68, 3.63, 1.73, 0.0, 0.33];

/// Coverage from which an item is related to the request. When coverage and cosine are both below their thresholds the
/// confidence is scaled down, even for an item that leads: the collections contain no unrelated requests, so the
/// weights cannot know.
const RELATED_BY_WORDS: f32 = 0.2;
/// Cosine from which an item is related to the request.
const RELATED_BY_MEANING: f32 = 0.35;

/// A request of at least this many parts is a task of several steps.
const MANY_PARTS: usize = 4;

/// Maximum confidence for such a request: one item can hardly do all of it.
const MOST_FOR_MANY: f64 = 0.84;

/// Gap in standard deviations behind the first item at which the score has fallen to 1/e.
const FALL: f32 = 2.0;

impl ConfidenceSignals {
    /// Probability that the item is right.
    pub(crate) fn probability(&self) -> f64 {
        self.probability_with(if self.cosine.is_some() { &WITH_MEANING } else { &WORDS_ALONE }, BEND)
    }

    /// The same with other constants.
    pub fn probability_with(&self, weights: &ConfidenceWeights, bend: f64) -> f64 {
        let odds: f64 = self.features().iter().zip(weights).map(|(feature, weight)| feature * weight).sum();
        let likeness = self.cosine.unwrap_or(0.0);
        let related = (self.coverage / RELATED_BY_WORDS).max(likeness / RELATED_BY_MEANING);
        let probability = bent(1.0 / (1.0 + (-odds).exp()), bend) * f64::from(related.clamp(0.0, 1.0));
        if self.parts < MANY_PARTS { probability } else { probability.min(MOST_FOR_MANY) }
    }

    /// Features of the logistic regression: constant 1, lead, coverage, their product, cosine, and whether the item is
    /// first by words.
    pub fn features(&self) -> [f64; FEATURES] {
        let (lead, covered) = (f64::from(self.lead.max(0.0).ln_1p()), f64::from(self.coverage));
        let likeness = f64::from(self.cosine.unwrap_or(0.0));
        [1.0, lead, covered, lead * covered, likeness, f64::from(u8::from(self.first_by_words))]
    }
}

/// What 0.9 means, see [`bent`].
pub const BEND: f64 = 0.85;

/// Calibration: additive log-odds overestimate just below certainty. Items between 0.8 and 0.9 are right about as often
/// as those at 0.8, and from 0.9, which means `bend`, the rate rises steeply.
fn bent(probability: f64, bend: f64) -> f64 {
    match probability {
        ..=0.8 => probability,
        ..=0.9 => 0.8 + (probability - 0.8) * (bend - 0.8) * 10.0,
        _ => bend + (probability - 0.9) * (1.0 - bend) * 10.0,
    }
}

/// Share of the first item's score that an item keeps `gap` standard deviations behind it.
pub(crate) fn score_after_gap(gap: f32) -> f64 {
    f64::from(-gap / FALL).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SURE: ConfidenceSignals = ConfidenceSignals {
        deviation: 1.0,
        lead: 5.0,
        coverage: 0.8,
        cosine: Some(0.7),
        first_by_words: true,
        parts: 1,
    };

    #[test]
    fn every_sign_counts() {
        let sure = SURE.probability();
        assert!(sure > 0.9, "{sure}");
        for less in [
            ConfidenceSignals { lead: 1.0, ..SURE },
            ConfidenceSignals { coverage: 0.3, ..SURE },
            ConfidenceSignals { cosine: Some(0.3), ..SURE },
            ConfidenceSignals { first_by_words: false, ..SURE },
            ConfidenceSignals { parts: 5, ..SURE },
        ] {
            assert!(less.probability() < sure, "{less:?}");
        }
        let words = ConfidenceSignals { cosine: None, ..SURE };
        assert!(words.probability() > ConfidenceSignals { coverage: 0.3, ..words }.probability());
    }

    #[test]
    fn what_has_nothing_to_do_with_the_request_is_unlikely_however_far_ahead() {
        assert_eq!(ConfidenceSignals { coverage: 0.0, cosine: None, ..SURE }.probability(), 0.0);
        assert!(ConfidenceSignals { coverage: 0.02, cosine: Some(0.1), ..SURE }.probability() < 0.3);
    }

    #[test]
    fn probabilities_rise_without_a_jump_and_stay_below_one() {
        let steps: Vec<f64> = (0..=1000).map(|step| bent(f64::from(step) / 1000.0, BEND)).collect();
        assert!(steps.windows(2).all(|pair| pair[0] < pair[1] && pair[1] - pair[0] < 0.002));
        assert!((steps[1000] - 1.0).abs() < 1e-9);
    }
}
