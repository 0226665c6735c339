//! What people ask for every day, before anybody has asked for anything.
//!
//! A tool that is put like a request, or is about what everybody asks for, is like many requests, and that
//! says nothing of the one at hand. Past intents tell which tools are so; until there are some, requests
//! that were made up tell it. They are of all kinds, short and long, and stand in a file, one on each line.

use super::Vectors;

/// The requests, one on each line.
const REQUESTS: &str = include_str!("../everyday.txt");

/// Which share of the requests counts for an item, those that are most like it: what it has in common with
/// the others, every item has. Anything from a twentieth to a quarter ranks much the same.
const NEAREST: usize = 10;

/// The requests, as texts whose vectors [`Everyday`] is made of, in that order.
pub fn texts() -> impl Iterator<Item = &'static str> {
    REQUESTS.lines()
}

/// The requests, as vectors of one model.
#[derive(Debug, Clone, Default)]
pub struct Everyday {
    requests: Vectors,
}

impl Everyday {
    /// By the vectors of the [`texts`], or of some of them.
    ///
    /// # Panics
    /// If the vectors differ in length.
    pub fn of<V: AsRef<[f32]>>(vectors: &[V]) -> Everyday {
        let mut requests = Vectors::default();
        vectors.iter().for_each(|vector| requests.push(Some(vector.as_ref())));
        Everyday { requests }
    }

    /// The mean cosine of an item's vector and the requests that are most like it; `None` where they cannot be compared.
    pub(crate) fn likeness(&self, item: &[f32]) -> Option<f32> {
        let nearest = self.requests.nearest(item, self.requests.len().div_ceil(NEAREST));
        let sum: f32 = nearest.iter().map(|(_, cosine)| cosine).sum();
        (!nearest.is_empty()).then(|| sum / nearest.len() as f32)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn requests_are_many_and_each_is_there_once() {
        let all: Vec<&str> = texts().collect();
        assert!(all.len() >= 200, "{}", all.len());
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        assert!(all.iter().all(|text| !text.is_empty() && text.trim() == *text));
    }

    #[test]
    fn the_nearest_tenth_counts() {
        // Of twenty, two are near.
        let mut vectors = vec![vec![0.0_f32, 1.0]; 18];
        vectors.extend([vec![1.0, 0.0], vec![3.0, 4.0]]);
        let everyday = Everyday::of(&vectors);
        let likeness = everyday.likeness(&[2.0, 0.0]).unwrap_or_default();
        assert!((likeness - 0.8).abs() < 0.01, "{likeness}");
        assert_eq!(everyday.likeness(&[1.0, 0.0, 0.0]), None);
        assert_eq!(Everyday::default().likeness(&[1.0, 0.0]), None);
    }
}
