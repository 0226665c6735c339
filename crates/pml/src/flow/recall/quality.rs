//! Whether a capability is good enough to be suggested.

#[cfg(test)]
mod tests;

use pml_model::capability::CapabilityStatistics;

/// The least quality of an untried capability that is suggested; one success is enough to reach it.
const WORTH_IT: f64 = 0.45;
/// The change of that threshold per unit of the success estimate.
const MOVES: f64 = 0.5;
/// The range of the moved threshold.
const LOWEST: f64 = 0.40;
const HIGHEST: f64 = 0.95;

/// Whether a capability is good enough to be suggested. Frequent use alone does not carry one that fails: the threshold
/// rises with its failures.
pub(super) fn is_worth_suggesting(statistics: &CapabilityStatistics) -> bool {
    statistics.quality() >= bar(statistics)
}

/// The least quality at which a capability is suggested. A successful run counts as a hit and a failed one as waste,
/// whether the capability was suggested, named or written out again, because each predicts how the next suggestion
/// would end. [`CapabilityStatistics::success_estimate`] is the mean of the posterior Beta(hits + 1.6, waste + 0.4); an
/// untried capability has the mean of the prior. The threshold rises by how far the estimate falls short of the prior's
/// mean, and falls by how far it exceeds it.
fn bar(statistics: &CapabilityStatistics) -> f64 {
    let expected = CapabilityStatistics::default().success_estimate();
    (WORTH_IT + MOVES * (expected - statistics.success_estimate())).clamp(LOWEST, HIGHEST)
}
