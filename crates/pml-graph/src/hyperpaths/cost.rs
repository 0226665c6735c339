//! Exact costs of derivations.

use super::MAX_WEIGHT;

/// Units per nat of the cost.
const UNITS: f64 = 1e9;

/// What a derivation costs: its risk, then its number of steps, both counted per use.
///
/// The risk is a whole number of nano-nats, because sums of whole numbers do not depend on the order of the summands:
/// costs that were updated many times equal those computed anew. The steps make every edge strictly increase the cost
/// of what it uses, even when it weighs nothing, so a cheapest derivation never goes round in a circle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cost {
    risk: u64,
    steps: u64,
}

impl Cost {
    /// Above every cost that can be counted.
    pub(super) const UNREACHED: Cost = Cost { risk: u64::MAX, steps: u64::MAX };

    /// The cost of one step of this weight; `None` when the weight is no number from 0 to [`MAX_WEIGHT`].
    pub(super) fn of_weight(weight: f64) -> Option<Cost> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be 0 to 1e15"
        )]
        (0.0..=MAX_WEIGHT).contains(&weight).then(|| Cost { risk: (weight * UNITS).round() as u64, steps: 1 })
    }

    /// The sum, or [`Cost::UNREACHED`] where it cannot be counted.
    pub(super) fn plus(self, other: Cost) -> Cost {
        match (self.risk.checked_add(other.risk), self.steps.checked_add(other.steps)) {
            (Some(risk), Some(steps)) => Cost { risk, steps },
            _ => Cost::UNREACHED,
        }
    }

    /// The risk as a number of the unit of the weights.
    #[expect(clippy::cast_precision_loss, reason = "for display and ranking")]
    pub(super) fn in_nats(self) -> Option<f64> {
        (self != Cost::UNREACHED).then_some(self.risk as f64 / UNITS)
    }
}
