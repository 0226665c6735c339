//! Random numbers that follow from a seed, and the numbers that the environment sets.

/// Random numbers that are the same each time.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}

/// What an environment variable sets.
pub fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}
