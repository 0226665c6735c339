//! Symmetric linear systems by Cholesky decomposition. Matrices are square and stored row by row; only the lower half
//! is read and written.

/// Replaces `matrix` by the lower factor `L` of `L · Lᵀ = matrix`. A matrix that rounding made non-positive is
/// corrected: the square of each diagonal element is at least `least`.
pub(crate) fn cholesky_factor(matrix: &mut [f64], size: usize, least: f64) {
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

/// Solves `(L · Lᵀ) · x = values` in place.
pub(crate) fn cholesky_solve(lower: &[f64], values: &mut [f64]) {
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

/// Dot product with four independent sums, because a single one would wait for each addition.
fn product(a: &[f64], b: &[f64]) -> f64 {
    let (a_fours, a_rest) = a.as_chunks::<4>();
    let (b_fours, b_rest) = b.as_chunks::<4>();
    let mut sums = [0.0; 4];
    for (a, b) in a_fours.iter().zip(b_fours) {
        (0..4).for_each(|lane| sums[lane] += a[lane] * b[lane]);
    }
    sums.iter().sum::<f64>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f64>()
}

/// Logistic function: evidence to probability.
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
        cholesky_factor(&mut matrix, 3, 0.1);
        cholesky_solve(&matrix, &mut values);
        for (value, expected) in values.iter().zip([0.373_134, 2.268_657, 2.970_149]) {
            assert!((value - expected).abs() < 1e-5, "{values:?}");
        }
    }

    #[test]
    fn what_is_not_positive_is_made_so() {
        let mut matrix = [1.0, 0.0, 1.0, 1.0 - 1e-9];
        cholesky_factor(&mut matrix, 2, 0.25);
        assert_eq!(matrix[3], 0.5);
    }
}
