//! Whether what is said to be likely comes true, on sets that the constants were not fitted to.
//!
//! The constants of [`pml_graph::confidence`] were fitted on all sets. To tell how good they are on a set nobody has
//! seen, each set is left out in turn and judged with the constants that the others give.

use pml_graph::confidence::{FEATURES, Signs, Weights};

use super::super::Figure;
use super::score;

/// From this likelihood on the program would run something by itself.
const RUNS: f64 = 0.85;
/// How far what is said may be from what comes true, and how often what would run must be right.
const ERROR: f64 = 0.08;
const PRECISION: f64 = 0.95;
/// How many times the constants are made better: they hardly change after half of that.
const ROUNDS: usize = 20;
/// What keeps a constant small that nothing speaks for.
const RIDGE: f64 = 0.01;

/// What tells how sure a first result was, and whether it was right.
pub(super) type Judged = (Signs, bool);

/// How good the constants are where what texts mean is known.
pub(super) fn by_meaning(sets: &[Vec<Judged>]) -> Vec<Figure> {
    measure("first result", sets, Figure::target)
}

/// The same where only words are: until texts are read, and where there is no model.
pub(super) fn by_words(sets: &[Vec<Judged>]) -> Vec<Figure> {
    measure("by words alone", sets, |figure, _, _| figure)
}

/// How good the constants are, and those that all sets together give.
fn measure(
    evidence: &str,
    sets: &[Vec<Judged>],
    judge: impl Fn(Figure, String, bool) -> Figure,
) -> Vec<Figure> {
    let said: Vec<Vec<(f64, bool)>> = (0..sets.len())
        .map(|out| {
            let others = sets.iter().enumerate().filter(|(at, _)| *at != out);
            let weights = fitted(others.map(|(_, set)| set.as_slice()));
            sets[out].iter().map(|(signs, right)| (signs.probability_by(&weights), *right)).collect()
        })
        .collect();
    // Every set counts alike, however many requests it has.
    let errors: Vec<f64> = said.iter().map(|of_set| score::calibration_error(of_set)).collect();
    let error = score::mean(errors.iter().copied());
    let single: Vec<String> = errors.iter().map(|error| format!("{error:.3}")).collect();
    let sure: Vec<bool> =
        said.iter().flatten().filter(|(likely, _)| *likely >= RUNS).map(|(_, right)| *right).collect();
    let precision = sure.iter().filter(|right| **right).count() as f64 / sure.len().max(1) as f64;
    let all = fitted(sets.iter().map(Vec::as_slice)).map(|weight| format!("{weight:.2}"));
    let said = Figure::of(
        format!("{evidence}: calibration error, each set with the constants of the others"),
        format!("{error:.3} ({})", single.join(" ")),
    );
    let runs = Figure::of(
        format!("{evidence}: right where it is {RUNS} sure or more, the same way"),
        format!("{precision:.3} of {}", sure.len()),
    );
    vec![
        judge(said, format!("≤ {ERROR}"), error <= ERROR),
        judge(runs, format!("≥ {PRECISION}"), precision >= PRECISION),
        Figure::of(format!("{evidence}: constants that all sets give"), all.join(" ")),
    ]
}

/// The constants under which what was seen is likeliest (logistic regression by Newton's method). A set with a hundred
/// times the requests counts ten times as much.
fn fitted<'s>(sets: impl Iterator<Item = &'s [Judged]>) -> Weights {
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

/// The `x` for which `matrix · x = right`. The matrix is symmetric and positive, so no row has to be exchanged.
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

    /// Requests of which the share `sure` says is right, and `doubtful` where nothing stands out.
    fn set(sure: usize, doubtful: usize) -> Vec<Judged> {
        let signs = Signs {
            deviation: 1.0,
            lead: 3.0,
            covered: 0.9,
            likeness: Some(0.8),
            first_by_words: true,
            parts: 1,
        };
        let weak = Signs { lead: 0.1, covered: 0.3, likeness: Some(0.4), first_by_words: false, ..signs };
        let of = |signs: Signs, right: usize| (0..100).map(move |at| (signs, at < right));
        of(signs, sure).chain(of(weak, doubtful)).collect()
    }

    #[test]
    fn constants_give_back_how_often_each_kind_was_right() {
        let weights = fitted([set(70, 30).as_slice()].into_iter());
        for (signs, expected) in [(set(70, 30)[0].0, 0.7), (set(70, 30)[150].0, 0.3)] {
            let likely = signs.probability_by(&weights);
            assert!((likely - expected).abs() < 0.02, "{likely} for {expected}");
        }
    }

    #[test]
    fn a_set_that_is_unlike_the_others_is_told() {
        let met = |sets: &[Vec<Judged>]| by_meaning(sets)[0].met();
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
