//! Vectors of items: which text of an item is embedded, and how vectors are stored.
//!
//! Vectors are stored with one byte per number. That is exact enough for ranking (cosines are off by less than 0.002),
//! and a hundred thousand of them are compared in a few milliseconds. This module does not know where vectors come
//! from; all vectors of one table must be of the same model.

pub mod everyday;

use std::sync::{Arc, OnceLock};

use crate::kernel;
use crate::tokens;
use everyday::EverydayVectors;

/// Text of a tool whose vector is compared with those of requests: its names as words, then its description.
pub fn document_text(server: &str, name: &str, description: &str) -> String {
    let mut text = String::with_capacity(server.len() + name.len() + description.len() + 8);
    tokens::spell_out(server, &mut text);
    tokens::spell_out(name, &mut text);
    text.push_str(": ");
    text.push_str(description.trim());
    text
}

/// Direction of the sum of the vectors, of length 1.
pub(crate) fn mean_direction(vectors: &[Vec<f32>]) -> Vec<f32> {
    let mut sum = vec![0.0; vectors.first().map_or(0, Vec::len)];
    for vector in vectors {
        sum.iter_mut().zip(vector).for_each(|(sum, number)| *sum += number);
    }
    let length = sum.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > 0.0 {
        sum.iter_mut().for_each(|number| *number /= length);
    }
    sum
}

/// One vector per item, in catalogue order. An item without a vector keeps its position.
#[derive(Debug, Clone, Default)]
pub struct VectorTable {
    /// Dimensions of the vectors; set by the first one.
    dimensions: usize,
    /// All rows, concatenated.
    rows: Vec<i8>,
    /// Scale of each row; 0 for an item without a vector.
    scales: Vec<f32>,
    /// Sum of all vectors, each of length 1.
    sum: Vec<f32>,
    /// Mean cosine of each item with all items; computed on first use.
    common: OnceLock<Option<Vec<f32>>>,
    /// The everyday requests, when known.
    everyday: Option<Arc<EverydayVectors>>,
    /// Similarity of each item to the everyday requests.
    expected: Vec<Option<f32>>,
}

impl VectorTable {
    /// An empty table that computes the similarity of each item to the everyday requests, which takes some microseconds
    /// per item.
    pub fn with_everyday(everyday: Arc<EverydayVectors>) -> VectorTable {
        VectorTable { everyday: Some(everyday), ..VectorTable::default() }
    }

    /// Number of items, with a vector or without.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Whether `item` has a vector.
    pub fn has_vector(&self, item: usize) -> bool {
        self.scales.get(item).is_some_and(|scale| *scale > 0.0)
    }

    /// Number of items with a vector.
    pub fn vector_count(&self) -> usize {
        self.scales.iter().filter(|scale| **scale > 0.0).count()
    }

    /// Appends an item.
    ///
    /// # Panics
    /// If the vector differs in length from the others.
    pub fn push(&mut self, vector: Option<&[f32]>) {
        self.insert(self.len(), vector);
    }

    /// Inserts an item at index `item`.
    ///
    /// # Panics
    /// If there are fewer items, or the vector differs in length from the others.
    pub fn insert(&mut self, item: usize, vector: Option<&[f32]>) {
        self.scales.insert(item, 0.0);
        self.expected.insert(item, None);
        let at = item * self.dimensions;
        self.rows.splice(at..at, std::iter::repeat_n(0, self.dimensions));
        self.replace(item, vector);
    }

    /// Replaces or removes the vector of an item.
    ///
    /// # Panics
    /// If there is no such item, or the vector differs in length from the others.
    pub fn replace(&mut self, item: usize, vector: Option<&[f32]>) {
        self.sum_up(item, -1.0);
        (self.scales[item], self.expected[item]) = (0.0, None);
        let Some(vector) = vector else { return };
        self.take_length(vector.len());
        let step = largest(vector) / f32::from(i8::MAX);
        // A zero vector or one with a NaN counts as no vector.
        if !(step > 0.0 && step.is_finite()) {
            return;
        }
        let row = &mut self.rows[item * self.dimensions..(item + 1) * self.dimensions];
        row.iter_mut().zip(vector).for_each(|(small, number)| *small = (number / step).round() as i8);
        let length = row.iter().map(|small| f32::from(*small).powi(2)).sum::<f32>().sqrt();
        self.scales[item] = 1.0 / length;
        self.expected[item] = self.everyday.as_ref().and_then(|everyday| everyday.mean_similarity(vector));
        self.sum_up(item, 1.0);
    }

    /// Appends an item of `other`, which is much cheaper than quantising its vector again.
    ///
    /// # Panics
    /// If there is no such item, its vector differs in length from the others, or `other` has different everyday
    /// requests.
    pub fn copy_from(&mut self, other: &VectorTable, item: usize) {
        let same = match (&self.everyday, &other.everyday) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        assert!(same, "what is kept was compared with the same requests");
        self.push(None);
        if !other.has_vector(item) {
            return;
        }
        self.take_length(other.dimensions);
        let (to, from) = (self.len() - 1, item * other.dimensions);
        let row = &other.rows[from..from + other.dimensions];
        self.rows[to * self.dimensions..].copy_from_slice(row);
        (self.scales[to], self.expected[to]) = (other.scales[item], other.expected[item]);
        self.sum_up(to, 1.0);
    }

    /// The first vector sets the dimensions.
    fn take_length(&mut self, length: usize) {
        if self.dimensions == 0 {
            self.dimensions = length;
            self.rows = vec![0; self.len() * length];
            self.sum = vec![0.0; length];
        }
        assert_eq!(length, self.dimensions, "vectors of one table have one length");
    }

    /// Adds `times` times the vector of an item to the sum.
    fn sum_up(&mut self, item: usize, times: f32) {
        self.common = OnceLock::new();
        let times = times * self.scales[item];
        if times != 0.0 {
            let row = &self.rows[item * self.dimensions..(item + 1) * self.dimensions];
            self.sum.iter_mut().zip(row).for_each(|(sum, small)| *sum += times * f32::from(*small));
        }
    }

    /// Releases unused capacity.
    pub fn shrink_to_fit(&mut self) {
        self.rows.shrink_to_fit();
        self.scales.shrink_to_fit();
        self.expected.shrink_to_fit();
    }

    /// Removes an item; later ones move up.
    ///
    /// # Panics
    /// If there is no such item.
    pub fn remove(&mut self, item: usize) {
        self.sum_up(item, -1.0);
        self.scales.remove(item);
        self.expected.remove(item);
        self.rows.drain(item * self.dimensions..(item + 1) * self.dimensions);
    }

    /// The `most` items with vectors nearest to `vector`, with cosines, nearest first.
    pub fn nearest(&self, vector: &[f32], most: usize) -> Vec<(usize, f32)> {
        let Some(similarities) = self.similarities(vector) else { return Vec::new() };
        let mut all: Vec<(usize, f32)> =
            similarities.into_iter().enumerate().filter(|(item, _)| self.has_vector(*item)).collect();
        let order =
            |one: &(usize, f32), other: &(usize, f32)| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0));
        if all.len() > most && most > 0 {
            all.select_nth_unstable_by(most - 1, order);
        }
        all.truncate(most);
        all.sort_unstable_by(order);
        all
    }

    /// Cosine of every item's vector with `vector`; items without a vector get the mean. `None` when `vector` cannot be
    /// compared.
    pub fn similarities(&self, vector: &[f32]) -> Option<Vec<f32>> {
        let (numbers, scale) = coarse(vector).filter(|(numbers, _)| numbers.len() == self.dimensions)?;
        let products = kernel::scalar_products(&self.rows, &numbers).into_iter().zip(&self.scales);
        let mut found: Vec<f32> =
            products.map(|(product, row_scale)| product as f32 * row_scale * scale).collect();
        let usual = found.iter().sum::<f32>() / self.vector_count().max(1) as f32;
        let absent = found.iter_mut().zip(&self.scales).filter(|(_, scale)| **scale == 0.0);
        absent.for_each(|(similarity, _)| *similarity = usual);
        Some(found)
    }

    /// Mean cosine of each item with all items.
    pub(crate) fn mean_similarities(&self) -> Option<&[f32]> {
        self.common.get_or_init(|| self.measure_commonness()).as_deref()
    }

    /// Whether the everyday requests are known.
    pub(crate) fn has_everyday(&self) -> bool {
        self.everyday.is_some()
    }

    /// Similarity of an item to the everyday requests, when known.
    pub(crate) fn everyday_similarity(&self, item: usize) -> Option<f32> {
        self.expected.get(item).copied().flatten()
    }

    fn measure_commonness(&self) -> Option<Vec<f32>> {
        let mut found = self.similarities(&self.sum)?;
        let length = self.sum.iter().map(|number| number.powi(2)).sum::<f32>().sqrt()
            / self.vector_count().max(1) as f32;
        found.iter_mut().for_each(|similarity| *similarity *= length);
        Some(found)
    }

    /// Cosine of one item's vector with `vector`; `None` when either is missing or they cannot be compared.
    pub(crate) fn similarity(&self, item: usize, vector: &[f32]) -> Option<f32> {
        let (numbers, scale) = coarse(vector).filter(|(numbers, _)| numbers.len() == self.dimensions)?;
        let row = self.rows.chunks_exact(self.dimensions).nth(item).filter(|_| self.has_vector(item))?;
        let product = kernel::scalar_products(row, &numbers).pop()?;
        Some(product as f32 * self.scales[item] * scale)
    }

    /// Whether `vector` can be stored or compared here: it has a direction, and the dimensions of the others.
    pub(crate) fn accepts_vector(&self, vector: &[f32]) -> bool {
        let largest = largest(vector);
        largest > 0.0 && largest.is_finite() && (self.dimensions == 0 || self.dimensions == vector.len())
    }

    /// Vector of an item that has one, of length 1 up to rounding.
    pub(crate) fn vector_of(&self, item: usize) -> Vec<f32> {
        let row = &self.rows[item * self.dimensions..(item + 1) * self.dimensions];
        row.iter().map(|small| f32::from(*small) * self.scales[item]).collect()
    }
}

/// Dot product, in lanes that can be computed side by side.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0.0_f32; LANES];
    let (a_lanes, b_lanes) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = a_lanes.remainder().iter().zip(b_lanes.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a_lanes.zip(b_lanes) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * y[lane];
        }
    }
    sums.iter().sum::<f32>() + rest
}

/// Quantises a request's vector to integers. Also returns the factor that makes its length 1.
fn coarse(vector: &[f32]) -> Option<(Vec<i16>, f32)> {
    // Products with a byte, summed over a few thousand dimensions, must fit into 32 bits.
    let step = largest(vector) / 2047.0;
    if !(step > 0.0 && step.is_finite()) {
        return None;
    }
    let numbers: Vec<i16> = vector.iter().map(|number| (number / step).round() as i16).collect();
    let length = numbers.iter().map(|number| f32::from(*number).powi(2)).sum::<f32>().sqrt();
    Some((numbers, 1.0 / length))
}

/// Largest absolute value; NaN if any number is.
fn largest(vector: &[f32]) -> f32 {
    vector.iter().fold(0.0_f32, |largest, number| {
        let size = number.abs();
        if size.is_nan() || size > largest { size } else { largest }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: Option<f32>, expected: f32) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 0.002)
    }

    #[test]
    fn a_tool_is_written_as_words() {
        assert_eq!(
            document_text("git-hub", "listIssues_v2", " All of them. "),
            "git hub list Issues v2: All of them."
        );
        assert_eq!(document_text("", "parseHTTPResponse", ""), "parse HTTP Response: ");
    }

    #[test]
    fn similarities_are_cosines_nearly() {
        let row: Vec<f32> = (0..384).map(|at| ((at * 37 % 101) as f32 - 50.0) / 700.0).collect();
        let other: Vec<f32> = (0..384).map(|at| ((at * 53 % 97) as f32 - 40.0) * 9.0).collect();
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let cosine = product(&row, &other) / (product(&row, &row) * product(&other, &other)).sqrt();
        let mut vectors = VectorTable::default();
        vectors.push(Some(&row));
        assert!(close(vectors.similarity(0, &other), cosine));
        assert!(close(vectors.similarity(0, &row), 1.0));
        assert_eq!(vectors.similarities(&other).map(|all| all[0]), vectors.similarity(0, &other));
    }

    #[test]
    fn rows_come_go_and_change() {
        let (x, y) = ([1.0, 0.0], [0.0, 2.0]);
        let mut vectors = VectorTable::default();
        vectors.push(None);
        vectors.push(Some(&x));
        vectors.insert(1, Some(&y));
        assert_eq!(
            (vectors.len(), vectors.has_vector(0), vectors.has_vector(1), vectors.has_vector(9)),
            (3, false, true, false)
        );
        assert!(close(vectors.similarity(1, &y), 1.0) && close(vectors.similarity(2, &x), 1.0));
        assert_eq!(vectors.similarity(0, &x), None);
        vectors.remove(0);
        vectors.replace(0, Some(&x));
        assert!(close(vectors.similarity(0, &x), 1.0) && close(vectors.similarity(1, &x), 1.0));
        // An item without a vector gets the mean cosine.
        vectors.replace(1, Some(&y));
        vectors.push(Some(&[f32::NAN, 1.0]));
        let all = vectors.similarities(&x).unwrap_or_default();
        assert!(close(all.get(2).copied(), 0.5), "{all:?}");
    }

    #[test]
    fn commonness_is_the_mean_of_all_cosines() {
        let mut vectors = VectorTable::default();
        assert_eq!(vectors.mean_similarities(), None);
        vectors.push(Some(&[1.0, 1.0]));
        vectors.push(Some(&[3.0, 0.0]));
        vectors.push(Some(&[0.0, 2.0]));
        vectors.replace(0, Some(&[2.0, 0.0]));
        let all = vectors.mean_similarities().unwrap_or_default().to_vec();
        assert!(close(all.first().copied(), 2.0 / 3.0) && close(all.get(2).copied(), 1.0 / 3.0), "{all:?}");
        vectors.remove(1);
        let all = vectors.mean_similarities().unwrap_or_default().to_vec();
        assert!(close(all.first().copied(), 0.5), "{all:?}");
    }

    #[test]
    fn what_is_kept_is_as_it_was() {
        let everyday = Arc::new(EverydayVectors::from_vectors(&[[1.0_f32, 0.0]]));
        let mut before = VectorTable::with_everyday(Arc::clone(&everyday));
        before.push(None);
        before.push(Some(&[3.0, 4.0]));
        let mut vectors = VectorTable::with_everyday(everyday);
        vectors.copy_from(&before, 0);
        vectors.copy_from(&before, 1);
        vectors.push(Some(&[0.0, 1.0]));
        assert_eq!((vectors.has_vector(0), vectors.everyday_similarity(0)), (false, None));
        assert!(
            close(vectors.everyday_similarity(1), 0.6) && close(vectors.everyday_similarity(2), 0.0),
            "{:?}",
            vectors.expected
        );
        assert_eq!(vectors.similarity(1, &[2.0, 1.0]), before.similarity(1, &[2.0, 1.0]));
        let common = vectors.mean_similarities().unwrap_or_default().to_vec();
        assert!(close(common.get(1).copied(), 0.9), "{common:?}");
        vectors.remove(1);
        assert!(close(vectors.everyday_similarity(1), 0.0), "{:?}", vectors.expected);
        vectors.replace(1, None);
        assert_eq!(
            (vectors.has_vector(1), vectors.everyday_similarity(1), vectors.everyday_similarity(9)),
            (false, None, None)
        );
    }

    #[test]
    #[should_panic(expected = "vectors of one table have one length")]
    fn vectors_of_two_models_are_not_mixed() {
        let mut vectors = VectorTable::default();
        vectors.push(Some(&[1.0, 0.0]));
        vectors.push(Some(&[1.0, 0.0, 0.0]));
    }
}
