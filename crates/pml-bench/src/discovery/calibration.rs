//! Calibration: whether probabilities come true, on sets that the weights were not fitted to.
//!
//! The constants in [`pml_graph::confidence`] were fitted on all sets. To estimate how good they are on an unseen set,
//! each set is left out in turn and judged with the constants fitted on the others: the weights, and the bend below
//! certainty. The thresholds of relatedness took no part in any fit, since no set has unrelated requests.

use pml_graph::confidence::{BEND, ConfidenceSignals, ConfidenceWeights, FEATURES};

use super::score;
use crate::figure::BenchFigure;

/// The probability from which on the program would run something by itself.
const RUNS: f64 = 0.85;
/// The largest calibration error, and the lowest precision of what would run.
const ERROR: f64 = 0.08;
const PRECISION: f64 = 0.95;
/// The number of Newton iterations: the weights hardly change after half of them.
const ROUNDS: usize = 20;
/// The strength of the ridge penalty, which keeps weights without evidence small.
const RIDGE: f64 = 0.01;

/// The confidence signals of a first result, and whether it was right.
pub(super) type JudgedSigns = (ConfidenceSignals, bool);

/// The confidence signals of the best tool for each step of a request, and whether these tools are the right ones.
pub(super) struct ComposedDag {
    pub(super) steps: Vec<ConfidenceSignals>,
    pub(super) right: bool,
}

/// The confidences from which on composed DAGs are judged.
const COMPOSED: [f64; 4] = [0.85, 0.9, 0.95, 0.97];

/// How often DAGs with a tool for each step are right where they are this sure, each set with the constants of the
/// others.
pub(super) fn composed(
    names: &[&str],
    sets: &[Vec<JudgedSigns>],
    dags: &[Vec<ComposedDag>],
) -> Vec<BenchFigure> {
    let said: Vec<Vec<(f64, bool)>> = (0..sets.len())
        .map(|out| {
            let others = sets.iter().enumerate().filter(|(at, _)| *at != out);
            let constants = FittedConstants::of(others.map(|(_, set)| set.as_slice()));
            let likely =
                |dag: &ComposedDag| dag.steps.iter().map(|signs| constants.probability(signs)).product();
            dags[out].iter().map(|dag| (likely(dag), dag.right)).collect()
        })
        .collect();
    COMPOSED
        .iter()
        .map(|least| {
            let by_set: Vec<String> = names
                .iter()
                .zip(&said)
                .map(|(name, of_set)| {
                    let sure = of_set.iter().filter(|(likely, _)| likely >= least);
                    let right: Vec<bool> = sure.map(|(_, right)| *right).collect();
                    format!("{name} {:.3} of {}", share_right(&right), right.len())
                })
                .collect();
            BenchFigure::of(
                format!("composed DAG: right where it is {least} sure or more"),
                by_set.join(", "),
            )
        })
        .collect()
}

/// The calibration where embeddings are available.
pub(super) fn by_meaning(names: &[&str], sets: &[Vec<JudgedSigns>]) -> Vec<BenchFigure> {
    measure("first result", names, sets, BenchFigure::target)
}

/// The calibration with words only: before texts are embedded, and without a model.
pub(super) fn by_words(names: &[&str], sets: &[Vec<JudgedSigns>]) -> Vec<BenchFigure> {
    measure("by words alone", names, sets, |figure, _, _| figure)
}

/// The calibration of the weights, and the weights fitted on all sets together.
fn measure(
    evidence: &str,
    names: &[&str],
    sets: &[Vec<JudgedSigns>],
    judge: impl Fn(BenchFigure, String, bool) -> BenchFigure,
) -> Vec<BenchFigure> {
    let said: Vec<Vec<(f64, bool)>> = (0..sets.len())
        .map(|out| {
            let others = sets.iter().enumerate().filter(|(at, _)| *at != out);
            let constants = FittedConstants::of(others.map(|(_, set)| set.as_slice()));
            sets[out].iter().map(|(signs, right)| (constants.probability(signs), *right)).collect()
        })
        .collect();
    // Every set has the same weight, however many requests it has.
    let errors: Vec<f64> = said.iter().map(|of_set| score::calibration_error(of_set)).collect();
    let error = score::mean(errors.iter().copied());
    let single: Vec<String> = errors.iter().map(|error| format!("{error:.3}")).collect();
    let sure_of = |of_set: &[(f64, bool)]| -> Vec<bool> {
        of_set.iter().filter(|(likely, _)| *likely >= RUNS).map(|(_, right)| *right).collect()
    };
    let sure_by_set: Vec<Vec<bool>> = said.iter().map(|of_set| sure_of(of_set)).collect();
    let sure = sure_by_set.concat();
    let by_set: Vec<String> = names
        .iter()
        .zip(&sure_by_set)
        .map(|(name, sure)| match sure.len() {
            0 => format!("{name} none"),
            number => format!("{name} {:.3} of {number}", share_right(sure)),
        })
        .collect();
    let on_every_set = sure_by_set.iter().all(|sure| sure.is_empty() || share_right(sure) >= PRECISION);
    let precision = share_right(&sure);
    let all = FittedConstants::of(sets.iter().map(Vec::as_slice));
    let bend = format!("; {:.2}", all.bend);
    let all = all.weights.map(|weight| format!("{weight:.2}"));
    let said = BenchFigure::of(
        format!("{evidence}: calibration error, each set with the constants of the others"),
        format!("{error:.3} ({})", single.join(" ")),
    );
    let runs = BenchFigure::of(
        format!("{evidence}: right where it is {RUNS} sure or more, the same way"),
        format!("{precision:.3} of {}", sure.len()),
    );
    vec![
        judge(said, format!("≤ {ERROR}"), error <= ERROR),
        judge(runs, format!("≥ {PRECISION}"), precision >= PRECISION),
        judge(
            BenchFigure::of(format!("{evidence}: the same, by set"), by_set.join(", ")),
            format!("≥ {PRECISION} on every set"),
            on_every_set,
        ),
        BenchFigure::of(format!("{evidence}: constants that all sets give"), all.join(" ") + &bend),
    ]
}

fn share_right(judged: &[bool]) -> f64 {
    judged.iter().filter(|right| **right).count() as f64 / judged.len().max(1) as f64
}

/// The constants that some sets give: the likeliest ones by which what is sure enough to run is right often enough on each.
struct FittedConstants {
    weights: ConfidenceWeights,
    bend: f64,
}

impl FittedConstants {
    fn of<'s>(sets: impl Iterator<Item = &'s [JudgedSigns]>) -> FittedConstants {
        let sets: Vec<&[JudgedSigns]> = sets.collect();
        let weights = fitted(sets.iter().copied());
        let steps = || (0..=BENDS).map(|step| 0.8 + f64::from(step) * 0.15 / f64::from(BENDS));
        let loss = |bend: f64| -> f64 { sets.iter().map(|set| loss(set, &weights, bend)).sum() };
        let is_safe = |bend: &f64| sets.iter().all(|set| is_precise(set, &weights, *bend));
        let bend = steps().filter(is_safe).min_by(|one, other| loss(*one).total_cmp(&loss(*other)));
        FittedConstants { weights, bend: bend.or(steps().next()).unwrap_or(BEND) }
    }

    fn probability(&self, signs: &ConfidenceSignals) -> f64 {
        signs.probability_with(&self.weights, self.bend)
    }
}

/// The number of steps in which a bend is sought between 0.8 and 0.95.
const BENDS: u32 = 15;

/// The least number of sure results by which a set says something of their precision.
const TELLING: usize = 20;

/// Whether what is sure enough to run is right often enough, as far as the set tells.
fn is_precise(set: &[JudgedSigns], weights: &ConfidenceWeights, bend: f64) -> bool {
    let sure = set.iter().filter(|(signs, _)| signs.probability_with(weights, bend) >= RUNS);
    let sure: Vec<bool> = sure.map(|(_, right)| *right).collect();
    sure.len() < TELLING || share_right(&sure) >= PRECISION
}

/// The log loss of a set, weighted as in [`fitted`].
fn loss(set: &[JudgedSigns], weights: &ConfidenceWeights, bend: f64) -> f64 {
    let of = |(signs, right): &JudgedSigns| {
        let likely = signs.probability_with(weights, bend).clamp(1e-6, 1.0 - 1e-6);
        -if *right { likely } else { 1.0 - likely }.ln()
    };
    set.iter().map(of).sum::<f64>() / (set.len().max(1) as f64).sqrt()
}

/// The maximum-likelihood weights (logistic regression by Newton's method). The weight of a set grows with the square
/// root of its size: a hundred times the requests count ten times as much.
fn fitted<'s>(sets: impl Iterator<Item = &'s [JudgedSigns]>) -> ConfidenceWeights {
    let rows: Vec<([f64; FEATURES], bool, f64)> = sets
        .flat_map(|set| {
            let counts = 1.0 / (set.len().max(1) as f64).sqrt();
            set.iter().map(move |(signs, right)| (signs.features(), *right, counts))
        })
        .collect();
    let mut weights = [0.0; FEATURES];
    for _ in 0..ROUNDS {
        let mut slope = weights.map(|weight| -RIDGE * weight);
        let mut curve: [[f64; FEATURES]; FEATURES] =
            std::array::from_fn(|row| std::array::from_fn(|at| if at == row { RIDGE } else { 0.0 }));
        for (features, right, counts) in &rows {
            let odds: f64 = features.iter().zip(&weights).map(|(feature, weight)| feature * weight).sum();
            let likely = 1.0 / (1.0 + (-odds).exp());
            let wrong = counts * (f64::from(u8::from(*right)) - likely);
            let doubt = counts * likely * (1.0 - likely);
            for at in 0..FEATURES {
                slope[at] += wrong * features[at];
                for other in 0..FEATURES {
                    curve[at][other] += doubt * features[at] * features[other];
                }
            }
        }
        let step = solved(curve, slope);
        weights.iter_mut().zip(step).for_each(|(weight, step)| *weight += step);
    }
    weights
}

/// Solves `matrix · x = right`. The matrix is symmetric and positive definite, so no pivoting is needed.
fn solved(mut matrix: [[f64; FEATURES]; FEATURES], mut right: [f64; FEATURES]) -> [f64; FEATURES] {
    for row in 0..FEATURES {
        for below in row + 1..FEATURES {
            let times = matrix[below][row] / matrix[row][row];
            let above = matrix[row];
            matrix[below].iter_mut().zip(above).for_each(|(number, above)| *number -= times * above);
            right[below] -= times * right[row];
        }
    }
    for row in (0..FEATURES).rev() {
        let known: f64 = (row + 1..FEATURES).map(|column| matrix[row][column] * right[column]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 requests with strong signals, of which `sure` are right, and 100 with weak signals, of which `doubtful`
    /// are.
    fn set(sure: usize, doubtful: usize) -> Vec<JudgedSigns> {
        let signs = ConfidenceSignals {
            deviation: 1.0,
            lead: 3.0,
            coverage: 0.9,
            cosine: Some(0.8),
            first_by_words: true,
            parts: 1,
        };
        let weak =
            ConfidenceSignals { lead: 0.1, coverage: 0.3, cosine: Some(0.4), first_by_words: false, ..signs };
        let of = |signs: ConfidenceSignals, right: usize| (0..100).map(move |at| (signs, at < right));
        of(signs, sure).chain(of(weak, doubtful)).collect()
    }

    #[test]
    fn constants_give_back_how_often_each_kind_was_right() {
        let weights = fitted([set(70, 30).as_slice()].into_iter());
        for (signs, expected) in [(set(70, 30)[0].0, 0.7), (set(70, 30)[150].0, 0.3)] {
            let likely = signs.probability_with(&weights, 0.9);
            assert!((likely - expected).abs() < 0.02, "{likely} for {expected}");
        }
    }

    #[test]
    fn a_set_that_is_unlike_the_others_is_told() {
        let met = |sets: &[Vec<JudgedSigns>]| by_meaning(&["a", "b", "c"], sets)[0].met();
        assert_eq!(met(&[set(70, 30), set(68, 31), set(72, 29)]), Some(true));
        assert_eq!(met(&[set(70, 30), set(68, 31), set(10, 90)]), Some(false));
    }

    #[test]
    fn equations_are_solved() {
        let mut matrix = [[0.5; FEATURES]; FEATURES];
        (0..FEATURES).for_each(|at| matrix[at][at] = 2.0 + at as f64);
        let wanted = [1.0, -2.0, 3.0, 0.0, 0.5, 4.0];
        let right = std::array::from_fn(|row| (0..FEATURES).map(|at| matrix[row][at] * wanted[at]).sum());
        let found = solved(matrix, right);
        assert!(found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-9), "{found:?}");
    }
}
