//! Integer dot products with the widest vector instructions of the processor.
//!
//! This is the only file of the crate with unsafe code. Integer sums do not depend on the order, so every code path
//! gives the same result.
#![allow(unsafe_code)]

/// Dot product of `wanted` with each row of the same length. The caller ensures that no sum exceeds 32 bits.
pub(crate) fn scalar_products(rows: &[i8], wanted: &[i16]) -> Vec<i32> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: AVX2 was just detected.
        return unsafe { products_avx2(rows, wanted) };
    }
    each(rows, wanted)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn products_avx2(rows: &[i8], wanted: &[i16]) -> Vec<i32> {
    /// Numbers per vector register.
    const LANES: usize = 16;
    use std::arch::x86_64::{
        __m256i, _mm_loadu_si128, _mm256_add_epi32, _mm256_cvtepi8_epi16, _mm256_loadu_si256,
        _mm256_madd_epi16, _mm256_setzero_si256, _mm256_storeu_si256,
    };
    let whole = wanted.len() / LANES * LANES;
    let of_row = |row: &[i8]| {
        let mut sums: __m256i = _mm256_setzero_si256();
        for at in (0..whole).step_by(LANES) {
            // SAFETY: there are `LANES` numbers from `at` on, in the row and in `wanted`.
            let (small, number) = unsafe {
                (
                    _mm_loadu_si128(row.as_ptr().add(at).cast()),
                    _mm256_loadu_si256(wanted.as_ptr().add(at).cast()),
                )
            };
            sums = _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_cvtepi8_epi16(small), number));
        }
        let mut lanes = [0_i32; 8];
        // SAFETY: the array has room for eight numbers of 32 bits.
        unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sums) };
        lanes.iter().sum::<i32>() + product(&row[whole..], &wanted[whole..])
    };
    rows.chunks_exact(wanted.len().max(1)).map(of_row).collect()
}

fn each(rows: &[i8], wanted: &[i16]) -> Vec<i32> {
    rows.chunks_exact(wanted.len().max(1)).map(|row| product(row, wanted)).collect()
}

fn product(row: &[i8], wanted: &[i16]) -> i32 {
    row.iter().zip(wanted).map(|(small, number)| i32::from(i16::from(*small)) * i32::from(*number)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_gives_the_same() {
        for columns in [1, 15, 16, 17, 384, 385] {
            let rows: Vec<i8> = (0..columns * 3).map(|at| (at * 89 % 255) as u8 as i8).collect();
            let wanted: Vec<i16> = (0..columns).map(|at| (at * 67 % 4095) as i16 - 2047).collect();
            let plain: Vec<i32> = rows
                .chunks(columns)
                .map(|row| row.iter().zip(&wanted).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum())
                .collect();
            assert_eq!(scalar_products(&rows, &wanted), plain, "{columns}");
            assert_eq!(each(&rows, &wanted), plain, "{columns}");
        }
        assert_eq!(scalar_products(&[], &[]), [0; 0]);
    }
}
