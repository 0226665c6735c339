//! Scores of each item for a request and its parts, by one kind of evidence.
//!
//! Different kinds of evidence have different units; here they are standardised, so that they can be added.

use crate::lexical::LexicalIndex;
use crate::request::RequestTerms;
use crate::vectors::VectorTable;
use crate::weights::RankWeights;

/// Vectors of items and request, all of one model.
#[derive(Debug, Clone, Copy)]
pub struct DenseEvidence<'a> {
    /// One vector per item, in catalogue order, each of the item's [`document_text`](crate::vectors::document_text).
    pub items: &'a VectorTable,
    /// Vector of the whole request.
    pub whole: &'a [f32],
    /// Vectors of its [`split_parts`](crate::request::split_parts), in that order.
    pub parts: &'a [Vec<f32>],
}

/// Number of most similar items that show how clearly a part is answered: a single one may be similar by chance.
const PEAK: usize = 3;

/// Minimum peak, as a cosine; smaller ones are noise.
const LEAST_PEAK: f32 = 0.05;

/// Scores of each item for a request and its parts.
pub(crate) struct PartScores {
    pub(crate) whole: Vec<f32>,
    /// Scores per part; empty when the whole is the only part.
    parts: Vec<Vec<f32>>,
    /// Weight of the best part.
    part_weight: f32,
}

impl PartScores {
    pub(crate) fn score_by_words(
        request: &RequestTerms,
        index: &LexicalIndex,
        weights: &RankWeights,
    ) -> PartScores {
        let mut whole = vec![0.0; index.len()];
        let only = request.parts == 1 && request.terms.iter().all(|term| term.occurs_in(0));
        let mut parts = vec![vec![0.0; index.len()]; if only { 0 } else { request.parts }];
        for term in &request.terms {
            let Some(number) = term.number else { continue };
            add_postings(&mut whole, number, term.weight, index);
            for (part, worth) in parts.iter_mut().enumerate() {
                if term.occurs_in(part) {
                    add_postings(worth, number, term.weight, index);
                }
            }
        }
        for pair in &request.pairs {
            for (item, gained) in index.pair_scores(pair.first, pair.second) {
                let gained = weights.pair * gained;
                whole[item] += gained;
                let parts = parts.iter_mut().enumerate().filter(|(part, _)| pair.occurs_in(*part));
                parts.for_each(|(_, worth)| worth[item] += gained);
            }
        }
        PartScores { whole, parts, part_weight: weights.part }
    }

    /// Scores by cosine; `None` when the vectors of the request cannot be compared with those of the items.
    pub(crate) fn score_by_vectors(
        dense: &DenseEvidence<'_>,
        parts: usize,
        weights: &RankWeights,
    ) -> Option<PartScores> {
        let whole = dense.items.similarities(dense.whole)?;
        // A different number of parts means that they belong to another text.
        let same = dense.parts.len() != parts || dense.parts.iter().all(|part| part == dense.whole);
        let parts = if same { &[] } else { dense.parts };
        let parts: Option<Vec<Vec<f32>>> = parts.iter().map(|part| dense.items.similarities(part)).collect();
        Some(PartScores { whole, parts: parts?, part_weight: weights.part })
    }

    /// Weight of the whole request.
    pub(crate) fn whole_weight(&self) -> f32 {
        1.0 / (self.parts.len().max(1) as f32).sqrt()
    }

    pub(crate) fn part_scores(&self, part: usize) -> &[f32] {
        self.parts.get(part).unwrap_or(&self.whole)
    }

    /// Score of `item` for its best part.
    pub(crate) fn best_part_score(&self, item: usize) -> f32 {
        let parts = self.parts.iter().map(|part| part[item]);
        parts.reduce(f32::max).unwrap_or(self.whole[item])
    }

    /// Combined score of the whole and the best part, per item.
    pub(crate) fn combined_scores(&self) -> Vec<f32> {
        let weight = self.whole_weight();
        (0..self.whole.len())
            .map(|item| weight * self.whole[item] + self.part_weight * self.best_part_score(item))
            .collect()
    }

    /// Standardises the scores: 0 is the usual fit, 1 a standard deviation of the combined scores of the items that
    /// count, or `least` when they hardly differ. Returns that deviation.
    pub(crate) fn standardise(&mut self, least: f32, counts: impl Fn(usize) -> bool) -> f32 {
        let sums = self.combined_scores().into_iter().enumerate().filter(|(item, _)| counts(*item));
        let (mean, deviation) = mean_and_deviation(&sums.map(|(_, sum)| sum).collect::<Vec<_>>());
        let deviation = deviation.max(least);
        let mean = mean / (self.whole_weight() + self.part_weight);
        for numbers in self.parts.iter_mut().chain([&mut self.whole]) {
            numbers.iter_mut().for_each(|number| *number = (*number - mean) / deviation);
        }
        deviation
    }

    /// Subtracts from each item its `usual` similarity; less for many parts, each of which is less like the usual
    /// request.
    pub(crate) fn subtract_usual(&mut self, usual: &[f32]) {
        let weight = -self.whole_weight();
        for numbers in self.parts.iter_mut().chain([&mut self.whole]) {
            add_weighted(numbers, usual, weight);
        }
    }

    /// Levels the parts. A part worded differently from every item has low cosines with all of them, and yet asks for
    /// something. So its peak is raised halfway (by the square root) to the peak of the clearest part.
    pub(crate) fn level_parts(&mut self) {
        let peaks: Vec<(f32, f32)> = self.parts.iter().map(|part| peak(part)).collect();
        let Some(highest) = peaks.iter().map(|(_, height)| *height).reduce(f32::max) else { return };
        let ground = peaks.iter().map(|(mean, _)| mean).sum::<f32>() / peaks.len() as f32;
        for (part, (mean, height)) in self.parts.iter_mut().zip(peaks) {
            let times = (highest / height).sqrt();
            part.iter_mut().for_each(|number| *number = ground + (*number - mean) * times);
        }
    }

    pub(crate) fn add_scores(&mut self, other: &PartScores, weight: f32) {
        if self.parts.is_empty() && !other.parts.is_empty() {
            self.parts = vec![self.whole.clone(); other.parts.len()];
        }
        for (part, numbers) in self.parts.iter_mut().enumerate() {
            add_weighted(numbers, other.part_scores(part), weight);
        }
        add_weighted(&mut self.whole, &other.whole, weight);
    }
}

fn add_postings(worth: &mut [f32], term: u32, weight: f32, index: &LexicalIndex) {
    index.postings(term).for_each(|posting| worth[posting.item] += weight * posting.score);
}

/// Adds `weight` times each of `others`.
pub(crate) fn add_weighted(numbers: &mut [f32], others: &[f32], weight: f32) {
    numbers.iter_mut().zip(others).for_each(|(number, other)| *number += weight * other);
}

/// Mean of `numbers`, and the height of the best of them above it, at least [`LEAST_PEAK`].
fn peak(numbers: &[f32]) -> (f32, f32) {
    let mean = numbers.iter().sum::<f32>() / numbers.len().max(1) as f32;
    let mut best = [f32::NEG_INFINITY; PEAK];
    for number in numbers {
        // The lowest of the best so far is always the first.
        if *number > best[0] {
            best[0] = *number;
            best.sort_unstable_by(f32::total_cmp);
        }
    }
    let best: Vec<f32> = best.into_iter().filter(|number| number.is_finite()).collect();
    let height = best.iter().sum::<f32>() / best.len().max(1) as f32 - mean;
    (mean, height.max(LEAST_PEAK))
}

/// Mean and standard deviation; the deviation is 1 when all are equal, so that one can divide by it.
pub(crate) fn mean_and_deviation(values: &[f32]) -> (f32, f32) {
    let number = values.len().max(1) as f64;
    let mean = values.iter().map(|value| f64::from(*value)).sum::<f64>() / number;
    let variance = values.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>() / number;
    (mean as f32, if variance > f64::EPSILON { variance.sqrt() as f32 } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_nothing_is_much_like_still_asks_for_something() {
        let parts = vec![vec![0.9, 0.1, 0.1, 0.1], vec![0.1, 0.3, 0.1, 0.1]];
        let mut measure = PartScores { whole: vec![0.0; 4], parts, part_weight: 1.5 };
        let apart = |measure: &PartScores, part: usize, item: usize| {
            measure.parts[part][item] - measure.parts[part][3]
        };
        let (clear, faint) = (apart(&measure, 0, 0), apart(&measure, 1, 1));
        measure.level_parts();
        assert!((apart(&measure, 0, 0) - clear).abs() < 1e-6);
        assert!(apart(&measure, 1, 1) > 1.1 * faint && apart(&measure, 1, 1) < clear);
    }

    #[test]
    fn the_best_three_show_how_clearly_a_part_is_answered() {
        let (mean, height) = peak(&[0.5, 0.1, 0.0, 0.3, 0.1]);
        assert!((mean - 0.2).abs() < 1e-6 && (height - 0.1).abs() < 1e-6, "{mean} {height}");
        assert_eq!(peak(&[0.4, 0.4]), (0.4, LEAST_PEAK));
        assert_eq!(peak(&[]).1, LEAST_PEAK);
    }
}
