//! A matrix of eight-bit weights: how it is made from a precise one, and how rows are multiplied with it.
//!
//! weight = value of its code × scale of its row × factor of its column. With row scales alone, a few columns with large weights
//! leave little precision to all others. Factors per column cost nothing when it is multiplied: they go to the input, which is
//! rounded to more bits and has precision to spare.

use std::ops::Range;

use crate::code;
use crate::kernel::{self, Level, UNIT, wide};
use crate::math;
use crate::parts::Parts;

/// A matrix as it is kept.
pub(crate) struct Rounded {
    pub(crate) codes: Vec<u8>,
    pub(crate) scales: Vec<f32>,
    pub(crate) columns: Vec<f32>,
}

/// Rounds a matrix of rows of `width` numbers.
pub(crate) fn round(weights: &[f32], width: usize) -> Rounded {
    let columns = column_factors(weights, width);
    let mut rounded = Rounded { codes: Vec::with_capacity(weights.len()), scales: Vec::new(), columns };
    let mut row = Vec::with_capacity(width);
    for weights in weights.chunks_exact(width) {
        row.clear();
        row.extend(weights.iter().zip(&rounded.columns).map(|(weight, factor)| weight / factor));
        rounded.scales.push(code::encode(&row, &mut rounded.codes));
    }
    rounded
}

/// How large the weights of each column are: the root of their root mean square, half of the way on a logarithmic scale from
/// all the same. All of the way overdoes it where a column is small but for single weights.
fn column_factors(weights: &[f32], width: usize) -> Vec<f32> {
    let mut squares = vec![0.0_f64; width];
    for row in weights.chunks_exact(width) {
        for (square, weight) in squares.iter_mut().zip(row) {
            *square += f64::from(*weight) * f64::from(*weight);
        }
    }
    let rows = (weights.len() / width) as f64;
    let factor = |square: f64| (square / rows).sqrt().sqrt() as f32;
    squares.into_iter().map(|square| if square > 0.0 { factor(square) } else { 1.0 }).collect()
}

/// A matrix that is used.
#[derive(Debug)]
pub(crate) struct Linear {
    codes: Range<usize>,
    scales: Vec<f32>,
    columns: Vec<f32>,
    bias: Vec<f32>,
}

/// What is done with a number after its bias was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Nothing,
    Gelu,
}

/// Room for what lies between input and output, used again and again.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    input: Vec<i16>,
    scales: Vec<f32>,
    sums: Vec<i32>,
}

impl Linear {
    pub(crate) fn new(parts: &Parts, name: &str, rows: usize, columns: usize) -> Result<Linear, String> {
        Ok(Linear {
            codes: parts.place(name, "I8", &[rows, columns])?,
            scales: parts.floats(&format!("{name}.scales"), &[rows])?,
            columns: parts.floats(&format!("{name}.columns"), &[columns])?,
            bias: parts.floats(&format!("{name}.bias"), &[rows])?,
        })
    }

    /// Multiplies every row of `input` with the matrix, whose codes are in `bytes`.
    pub(crate) fn apply(
        &self,
        bytes: &[u8],
        level: Level,
        input: &[f32],
        then: Then,
        scratch: &mut Scratch,
        out: &mut Vec<f32>,
    ) {
        let (rows, columns) = (self.scales.len(), self.columns.len());
        let tokens = input.len() / columns;
        // No sum of this many products can exceed 32 bits.
        let limit = (i32::MAX / (i32::from(code::LARGEST) * columns as i32)).min(i32::from(i16::MAX)) as f32;
        scratch.input.resize(tokens * columns, 0);
        scratch.scales.clear();
        for (row, whole) in input.chunks_exact(columns).zip(scratch.input.chunks_exact_mut(columns)) {
            scratch.scales.push(wide(level, || math::quantise(row, &self.columns, limit, whole)));
        }
        scratch.sums.resize(tokens * rows, 0);
        kernel::multiply(level, &bytes[self.codes.clone()], columns, &scratch.input, &mut scratch.sums);
        out.resize(tokens * rows, 0.0);
        for ((sums, scale), out) in
            scratch.sums.chunks_exact(rows).zip(&scratch.scales).zip(out.chunks_exact_mut(rows))
        {
            match then {
                Then::Nothing => wide(level, || self.finish(sums, *scale, |x| x, out)),
                Then::Gelu => wide(level, || self.finish(sums, *scale, math::gelu, out)),
            }
        }
    }

    #[inline(always)]
    fn finish(&self, sums: &[i32], scale: f32, then: impl Fn(f32) -> f32, out: &mut [f32]) {
        let factors = self.scales.as_chunks::<UNIT>().0.iter().zip(self.bias.as_chunks::<UNIT>().0);
        let sums = sums.as_chunks::<UNIT>().0.iter();
        // Whole units of known length: compilers make vectors of nothing less plain.
        for ((out, sums), (rows, biases)) in out.as_chunks_mut::<UNIT>().0.iter_mut().zip(sums).zip(factors) {
            for lane in 0..UNIT {
                out[lane] = then(sums[lane] as f32 * (scale * rows[lane]) + biases[lane]);
            }
        }
    }
}
