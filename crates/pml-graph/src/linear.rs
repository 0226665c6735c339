//! Symmetric systems of equations, by Cholesky's method. Matrices are square and lie row after row; only their lower
//! half is read and written.

/// Makes `matrix` the lower half `L` of `L · Lᵀ = matrix`. A matrix that is not positive for being rounded is made so:
/// the square of what stands on the diagonal is at least `least`.
pub(crate) fn factor(matrix: &mut [f64], size: usize, least: f64) {
    for row in 0..size {
        for column in 0..=row {
            let (before, rest) = matrix.split_at_mut(row * size);
            let this = &mut rest[..=row];
            this[column] = if column == row {
                (this[column] - product(&this[..column], &this[..column])).max(least).sqrt()
            } else {
                let other = &before[column * size..=column * size + column];
                (this[column] - product(&this[..column], &other[..column])) / other[column]
            };
        }
    }
}

/// Solves `(L · Lᵀ) · x = values`; `values` become the solution.
pub(crate) fn solve(lower: &[f64], values: &mut [f64]) {
    let size = values.len();
    for row in 0..size {
        let sum = product(&lower[row * size..row * size + row], &values[..row]);
        values[row] = (values[row] - sum) / lower[row * size + row];
    }
    for row in (0..size).rev() {
        let sum: f64 = (row + 1..size).map(|below| lower[below * size + row] * values[below]).sum();
        values[row] = (values[row] - sum) / lower[row * size + row];
    }
}

/// Four sums side by side, because one alone would wait for each addition before the next.
fn product(a: &[f64], b: &[f64]) -> f64 {
    let (a_fours, a_rest) = a.as_chunks::<4>();
    let (b_fours, b_rest) = b.as_chunks::<4>();
    let mut sums = [0.0; 4];
    for (a, b) in a_fours.iter().zip(b_fours) {
        (0..4).for_each(|lane| sums[lane] += a[lane] * b[lane]);
    }
    sums.iter().sum::<f64>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f64>()
}

/// Turns evidence into a probability.
pub(crate) fn sigmoid(value: f32) -> f32 {
    1.0 / (1.0 + (-value).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_solved() {
        // The upper half is not read.
        let mut matrix = [4.0, 99.0, 99.0, 2.0, 5.0, 99.0, 1.0, 3.0, 6.0];
        let mut values = [9.0, 21.0, 25.0];
        factor(&mut matrix, 3, 0.1);
        solve(&matrix, &mut values);
        for (value, expected) in values.iter().zip([0.373_134, 2.268_657, 2.970_149]) {
            assert!((value - expected).abs() < 1e-5, "{values:?}");
        }
    }

    #[test]
    fn what_is_not_positive_is_made_so() {
        let mut matrix = [1.0, 0.0, 1.0, 1.0 - 1e-9];
        factor(&mut matrix, 2, 0.25);
        assert_eq!(matrix[3], 0.5);
    }
}
