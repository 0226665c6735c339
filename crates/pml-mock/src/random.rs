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

    /// One of `choices`.
    pub(crate) fn pick<'c, T>(&mut self, choices: &'c [T]) -> Option<&'c T> {
        choices.get(self.below(choices.len()))
    }
}
