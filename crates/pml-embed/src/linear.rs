//! A matrix of eight-bit weights: quantisation, and multiplication of rows with it.
//!
//! weight = value of its code × scale of its row × factor of its column. With row scales alone, a few columns with
//! large weights would leave little precision to all others. Column factors cost nothing in the multiplication: they
//! are applied to the input, which is quantised to more bits and has precision to spare.

use std::ops::Range;

use crate::code;
use crate::kernel::{self, SimdLevel, UNIT, with_wide_vectors};
use crate::math;
use crate::parts::ModelTensors;

/// A matrix as it is stored.
pub(crate) struct QuantisedMatrix {
    pub(crate) codes: Vec<u8>,
    pub(crate) scales: Vec<f32>,
    pub(crate) columns: Vec<f32>,
}

/// Quantises a matrix of rows of `width` numbers.
pub(crate) fn quantise_matrix(weights: &[f32], width: usize) -> QuantisedMatrix {
    let columns = column_factors(weights, width);
    let mut rounded =
        QuantisedMatrix { codes: Vec::with_capacity(weights.len()), scales: Vec::new(), columns };
    let mut row = Vec::with_capacity(width);
    for weights in weights.chunks_exact(width) {
        row.clear();
        row.extend(weights.iter().zip(&rounded.columns).map(|(weight, factor)| weight / factor));
        rounded.scales.push(code::encode_row(&row, &mut rounded.codes));
    }
    rounded
}

/// Factor of each column: the square root of the root mean square of its weights, which is halfway between no factor
/// and the full one on a logarithmic scale. The full factor overdoes it for a column that is small except for single
/// weights.
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

/// A linear layer; its codes stay in the bytes of the model.
#[derive(Debug)]
pub(crate) struct Linear {
    codes: Range<usize>,
    scales: Vec<f32>,
    columns: Vec<f32>,
    bias: Vec<f32>,
}

/// Activation function, applied after the bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinearActivation {
    Identity,
    Gelu,
}

/// Reusable buffers for the intermediate results of a layer.
#[derive(Debug, Default)]
pub(crate) struct LinearScratch {
    input: Vec<i16>,
    scales: Vec<f32>,
    sums: Vec<i32>,
}

impl Linear {
    pub(crate) fn new(
        parts: &ModelTensors,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Linear, String> {
        Ok(Linear {
            codes: parts.tensor_range(name, "I8", &[rows, columns])?,
            scales: parts.floats(&format!("{name}.scales"), &[rows])?,
            columns: parts.floats(&format!("{name}.columns"), &[columns])?,
            bias: parts.floats(&format!("{name}.bias"), &[rows])?,
        })
    }

    /// Multiplies every row of `input` with the matrix, whose codes are in `bytes`.
    pub(crate) fn apply(
        &self,
        bytes: &[u8],
        level: SimdLevel,
        input: &[f32],
        then: LinearActivation,
        scratch: &mut LinearScratch,
        out: &mut Vec<f32>,
    ) {
        let (rows, columns) = (self.scales.len(), self.columns.len());
        let tokens = input.len() / columns;
        // With inputs up to this limit no sum of products exceeds 32 bits.
        let limit = (i32::MAX / (i32::from(code::LARGEST) * columns as i32)).min(i32::from(i16::MAX)) as f32;
        scratch.input.resize(tokens * columns, 0);
        scratch.scales.clear();
        for (row, whole) in input.chunks_exact(columns).zip(scratch.input.chunks_exact_mut(columns)) {
            scratch
                .scales
                .push(with_wide_vectors(level, || math::quantise(row, &self.columns, limit, whole)));
        }
        scratch.sums.resize(tokens * rows, 0);
        kernel::multiply_quantised(
            level,
            &bytes[self.codes.clone()],
            columns,
            &scratch.input,
            &mut scratch.sums,
        );
        out.resize(tokens * rows, 0.0);
        for ((sums, scale), out) in
            scratch.sums.chunks_exact(rows).zip(&scratch.scales).zip(out.chunks_exact_mut(rows))
        {
            match then {
                LinearActivation::Identity => {
                    with_wide_vectors(level, || self.finish(sums, *scale, |x| x, out));
                }
                LinearActivation::Gelu => {
                    with_wide_vectors(level, || self.finish(sums, *scale, math::gelu, out));
                }
            }
        }
    }

    #[inline(always)]
    fn finish(&self, sums: &[i32], scale: f32, then: impl Fn(f32) -> f32, out: &mut [f32]) {
        let factors = self.scales.as_chunks::<UNIT>().0.iter().zip(self.bias.as_chunks::<UNIT>().0);
        let sums = sums.as_chunks::<UNIT>().0.iter();
        // Chunks of a constant length: compilers vectorise only such plain loops.
        for ((out, sums), (rows, biases)) in out.as_chunks_mut::<UNIT>().0.iter_mut().zip(sums).zip(factors) {
            for lane in 0..UNIT {
                out[lane] = then(sums[lane] as f32 * (scale * rows[lane]) + biases[lane]);
            }
        }
    }
}
