//! Reproducible random numbers, the same on every machine and in every version.

use pml_model::Digest;

use crate::MockRequest;

/// The SplitMix64 generator: small, and its numbers are fixed by its definition.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// The numbers for one call: they depend on seed, tool and arguments. The variant is left out, so that variants
    /// of one call differ only where they are meant to.
    pub(crate) fn for_request(request: &MockRequest<'_>) -> Random {
        let text = request.arguments.to_string();
        let arguments = pml_model::json::canonical_json(&text).unwrap_or(text);
        let digest = Digest::of(format!("{}\n{}\n{arguments}", request.seed, request.tool).as_bytes());
        Random(u64::from_str_radix(&digest.as_str()[..16], 16).unwrap_or(request.seed))
    }

    /// The numbers for one place of a value. Each place has its own, so that what is generated at one place does not
    /// depend on how much was generated before it.
    pub(crate) fn at(&self, place: &str, salt: u64) -> Random {
        // FNV-1a.
        let hash = place.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut made = Random(self.0 ^ hash ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        made.next();
        made
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to but not including `end`; 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { usize::try_from(self.next() % end as u64).unwrap_or(0) }
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = high.abs_diff(low);
        let step = if span == u64::MAX { self.next() } else { self.next() % (span + 1) };
        low.wrapping_add_unsigned(step)
    }

    /// One of `choices`, which are not empty.
    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// `digits` hexadecimal digits.
    pub(crate) fn hex(&mut self, digits: usize) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        (0..digits).map(|_| char::from(DIGITS[self.below(16)])).collect()
    }
}
