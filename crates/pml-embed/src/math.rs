//! Elementwise and row functions between the matrix products.
//!
//! They use plain arithmetic in a fixed order, a few lanes side by side, so that compilers vectorise them and every
//! machine gets the same result. They call no mathematical functions of the system.

/// Number of lanes that are summed side by side.
const LANES: usize = 16;

/// Adding and subtracting this rounds a number below 2²² to an integer, ties to even.
const ROUNDER: f32 = 12_582_912.0;

/// The integer nearest to `x`, for |x| < 2²².
#[inline(always)]
fn round(x: f32) -> i32 {
    (x + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits()) as i32
}

#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// e to the power of `x`, which is at most 0, to about seven digits.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // Below this the result would be subnormal.
    let x = larger(x, -87.0);
    let power = round(x * std::f32::consts::LOG2_E);
    let whole = power as f32;
    // ln 2 in two parts; the first has so few digits that the product is exact.
    let rest = x - whole * 0.693_359_4 + whole * 2.121_944_4e-4;
    let series = [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];
    let series = series.iter().fold(0.0, |sum, factor| sum * rest + factor);
    (series * rest * rest + rest + 1.0) * f32::from_bits((power.wrapping_add(127) << 23) as u32)
}

/// GELU: `x` times the probability that a normal variable is below it. The error function is that of Abramowitz and
/// Stegun, 7.1.26, accurate to 1.5e-7.
#[inline(always)]
pub(crate) fn gelu(x: f32) -> f32 {
    let size = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * size);
    let series = [1.061_405_4, -1.453_152, 1.421_413_8, -0.284_496_74, 0.254_829_6];
    let series = series.iter().fold(0.0, |sum, factor| sum * t + factor) * t;
    let tail = 0.5 * series * exp(-size * size);
    x * if x > 0.0 { 1.0 - tail } else { tail }
}

/// The sum of `of` over all numbers, lane by lane; their count is a multiple of [`LANES`].
#[inline(always)]
fn sum(numbers: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    for chunk in numbers.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            lanes[lane] += of(chunk[lane]);
        }
    }
    lanes.iter().sum()
}

/// Softmax of `scores` in place. Only the first `count` entries take part; the others become zero. The length is a
/// multiple of [`LANES`].
#[inline(always)]
pub(crate) fn softmax(scores: &mut [f32], count: usize) {
    scores[count..].fill(f32::MIN);
    let mut lanes = [f32::MIN; LANES];
    for chunk in scores.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            lanes[lane] = larger(chunk[lane], lanes[lane]);
        }
    }
    let most = lanes.into_iter().fold(f32::MIN, larger);
    for score in scores.iter_mut() {
        *score = exp(*score - most);
    }
    scores[count..].fill(0.0);
    let share = 1.0 / sum(scores, |score| score);
    for score in scores.iter_mut() {
        *score *= share;
    }
}

/// Normalises a row to mean 0 and variance 1, then applies the learned weight and bias.
#[inline(always)]
pub(crate) fn layer_norm(row: &mut [f32], weight: &[f32], bias: &[f32], epsilon: f32) {
    let count = row.len() as f32;
    let mean = sum(row, |x| x) / count;
    let variance = sum(row, |x| (x - mean) * (x - mean)) / count;
    let factor = 1.0 / (variance + epsilon).sqrt();
    for ((x, weight), bias) in row.iter_mut().zip(weight).zip(bias) {
        *x = (*x - mean) * factor * weight + bias;
    }
}

/// Scales a row to length 1; a zero row is unchanged.
pub(crate) fn scale_to_unit_length(row: &mut [f32]) {
    let length = sum(row, |x| x * x).sqrt();
    if length > 0.0 {
        row.iter_mut().for_each(|x| *x /= length);
    }
}

/// Multiplies each number of `row` with the factor of its column and rounds it to an integer of at most `limit`.
/// Returns the scale that the integers must be multiplied with.
#[inline(always)]
pub(crate) fn quantise(row: &[f32], factors: &[f32], limit: f32, out: &mut [i16]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    for (row, factors) in row.as_chunks::<LANES>().0.iter().zip(factors.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            lanes[lane] = larger((row[lane] * factors[lane]).abs(), lanes[lane]);
        }
    }
    let most = lanes.into_iter().fold(f32::MIN_POSITIVE, larger);
    let inverse = limit / most;
    for ((x, factor), out) in row.iter().zip(factors).zip(out) {
        *out = round(x * factor * inverse) as i16;
    }
    most / limit
}

#[cfg(test)]
mod tests {
    use super::{exp, gelu, softmax};

    #[test]
    fn exp_is_right_to_seven_digits() {
        for step in 0..8_700 {
            let x = -(step as f32) / 100.0;
            let (found, expected) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((found / expected - 1.0).abs() < 3e-7, "exp({x}) is {expected:e}, not {found:e}");
        }
    }

    /// Reference values from a table of the normal distribution.
    #[test]
    fn gelu_is_right_to_six_digits() {
        for (x, expected) in [
            (0.0, 0.0),
            (0.1, 0.053_982_784),
            (1.0, 0.841_344_8),
            (-1.0, -0.158_655_25),
            (2.5, 2.484_475_8),
            (-3.0, -0.004_049_694),
            (8.0, 8.0),
            (-40.0, 0.0),
        ] {
            assert!((gelu(x) - expected).abs() < 1e-6, "gelu({x}) is {expected}, not {}", gelu(x));
        }
    }

    #[test]
    fn what_does_not_count_has_no_chance() {
        let mut scores = [1.0; 32];
        scores[30..].fill(1e30);
        softmax(&mut scores, 30);
        assert!((scores[0] - 1.0 / 30.0).abs() < 1e-7 && scores[30] == 0.0, "{scores:?}");
    }
}
