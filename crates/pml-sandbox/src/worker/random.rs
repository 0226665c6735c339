//! The numbers of `Math.random`: the same for the same seed, on every machine and in every version.

use std::cell::Cell;

/// SplitMix64: small, even, and enough for what is not secret.
#[derive(Default)]
pub(super) struct Random(Cell<u64>);

impl Random {
    pub(super) fn seed(&self, seed: u64) {
        self.0.set(seed);
    }

    /// From 0 up to but not 1, in steps of 2⁻⁵³.
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
    use super::Random;

    #[test]
    fn the_numbers_of_a_seed_never_change() {
        let random = Random::default();
        random.seed(1234567);
        // The reference values of SplitMix64 for this seed.
        let expected = [6457827717110365317_u64, 3203168211198807973, 9817491932198370423];
        for number in expected {
            assert_eq!(random.next(), (number >> 11) as f64 / (1_u64 << 53) as f64);
        }
    }
}
