//! Code that depends on the processor: integer matrix products, and the vector width of everything else.
//!
//! This is the only file of the crate with unsafe code. Every level gives the same numbers: integer products have no
//! rounding, and `with_wide_vectors` changes which instructions are used, not what they compute.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::code;

/// Both dimensions of every matrix are a multiple of this.
pub(crate) const UNIT: usize = 32;

/// Tokens per block: each loaded weight is used for all of them.
const TOKENS: usize = 4;

/// Weight rows decoded per block. Together with the tokens of the block they fit into the L1 cache.
const ROWS: usize = 8;

/// SIMD level of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SimdLevel {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl SimdLevel {
    /// All levels that this processor supports, the fastest last.
    pub(crate) fn all() -> Vec<SimdLevel> {
        let mut all = vec![SimdLevel::Portable];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            all.push(SimdLevel::Avx2);
            if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vnni") {
                all.push(SimdLevel::Avx512);
            }
        }
        all
    }

    pub(crate) fn best() -> SimdLevel {
        SimdLevel::all().pop().unwrap_or(SimdLevel::Portable)
    }
}

/// Runs `work` compiled for the widest vectors available. Only code that is inlined into it profits.
#[inline(always)]
pub(crate) fn with_wide_vectors<R>(level: SimdLevel, work: impl FnOnce() -> R) -> R {
    match level {
        SimdLevel::Portable => work(),
        // SAFETY: these levels are made only by `SimdLevel::all`, after it detected AVX2.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 | SimdLevel::Avx512 => unsafe { wide_avx2(work) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn wide_avx2<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Products of all rows of `weights` (codes) with all rows of `input`, both of `columns` numbers. `sums` gets one row
/// for each row of `input`. The caller ensures that no sum exceeds 32 bits.
pub(crate) fn multiply_quantised(
    level: SimdLevel,
    weights: &[u8],
    columns: usize,
    input: &[i16],
    sums: &mut [i32],
) {
    let rows = weights.len() / columns;
    assert!(
        columns.is_multiple_of(UNIT) && rows.is_multiple_of(ROWS) && weights.len() == rows * columns,
        "matrices are of whole units"
    );
    assert!(
        input.len().is_multiple_of(columns) && sums.len() == input.len() / columns * rows,
        "each input has its sums"
    );
    let block = match level {
        SimdLevel::Portable => portable,
        // SAFETY: as in `with_wide_vectors`, a level exists only when the processor supports it.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 => |weights: &[i16], columns, input: &[i16], found: &mut BlockSums| unsafe {
            avx2(weights, columns, input, found);
        },
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 => |weights: &[i16], columns, input: &[i16], found: &mut BlockSums| unsafe {
            avx512(weights, columns, input, found);
        },
    };
    let mut decoded = vec![0; ROWS * columns];
    let mut found = [[0; TOKENS]; ROWS];
    for (index, weights) in weights.chunks_exact(ROWS * columns).enumerate() {
        with_wide_vectors(level, || code::decode_all(weights, &mut decoded));
        for (input, sums) in input.chunks(TOKENS * columns).zip(sums.chunks_mut(TOKENS * rows)) {
            block(&decoded, columns, input, &mut found);
            for (token, sums) in sums.chunks_exact_mut(rows).enumerate() {
                for row in 0..ROWS {
                    sums[index * ROWS + row] = found[row][token];
                }
            }
        }
    }
}

/// Sums of one block, by weight row and then by token.
type BlockSums = [[i32; TOKENS]; ROWS];

fn portable(weights: &[i16], columns: usize, input: &[i16], found: &mut BlockSums) {
    for (weights, found) in weights.chunks_exact(columns).zip(found) {
        for (input, found) in input.chunks_exact(columns).zip(found) {
            *found =
                weights.iter().zip(input).map(|(weight, input)| i32::from(*weight) * i32::from(*input)).sum();
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(weights: &[i16], columns: usize, input: &[i16], found: &mut BlockSums) {
    // Sixteen registers hold the sums of two rows and their operands.
    for (weights, found) in weights.chunks_exact(2 * columns).zip(found.as_chunks_mut().0) {
        match input.len() / columns {
            1 => avx2_block::<1>(weights, columns, input, found),
            2 => avx2_block::<2>(weights, columns, input, found),
            3 => avx2_block::<3>(weights, columns, input, found),
            _ => avx2_block::<4>(weights, columns, input, found),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2_block<const T: usize>(
    weights: &[i16],
    columns: usize,
    input: &[i16],
    found: &mut [[i32; TOKENS]; 2],
) {
    assert!(weights.len() >= 2 * columns && input.len() >= T * columns && columns.is_multiple_of(UNIT));
    let mut sums = [[_mm256_setzero_si256(); 2]; T];
    for at in (0..columns).step_by(16) {
        // SAFETY: `at + 16 <= columns`, and there are two rows of weights and `T` of input.
        let weight =
            |row: usize| unsafe { _mm256_loadu_si256(weights.as_ptr().add(row * columns + at).cast()) };
        let value =
            |token: usize| unsafe { _mm256_loadu_si256(input.as_ptr().add(token * columns + at).cast()) };
        let weights = [weight(0), weight(1)];
        for (token, sums) in sums.iter_mut().enumerate() {
            let value = value(token);
            for (sum, weight) in sums.iter_mut().zip(weights) {
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(weight, value));
            }
        }
    }
    for (token, sums) in sums.into_iter().enumerate() {
        for (found, sum) in found.iter_mut().zip(sums) {
            let sum = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
            let sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b00_00_11_10>(sum));
            let sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b00_00_00_01>(sum));
            found[token] = _mm_cvtsi128_si32(sum);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw,avx512vnni")]
fn avx512(weights: &[i16], columns: usize, input: &[i16], found: &mut BlockSums) {
    for (weights, found) in weights.chunks_exact(4 * columns).zip(found.as_chunks_mut().0) {
        match input.len() / columns {
            1 => avx512_block::<1>(weights, columns, input, found),
            2 => avx512_block::<2>(weights, columns, input, found),
            3 => avx512_block::<3>(weights, columns, input, found),
            _ => avx512_block::<4>(weights, columns, input, found),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw,avx512vnni")]
fn avx512_block<const T: usize>(
    weights: &[i16],
    columns: usize,
    input: &[i16],
    found: &mut [[i32; TOKENS]; 4],
) {
    assert!(weights.len() >= 4 * columns && input.len() >= T * columns && columns.is_multiple_of(UNIT));
    let mut sums = [[_mm512_setzero_si512(); T]; 4];
    for at in (0..columns).step_by(UNIT) {
        // SAFETY: `at + 32 <= columns`, and there are four rows of weights and `T` of input.
        let weight =
            |row: usize| unsafe { _mm512_loadu_si512(weights.as_ptr().add(row * columns + at).cast()) };
        let value =
            |token: usize| unsafe { _mm512_loadu_si512(input.as_ptr().add(token * columns + at).cast()) };
        let values: [__m512i; T] = std::array::from_fn(value);
        for (row, sums) in sums.iter_mut().enumerate() {
            let weight = weight(row);
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum = _mm512_dpwssd_epi32(*sum, weight, value);
            }
        }
    }
    for (found, sums) in found.iter_mut().zip(sums) {
        for (found, sum) in found.iter_mut().zip(sums) {
            *found = _mm512_reduce_add_epi32(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SimdLevel, multiply_quantised};
    use crate::code;

    /// Deterministic pseudorandom numbers.
    fn noise(count: usize, seed: u32) -> impl Iterator<Item = u32> {
        let mut state = seed;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        })
        .take(count)
    }

    #[test]
    fn every_level_gives_the_same_sums() {
        for (rows, columns, tokens) in [(8, 32, 1), (32, 64, 2), (16, 384, 7), (8, 1536, 21), (384, 96, 128)]
        {
            let weights: Vec<u8> =
                noise(rows * columns, 1).map(|x| (x % 255) as i16 - 127).map(|x| x as i8 as u8).collect();
            let input: Vec<i16> = noise(tokens * columns, 2).map(|x| (x % 4001) as i16 - 2000).collect();
            let mut expected = vec![0; rows * tokens];
            for (place, sum) in expected.iter_mut().enumerate() {
                let (token, row) = (place / rows, place % rows);
                *sum = (0..columns)
                    .map(|k| {
                        i32::from(code::decode(weights[row * columns + k]))
                            * i32::from(input[token * columns + k])
                    })
                    .sum();
            }
            for level in SimdLevel::all() {
                let mut sums = vec![0; rows * tokens];
                multiply_quantised(level, &weights, columns, &input, &mut sums);
                assert!(sums == expected, "{level:?} at {rows} x {columns}, {tokens} tokens");
            }
        }
    }
}
