//! Everyday requests: a prior for how similar an item is to requests in general.
//!
//! An item that is worded like a request, or is about what everybody asks for, is similar to many requests; that says
//! nothing about the request at hand. Past intents show which items these are. Until there are any, made-up requests
//! show it. They are of all kinds, short and long, and stand in a file, one per line.

use super::VectorTable;

/// The requests, one per line.
const REQUESTS: &str = include_str!("../everyday.txt");

/// Divisor of the number of requests: the tenth most similar to an item counts. What an item has in common with the
/// others, every item has. Any share from a twentieth to a quarter ranks much the same.
const NEAREST: usize = 10;

/// The everyday requests as texts; [`EverydayVectors`] is made from their vectors, in this order.
pub fn everyday_texts() -> impl Iterator<Item = &'static str> {
    REQUESTS.lines()
}

/// The vectors of the everyday requests, all of one model.
#[derive(Debug, Clone, Default)]
pub struct EverydayVectors {
    requests: VectorTable,
}

impl EverydayVectors {
    /// Makes the table from the vectors of the [`everyday_texts`], or of some of them.
    ///
    /// # Panics
    /// If the vectors differ in length.
    pub fn from_vectors<V: AsRef<[f32]>>(vectors: &[V]) -> EverydayVectors {
        let mut requests = VectorTable::default();
        vectors.iter().for_each(|vector| requests.push(Some(vector.as_ref())));
        EverydayVectors { requests }
    }

    /// Mean cosine of an item's vector with the most similar requests; `None` when they cannot be compared.
    pub(crate) fn mean_similarity(&self, item: &[f32]) -> Option<f32> {
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
        let all: Vec<&str> = everyday_texts().collect();
        assert!(all.len() >= 200, "{}", all.len());
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        assert!(all.iter().all(|text| !text.is_empty() && text.trim() == *text));
    }

    #[test]
    fn the_nearest_tenth_counts() {
        // Two of twenty are near.
        let mut vectors = vec![vec![0.0_f32, 1.0]; 18];
        vectors.extend([vec![1.0, 0.0], vec![3.0, 4.0]]);
        let everyday = EverydayVectors::from_vectors(&vectors);
        let likeness = everyday.mean_similarity(&[2.0, 0.0]).unwrap_or_default();
        assert!((likeness - 0.8).abs() < 0.01, "{likeness}");
        assert_eq!(everyday.mean_similarity(&[1.0, 0.0, 0.0]), None);
        assert_eq!(EverydayVectors::default().mean_similarity(&[1.0, 0.0]), None);
    }
}
