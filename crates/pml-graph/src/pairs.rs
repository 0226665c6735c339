//! Words that stand side by side in an item's text.
//!
//! `present value` is not `value … present`: an item that has two words of a request next to each other, as
//! the request has them, is meant more often than one that has both somewhere. Words that say nothing do
//! not come between two others. Only pairs are kept, never the text.

use std::ops::Range;

/// What a pair counts that stands in a name, in units of its rarity, ...
const IN_NAME: f32 = 0.5;

/// ... and what it counts elsewhere.
const ELSEWHERE: f32 = 0.25;

/// Where a pair of terms stands, by their numbers in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    first: u32,
    second: u32,
    /// Twice the item's number, and one more where the pair does not stand in a name. Kept small, because
    /// there are more pairs than anything else.
    place: u32,
}

impl Pair {
    pub(crate) fn new(first: u32, second: u32, item: u32, in_name: bool) -> Pair {
        Pair { first, second, place: 2 * item + u32::from(!in_name) }
    }

    pub(crate) fn item(self) -> usize {
        (self.place / 2) as usize
    }

    /// What the pair is worth for the item, in units of its rarity.
    pub(crate) fn share(self) -> f32 {
        if self.place.is_multiple_of(2) { IN_NAME } else { ELSEWHERE }
    }

    fn moved(self, item: u32) -> Pair {
        Pair { place: 2 * item + self.place % 2, ..self }
    }
}

/// All pairs of a catalogue, in the order of their terms.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pairs(Vec<Pair>);

impl Pairs {
    /// The pairs of a changed catalogue: `moved` says which number each item has now, if it is still
    /// there; `new` are those of new items.
    pub(crate) fn updated(&self, moved: &[Option<u32>], mut new: Vec<Pair>) -> Pairs {
        new.sort_unstable();
        // Of a pair that stands in the name and elsewhere the one in the name comes first, and is enough.
        new.dedup_by_key(|pair| (pair.first, pair.second, pair.item()));
        let kept = self.0.iter().filter_map(|pair| Some(pair.moved(moved[pair.item()]?)));
        let mut all: Vec<Pair> = kept.chain(new).collect();
        // Two runs that are in order already: this only merges them.
        all.sort_by_key(|pair| (pair.first, pair.second));
        Pairs(all)
    }

    /// Gives terms other numbers, which have to be in the same order.
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

    /// Where `first` and `second` stand side by side, every item once.
    pub(crate) fn of(&self, first: u32, second: u32) -> &[Pair] {
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

    fn items(pairs: &Pairs, first: u32, second: u32) -> Vec<(usize, bool)> {
        let found = pairs.of(first, second).iter();
        found.map(|pair| (pair.item(), pair.share() == IN_NAME)).collect()
    }

    #[test]
    fn a_pair_is_found_in_its_order_and_counts_once_per_item() {
        let new = vec![
            Pair::new(1, 2, 0, false),
            Pair::new(1, 2, 0, true),
            Pair::new(1, 2, 4, false),
            Pair::new(2, 1, 3, true),
        ];
        let pairs = Pairs::default().updated(&[], new);
        assert_eq!(items(&pairs, 1, 2), [(0, true), (4, false)]);
        assert_eq!(items(&pairs, 2, 1), [(3, true)]);
        assert_eq!(items(&pairs, 1, 1), []);
    }

    #[test]
    fn pairs_go_with_their_items() {
        let before = Pairs::default().updated(&[], vec![Pair::new(5, 6, 0, true), Pair::new(5, 6, 1, false)]);
        let mut after = before.updated(&[None, Some(7)], vec![Pair::new(3, 9, 0, true)]);
        assert_eq!(items(&after, 5, 6), [(7, false)]);
        after.renumber(|term| term.checked_sub(3));
        assert_eq!((items(&after, 2, 3), items(&after, 0, 6)), (vec![(7, false)], vec![(0, true)]));
    }
}
