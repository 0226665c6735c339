//! The generator behind `Math.random`: the same sequence for the same seed, on every machine and in every version.

use std::cell::Cell;

/// SplitMix64: small, uniform, and good enough for numbers that are not secret.
#[derive(Default)]
pub(super) struct SeededRandom(Cell<u64>);

impl SeededRandom {
    pub(super) fn seed(&self, seed: u64) {
        self.0.set(seed);
    }

    /// The next number in [0, 1), a multiple of 2⁻⁵³.
    pub(super) fn next(&self) -> f64 {
        self.0.set(self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut mixed = self.0.get();
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::SeededRandom;

    #[test]
    fn the_numbers_of_a_seed_never_change() {
        let random = SeededRandom::default();
        random.seed(1234567);
        // The reference values of SplitMix64 for this seed.
        let expected = [6457827717110365317_u64, 3203168211198807973, 9817491932198370423];
        for number in expected {
            assert_eq!(random.next(), (number >> 11) as f64 / (1_u64 << 53) as f64);
        }
    }
}
