//! How sure it is that the first result is right, as a probability.
//!
//! A first result is right more often the further it is ahead of the second, the more of the request its
//! words cover, the more it means the same, and when words alone would have put it first as well. How
//! much each of these counts was fitted over several public collections of tools and requests, each
//! measured with the constants that the others gave. None of them depends on how many tools there are.

/// What tells whether the best item is right.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signs {
    /// One standard deviation of what the items of the catalogue are worth.
    pub(crate) deviation: f32,
    /// How far the item is above the next, in standard deviations.
    pub(crate) lead: f32,
    /// Which share of the request its words cover.
    pub(crate) covered: f32,
    /// The cosine of its vector and the request's or a part's; `None` where there are no vectors.
    pub(crate) likeness: Option<f32>,
    /// Whether it would be first by words alone.
    pub(crate) first_by_words: bool,
    /// How many parts the request has.
    pub(crate) parts: usize,
}

/// How much each sign counts in log-odds, and the log-odds without any.
struct Weights {
    lead: f32,
    covered: f32,
    likeness: f32,
    first_by_words: f32,
    without: f32,
}

const WITH_MEANING: Weights =
    Weights { lead: 1.58, covered: 1.5, likeness: 2.9, first_by_words: 0.6, without: -2.52 };

const WORDS_ALONE: Weights =
    Weights { lead: 1.32, covered: 4.7, likeness: 0.0, first_by_words: 0.53, without: -2.9 };

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
        let weights = if self.likeness.is_some() { &WITH_MEANING } else { &WORDS_ALONE };
        let likeness = self.likeness.unwrap_or(0.0);
        let odds = weights.without
            + weights.lead * self.lead.max(0.0).ln_1p()
            + weights.covered * self.covered
            + weights.likeness * likeness
            + weights.first_by_words * f32::from(u8::from(self.first_by_words));
        let related = (self.covered / RELATED_BY_WORDS).max(likeness / RELATED_BY_MEANING);
        let probability = bent(1.0 / (1.0 + f64::from(-odds).exp())) * f64::from(related.clamp(0.0, 1.0));
        if self.parts < MANY_PARTS { probability } else { probability.min(MOST_FOR_MANY) }
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
