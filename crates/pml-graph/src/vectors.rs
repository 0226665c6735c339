//! Vectors of items: which text of an item is made into one, and how they are kept.
//!
//! Rows are kept in one byte per number, which is exact enough to rank by (similarities are off by less
//! than 0.002) and lets a hundred thousand of them be compared in a few milliseconds. Nothing here knows
//! where vectors come from; all of one table have to be of the same model.

pub mod everyday;

use std::sync::{Arc, OnceLock};

use crate::kernel;
use crate::tokens;
use everyday::Everyday;

/// The text of a tool whose vector is compared with those of requests: its names as words, then what it
/// does.
pub fn document_text(server: &str, name: &str, description: &str) -> String {
    let mut text = String::with_capacity(server.len() + name.len() + description.len() + 8);
    tokens::spell_out(server, &mut text);
    tokens::spell_out(name, &mut text);
    text.push_str(": ");
    text.push_str(description.trim());
    text
}

/// What texts mean together: the direction of all their vectors, of length one.
pub(crate) fn mean(vectors: &[Vec<f32>]) -> Vec<f32> {
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

/// One vector per item, in catalogue order. An item that has none yet keeps its place.
#[derive(Debug, Clone, Default)]
pub struct Vectors {
    /// How many numbers a vector has; known from the first one on.
    dimensions: usize,
    /// All rows, one after the other.
    rows: Vec<i8>,
    /// What the numbers of a row are multiplied by; 0 where there is no vector.
    scales: Vec<f32>,
    /// The sum of all vectors, each of length 1.
    sum: Vec<f32>,
    /// How like all items each item is; as soon as somebody asks.
    common: OnceLock<Option<Vec<f32>>>,
    /// What is asked for every day, where that is known, ...
    everyday: Option<Arc<Everyday>>,
    /// ... and how like each item that is.
    expected: Vec<Option<f32>>,
}

impl Vectors {
    /// For items of which it is to be known how like them what is asked for every day is. Telling takes some microseconds
    /// for each.
    pub fn with_everyday(everyday: Arc<Everyday>) -> Vectors {
        Vectors { everyday: Some(everyday), ..Vectors::default() }
    }

    /// How many items there are, with a vector or without.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Whether `item` has a vector.
    pub fn has(&self, item: usize) -> bool {
        self.scales.get(item).is_some_and(|scale| *scale > 0.0)
    }

    /// How many items have a vector.
    pub fn known(&self) -> usize {
        self.scales.iter().filter(|scale| **scale > 0.0).count()
    }

    /// Adds an item at the end.
    ///
    /// # Panics
    /// If the vector has another length than those before it.
    pub fn push(&mut self, vector: Option<&[f32]>) {
        self.insert(self.len(), vector);
    }

    /// Adds an item before the one that is at `item` now.
    ///
    /// # Panics
    /// If there are fewer items, or the vector has another length than those before it.
    pub fn insert(&mut self, item: usize, vector: Option<&[f32]>) {
        self.scales.insert(item, 0.0);
        self.expected.insert(item, None);
        let at = item * self.dimensions;
        self.rows.splice(at..at, std::iter::repeat_n(0, self.dimensions));
        self.replace(item, vector);
    }

    /// Gives an item another vector, or takes it away.
    ///
    /// # Panics
    /// If there is no such item, or the vector has another length than those before it.
    pub fn replace(&mut self, item: usize, vector: Option<&[f32]>) {
        self.sum_up(item, -1.0);
        (self.scales[item], self.expected[item]) = (0.0, None);
        let Some(vector) = vector else { return };
        self.take_length(vector.len());
        let step = largest(vector) / f32::from(i8::MAX);
        // A vector of nothing but noughts or with a number that is none is like no vector.
        if !(step > 0.0 && step.is_finite()) {
            return;
        }
        let row = &mut self.rows[item * self.dimensions..(item + 1) * self.dimensions];
        row.iter_mut().zip(vector).for_each(|(small, number)| *small = (number / step).round() as i8);
        let length = row.iter().map(|small| f32::from(*small).powi(2)).sum::<f32>().sqrt();
        self.scales[item] = 1.0 / length;
        self.expected[item] = self.everyday.as_ref().and_then(|everyday| everyday.likeness(vector));
        self.sum_up(item, 1.0);
    }

    /// Adds an item of `other` at the end as it is there, which costs much less than adding its vector once more.
    ///
    /// # Panics
    /// If there is no such item, its vector has another length than those before it, or `other` knows something else to be
    /// asked for every day.
    pub fn push_kept(&mut self, other: &Vectors, item: usize) {
        let same = match (&self.everyday, &other.everyday) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        assert!(same, "what is kept was compared with the same requests");
        self.push(None);
        if !other.has(item) {
            return;
        }
        self.take_length(other.dimensions);
        let (to, from) = (self.len() - 1, item * other.dimensions);
        let row = &other.rows[from..from + other.dimensions];
        self.rows[to * self.dimensions..].copy_from_slice(row);
        (self.scales[to], self.expected[to]) = (other.scales[item], other.expected[item]);
        self.sum_up(to, 1.0);
    }

    /// The first vector says how long all are.
    fn take_length(&mut self, length: usize) {
        if self.dimensions == 0 {
            self.dimensions = length;
            self.rows = vec![0; self.len() * length];
            self.sum = vec![0.0; length];
        }
        assert_eq!(length, self.dimensions, "vectors of one table have one length");
    }

    /// Adds the vector of an item to the sum, `times` over.
    fn sum_up(&mut self, item: usize, times: f32) {
        self.common = OnceLock::new();
        let times = times * self.scales[item];
        if times != 0.0 {
            let row = &self.rows[item * self.dimensions..(item + 1) * self.dimensions];
            self.sum.iter_mut().zip(row).for_each(|(sum, small)| *sum += times * f32::from(*small));
        }
    }

    /// Gives back the room that was kept for more items.
    pub fn shrink_to_fit(&mut self) {
        self.rows.shrink_to_fit();
        self.scales.shrink_to_fit();
        self.expected.shrink_to_fit();
    }

    /// Removes an item; those behind it move up.
    ///
    /// # Panics
    /// If there is no such item.
    pub fn remove(&mut self, item: usize) {
        self.sum_up(item, -1.0);
        self.scales.remove(item);
        self.expected.remove(item);
        self.rows.drain(item * self.dimensions..(item + 1) * self.dimensions);
    }

    /// The `most` items whose vectors are nearest to `vector`, with their cosines, nearest first.
    pub fn nearest(&self, vector: &[f32], most: usize) -> Vec<(usize, f32)> {
        let Some(similarities) = self.similarities(vector) else { return Vec::new() };
        let mut all: Vec<(usize, f32)> =
            similarities.into_iter().enumerate().filter(|(item, _)| self.has(*item)).collect();
        let order =
            |one: &(usize, f32), other: &(usize, f32)| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0));
        if all.len() > most && most > 0 {
            all.select_nth_unstable_by(most - 1, order);
        }
        all.truncate(most);
        all.sort_unstable_by(order);
        all
    }

    /// The cosine of every item's vector and `vector`, and the usual one for items without; `None` where
    /// `vector` cannot be compared.
    pub fn similarities(&self, vector: &[f32]) -> Option<Vec<f32>> {
        let (numbers, scale) = coarse(vector).filter(|(numbers, _)| numbers.len() == self.dimensions)?;
        let products = kernel::products(&self.rows, &numbers).into_iter().zip(&self.scales);
        let mut found: Vec<f32> =
            products.map(|(product, row_scale)| product as f32 * row_scale * scale).collect();
        let usual = found.iter().sum::<f32>() / self.known().max(1) as f32;
        let absent = found.iter_mut().zip(&self.scales).filter(|(_, scale)| **scale == 0.0);
        absent.for_each(|(similarity, _)| *similarity = usual);
        Some(found)
    }

    /// How like all items each item is: the mean of its cosines with all of them.
    pub(crate) fn commonness(&self) -> Option<&[f32]> {
        self.common.get_or_init(|| self.measure_commonness()).as_deref()
    }

    /// Whether anything is known of what is asked for every day.
    pub(crate) fn knows_everyday(&self) -> bool {
        self.everyday.is_some()
    }

    /// How like an item what is asked for every day is, where that is known.
    pub(crate) fn expected(&self, item: usize) -> Option<f32> {
        self.expected.get(item).copied().flatten()
    }

    fn measure_commonness(&self) -> Option<Vec<f32>> {
        let mut found = self.similarities(&self.sum)?;
        let length =
            self.sum.iter().map(|number| number.powi(2)).sum::<f32>().sqrt() / self.known().max(1) as f32;
        found.iter_mut().for_each(|similarity| *similarity *= length);
        Some(found)
    }

    /// The cosine of one item's vector and `vector`, where both are there and can be compared.
    pub(crate) fn similarity(&self, item: usize, vector: &[f32]) -> Option<f32> {
        let (numbers, scale) = coarse(vector).filter(|(numbers, _)| numbers.len() == self.dimensions)?;
        let row = self.rows.chunks_exact(self.dimensions).nth(item).filter(|_| self.has(item))?;
        let product = kernel::products(row, &numbers).pop()?;
        Some(product as f32 * self.scales[item] * scale)
    }

    /// Whether `vector` can be kept here, or be compared with what is: it has a direction, and the length of those before
    /// it.
    pub(crate) fn takes(&self, vector: &[f32]) -> bool {
        let largest = largest(vector);
        largest > 0.0 && largest.is_finite() && (self.dimensions == 0 || self.dimensions == vector.len())
    }

    /// The vector of an item that has one, of length 1, but for rounding.
    pub(crate) fn row(&self, item: usize) -> Vec<f32> {
        let row = &self.rows[item * self.dimensions..(item + 1) * self.dimensions];
        row.iter().map(|small| f32::from(*small) * self.scales[item]).collect()
    }
}

/// The scalar product, in lanes that can be computed side by side.
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

/// A request's vector in whole numbers, and what makes its length 1.
fn coarse(vector: &[f32]) -> Option<(Vec<i16>, f32)> {
    // Products with a byte, summed over a few thousand dimensions, have to fit into 32 bits.
    let step = largest(vector) / 2047.0;
    if !(step > 0.0 && step.is_finite()) {
        return None;
    }
    let numbers: Vec<i16> = vector.iter().map(|number| (number / step).round() as i16).collect();
    let length = numbers.iter().map(|number| f32::from(*number).powi(2)).sum::<f32>().sqrt();
    Some((numbers, 1.0 / length))
}

/// The largest number, whatever its sign; not a number if one of them is none.
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
        let mut vectors = Vectors::default();
        vectors.push(Some(&row));
        assert!(close(vectors.similarity(0, &other), cosine));
        assert!(close(vectors.similarity(0, &row), 1.0));
        assert_eq!(vectors.similarities(&other).map(|all| all[0]), vectors.similarity(0, &other));
    }

    #[test]
    fn rows_come_go_and_change() {
        let (x, y) = ([1.0, 0.0], [0.0, 2.0]);
        let mut vectors = Vectors::default();
        vectors.push(None);
        vectors.push(Some(&x));
        vectors.insert(1, Some(&y));
        assert_eq!((vectors.len(), vectors.has(0), vectors.has(1), vectors.has(9)), (3, false, true, false));
        assert!(close(vectors.similarity(1, &y), 1.0) && close(vectors.similarity(2, &x), 1.0));
        assert_eq!(vectors.similarity(0, &x), None);
        vectors.remove(0);
        vectors.replace(0, Some(&x));
        assert!(close(vectors.similarity(0, &x), 1.0) && close(vectors.similarity(1, &x), 1.0));
        // What has no vector is as similar as the others are.
        vectors.replace(1, Some(&y));
        vectors.push(Some(&[f32::NAN, 1.0]));
        let all = vectors.similarities(&x).unwrap_or_default();
        assert!(close(all.get(2).copied(), 0.5), "{all:?}");
    }

    #[test]
    fn commonness_is_the_mean_of_all_cosines() {
        let mut vectors = Vectors::default();
        assert_eq!(vectors.commonness(), None);
        vectors.push(Some(&[1.0, 1.0]));
        vectors.push(Some(&[3.0, 0.0]));
        vectors.push(Some(&[0.0, 2.0]));
        vectors.replace(0, Some(&[2.0, 0.0]));
        let all = vectors.commonness().unwrap_or_default().to_vec();
        assert!(close(all.first().copied(), 2.0 / 3.0) && close(all.get(2).copied(), 1.0 / 3.0), "{all:?}");
        vectors.remove(1);
        let all = vectors.commonness().unwrap_or_default().to_vec();
        assert!(close(all.first().copied(), 0.5), "{all:?}");
    }

    #[test]
    fn what_is_kept_is_as_it_was() {
        let everyday = Arc::new(Everyday::of(&[[1.0_f32, 0.0]]));
        let mut before = Vectors::with_everyday(Arc::clone(&everyday));
        before.push(None);
        before.push(Some(&[3.0, 4.0]));
        let mut vectors = Vectors::with_everyday(everyday);
        vectors.push_kept(&before, 0);
        vectors.push_kept(&before, 1);
        vectors.push(Some(&[0.0, 1.0]));
        assert_eq!((vectors.has(0), vectors.expected(0)), (false, None));
        assert!(close(vectors.expected(1), 0.6) && close(vectors.expected(2), 0.0), "{:?}", vectors.expected);
        assert_eq!(vectors.similarity(1, &[2.0, 1.0]), before.similarity(1, &[2.0, 1.0]));
        let common = vectors.commonness().unwrap_or_default().to_vec();
        assert!(close(common.get(1).copied(), 0.9), "{common:?}");
        vectors.remove(1);
        assert!(close(vectors.expected(1), 0.0), "{:?}", vectors.expected);
        vectors.replace(1, None);
        assert_eq!((vectors.has(1), vectors.expected(1), vectors.expected(9)), (false, None, None));
    }

    #[test]
    #[should_panic(expected = "vectors of one table have one length")]
    fn vectors_of_two_models_are_not_mixed() {
        let mut vectors = Vectors::default();
        vectors.push(Some(&[1.0, 0.0]));
        vectors.push(Some(&[1.0, 0.0, 0.0]));
    }
}
