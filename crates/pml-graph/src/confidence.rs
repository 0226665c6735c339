//! How sure it is that the first result is right, as a probability.
//!
//! A first result is right more often the further it is ahead of the second, the more of the request its
//! words cover, most of all where both is so, the more it means the same, and when words alone would have
//! put it first as well. How much each of these counts was fitted over several public collections of tools
//! and requests; how well that holds on a collection it was not fitted to is measured with the constants that
//! the others give. None of them depends on how many tools there are.

/// What tells whether the best item is right.
#[derive(Debug, Clone, Copy)]
pub struct Signs {
    /// One standard deviation of what the items of the catalogue are worth.
    pub deviation: f32,
    /// How far the item is above the next, in standard deviations.
    pub lead: f32,
    /// Which share of the request its words cover.
    pub covered: f32,
    /// The cosine of its vector and the request's or a part's; `None` where there are no vectors.
    pub likeness: Option<f32>,
    /// Whether it would be first by words alone.
    pub first_by_words: bool,
    /// How many parts the request has.
    pub parts: usize,
}

/// How many numbers are made of the signs.
pub const FEATURES: usize = 6;

/// How much each of the [`features`](Signs::features) counts in log-odds.
pub type Weights = [f64; FEATURES];

const WITH_MEANING: Weights = [-2.23, 1.18, 0.93, 1.38, 3.18, 0.28];

const WORDS_ALONE: Weights = [-2.3, 0.68, 3.63, 1.73, 0.0, 0.33];

/// An item that covers less of the request, and is less like it, has nothing to do with it, even where it
/// is ahead of all others; the collections have no such requests.
const RELATED_BY_WORDS: f32 = 0.2;
const RELATED_BY_MEANING: f32 = 0.35;

/// A request of this many parts is a task of several steps, ...
const MANY_PARTS: usize = 4;

/// ... of which one item, however fit, can hardly be all that is to be done.
const MOST_FOR_MANY: f64 = 0.84;

/// How many standard deviations behind the first an item has a third (1/e) of its score.
const FALL: f32 = 2.0;

impl Signs {
    /// The probability that the item is right.
    pub(crate) fn probability(&self) -> f64 {
        self.probability_by(if self.likeness.is_some() { &WITH_MEANING } else { &WORDS_ALONE })
    }

    /// The same where the signs count as `weights` say.
    pub fn probability_by(&self, weights: &Weights) -> f64 {
        let odds: f64 = self.features().iter().zip(weights).map(|(feature, weight)| feature * weight).sum();
        let likeness = self.likeness.unwrap_or(0.0);
        let related = (self.covered / RELATED_BY_WORDS).max(likeness / RELATED_BY_MEANING);
        let probability = bent(1.0 / (1.0 + (-odds).exp())) * f64::from(related.clamp(0.0, 1.0));
        if self.parts < MANY_PARTS { probability } else { probability.min(MOST_FOR_MANY) }
    }

    /// What adds up to the odds: always 1, the lead, what is covered, both together, the likeness, and
    /// whether it is first by words.
    pub fn features(&self) -> [f64; FEATURES] {
        let (lead, covered) = (f64::from(self.lead.max(0.0).ln_1p()), f64::from(self.covered));
        let likeness = f64::from(self.likeness.unwrap_or(0.0));
        [1.0, lead, covered, lead * covered, likeness, f64::from(u8::from(self.first_by_words))]
    }
}

/// Odds that add up promise too much just below certainty: what they put between 0.8 and 0.9 is right
/// about as often as what they put at 0.8, and from 0.9 on it rises steeply.
fn bent(probability: f64) -> f64 {
    match probability {
        ..=0.8 => probability,
        ..=0.9 => 0.8 + (probability - 0.8) / 2.0,
        _ => 0.85 + (probability - 0.9) * 1.5,
    }
}

/// What remains of the first item's score for one that is `gap` standard deviations behind it.
pub(crate) fn behind(gap: f32) -> f64 {
    f64::from(-gap / FALL).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SURE: Signs = Signs {
        deviation: 1.0,
        lead: 5.0,
        covered: 0.8,
        likeness: Some(0.7),
        first_by_words: true,
        parts: 1,
    };

    #[test]
    fn every_sign_counts() {
        let sure = SURE.probability();
        assert!(sure > 0.9, "{sure}");
        for less in [
            Signs { lead: 1.0, ..SURE },
            Signs { covered: 0.3, ..SURE },
            Signs { likeness: Some(0.3), ..SURE },
            Signs { first_by_words: false, ..SURE },
            Signs { parts: 5, ..SURE },
        ] {
            assert!(less.probability() < sure, "{less:?}");
        }
        let words = Signs { likeness: None, ..SURE };
        assert!(words.probability() > Signs { covered: 0.3, ..words }.probability());
    }

    #[test]
    fn what_has_nothing_to_do_with_the_request_is_unlikely_however_far_ahead() {
        assert_eq!(Signs { covered: 0.0, likeness: None, ..SURE }.probability(), 0.0);
        assert!(Signs { covered: 0.02, likeness: Some(0.1), ..SURE }.probability() < 0.3);
    }

    #[test]
    fn probabilities_rise_without_a_jump_and_stay_below_one() {
        let steps: Vec<f64> = (0..=1000).map(|step| bent(f64::from(step) / 1000.0)).collect();
        assert!(steps.windows(2).all(|pair| pair[0] < pair[1] && pair[1] - pair[0] < 0.002));
        assert!((steps[1000] - 1.0).abs() < 1e-9);
    }
}
