//! Index of adjacent word pairs in the text of items.
//!
//! `present value` is not `value … present`: an item that has two words of a request adjacent, in the same order, is
//! the right one more often than an item that has both somewhere. Stop words do not separate two words. Only pairs are
//! stored, never the text.

use std::ops::Range;

/// Weight of a pair in a name, in units of its rarity.
const IN_NAME: f32 = 0.5;

/// Weight of a pair elsewhere, in units of its rarity.
const ELSEWHERE: f32 = 0.25;

/// Posting of a pair of terms, by their numbers in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PairPosting {
    first: u32,
    second: u32,
    /// Twice the item's number, plus one when the pair is not in a name. Packed, because there are more pairs than
    /// anything else.
    place: u32,
}

impl PairPosting {
    pub(crate) fn new(first: u32, second: u32, item: u32, in_name: bool) -> PairPosting {
        PairPosting { first, second, place: 2 * item + u32::from(!in_name) }
    }

    pub(crate) fn item(self) -> usize {
        (self.place / 2) as usize
    }

    /// Weight of the pair for the item, in units of its rarity.
    pub(crate) fn share(self) -> f32 {
        if self.place.is_multiple_of(2) { IN_NAME } else { ELSEWHERE }
    }

    fn moved(self, item: u32) -> PairPosting {
        PairPosting { place: 2 * item + self.place % 2, ..self }
    }
}

/// All pairs of a catalogue, sorted by their terms.
#[derive(Debug, Clone, Default)]
pub(crate) struct TermPairs(Vec<PairPosting>);

impl TermPairs {
    /// Pairs of a changed catalogue. `moved` maps each old item number to the new one, if the item still exists; `new`
    /// are the pairs of new items.
    pub(crate) fn with_items(&self, moved: &[Option<u32>], mut new: Vec<PairPosting>) -> TermPairs {
        new.sort_unstable();
        // A pair in the name sorts before the same pair elsewhere, and is the one to keep.
        new.dedup_by_key(|pair| (pair.first, pair.second, pair.item()));
        let kept = self.0.iter().filter_map(|pair| Some(pair.moved(moved[pair.item()]?)));
        let mut all: Vec<PairPosting> = kept.chain(new).collect();
        // Two sorted runs: the stable sort only merges them.
        all.sort_by_key(|pair| (pair.first, pair.second));
        TermPairs(all)
    }

    /// Renumbers terms; the mapping must keep their order.
    pub(crate) fn renumber(&mut self, number: impl Fn(u32) -> Option<u32>) {
        self.0.retain_mut(|pair| match (number(pair.first), number(pair.second)) {
            (Some(first), Some(second)) => {
                (pair.first, pair.second) = (first, second);
                true
            }
            // An item that has a pair has both of its terms.
            _ => false,
        });
    }

    /// Postings of the adjacent terms `first` and `second`, one per item.
    pub(crate) fn postings_of(&self, first: u32, second: u32) -> &[PairPosting] {
        &self.0[self.range(first, second)]
    }

    fn range(&self, first: u32, second: u32) -> Range<usize> {
        let start = self.0.partition_point(|pair| (pair.first, pair.second) < (first, second));
        let same = self.0[start..].partition_point(|pair| (pair.first, pair.second) == (first, second));
        start..start + same
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(pairs: &TermPairs, first: u32, second: u32) -> Vec<(usize, bool)> {
        let found = pairs.postings_of(first, second).iter();
        found.map(|pair| (pair.item(), pair.share() == IN_NAME)).collect()
    }

    #[test]
    fn a_pair_is_found_in_its_order_and_counts_once_per_item() {
        let new = vec![
            PairPosting::new(1, 2, 0, false),
            PairPosting::new(1, 2, 0, true),
            PairPosting::new(1, 2, 4, false),
            PairPosting::new(2, 1, 3, true),
        ];
        let pairs = TermPairs::default().with_items(&[], new);
        assert_eq!(items(&pairs, 1, 2), [(0, true), (4, false)]);
        assert_eq!(items(&pairs, 2, 1), [(3, true)]);
        assert_eq!(items(&pairs, 1, 1), []);
    }

    #[test]
    fn pairs_go_with_their_items() {
        let before = TermPairs::default()
            .with_items(&[], vec![PairPosting::new(5, 6, 0, true), PairPosting::new(5, 6, 1, false)]);
        let mut after = before.with_items(&[None, Some(7)], vec![PairPosting::new(3, 9, 0, true)]);
        assert_eq!(items(&after, 5, 6), [(7, false)]);
        after.renumber(|term| term.checked_sub(3));
        assert_eq!((items(&after, 2, 3), items(&after, 0, 6)), (vec![(7, false)], vec![(0, true)]));
    }
}
