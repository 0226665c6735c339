//! Sees requests and items without what they always differ in.
//!
//! People ask otherwise than tools are described: politely, with a reason, of a case of their own. What a
//! request that was served and the descriptions of what served it differ in is of this kind, so it says
//! little about what is meant, and that holds for items that have not served anything too. A [`Lens`] takes the usual
//! request and the usual item away, and shortens every direction by how much requests and items that belong
//! together differ in it (as within-class covariance normalisation does for voices). It grows with what was
//! served: before the first request there is none, and a few change little.

use std::collections::BTreeSet;

use crate::linear;
use crate::vectors::{Vectors, dot};

/// How much a direction counts less in which requests and items differ as much as in any other, on average.
const SHORTENED: f32 = 0.5;

/// After how many requests half of that is believed, ...
const HALF_SHORTENED: f32 = 50.0;

/// ... and half of what is usual for requests and items.
const HALF_CENTRED: f32 = 20.0;

/// Differences smaller than this, as the mean of their squared lengths, are those of rounding.
const ROUNDING: f32 = 1e-3;

/// Vectors of more numbers are not seen through a lens: to make one takes time with the third power of their number.
const MOST_NUMBERS: usize = 1024;

/// What requests and the items that served them differ in, added up.
#[derive(Debug, Clone, Default)]
pub struct Differences {
    number: u32,
    requests: Vec<f32>,
    differences: Vec<f32>,
    /// Of each difference with itself, row after row.
    products: Vec<f32>,
}

impl Differences {
    /// Learns that some of `items` served a request together. Nothing is learned where none of them has a vector,
    /// or vectors of the request cannot be compared with theirs.
    pub fn learn(&mut self, request: &[f32], served: &[u32], items: &Vectors) {
        let served: BTreeSet<usize> = served.iter().map(|item| *item as usize).collect();
        let rows: Vec<Vec<f32>> =
            served.into_iter().filter(|item| items.has(*item)).map(|item| items.row(item)).collect();
        let comparable = self.number == 0 || self.requests.len() == request.len();
        if rows.is_empty() || !items.takes(request) || !comparable || request.len() > MOST_NUMBERS {
            return;
        }
        let Some(request) = of_length_one(request) else { return };
        let size = request.len();
        self.requests.resize(size, 0.0);
        self.differences.resize(size, 0.0);
        self.products.resize(size * size, 0.0);
        self.number += 1;
        let share = 1.0 / rows.len() as f32;
        let difference: Vec<f32> =
            (0..size).map(|at| request[at] - share * rows.iter().map(|row| row[at]).sum::<f32>()).collect();
        self.requests.iter_mut().zip(&request).for_each(|(sum, number)| *sum += number);
        self.differences.iter_mut().zip(&difference).for_each(|(sum, number)| *sum += number);
        for (row, times) in self.products.chunks_exact_mut(size).zip(&difference) {
            row.iter_mut().zip(&difference).for_each(|(sum, number)| *sum += times * number);
        }
    }

    /// A lens for these items; `None` where nothing was learned about such.
    pub fn lens(&self, items: &Vectors) -> Option<Lens> {
        let number = self.number as f32;
        let centre =
            items.centre().filter(|centre| self.number > 0 && centre.len() == self.requests.len())?;
        let centred = number / (number + HALF_CENTRED);
        let mut lens = Lens {
            centred,
            request: self.requests.iter().map(|sum| centred * sum / number).collect(),
            item: centre.iter().map(|number| centred * number).collect(),
            lower: self.shortening(),
            items: Vectors::default(),
        };
        let mut seen = Vectors::default();
        for item in 0..items.len() {
            let row = items.has(item).then(|| lens.shortened(&items.row(item), &lens.item));
            seen.push(row.as_deref());
        }
        seen.shrink_to_fit();
        lens.items = seen;
        Some(lens)
    }

    /// The lower half `L` of `L · Lᵀ`, which is what the differences vary by beside what is the same in every direction.
    fn shortening(&self) -> Vec<f32> {
        let (number, size) = (self.number as f32, self.differences.len());
        let mean: Vec<f32> = self.differences.iter().map(|sum| sum / number).collect();
        let varies = |row: usize, column: usize| {
            self.products[row * size + column] / number - mean[row] * mean[column]
        };
        let all: f32 = (0..size).map(|at| varies(at, at)).sum();
        let believed = number / (number + HALF_SHORTENED);
        let times = if all > ROUNDING { SHORTENED * believed * size as f32 / all } else { 0.0 };
        let mut matrix = vec![0.0_f64; size * size];
        for row in 0..size {
            for column in 0..=row {
                matrix[row * size + column] = f64::from(times * varies(row, column));
            }
            matrix[row * size + row] += 1.0;
        }
        linear::factor(&mut matrix, size, 1.0 / 2.0);
        matrix.into_iter().map(|number| number as f32).collect()
    }
}

/// What takes from requests and items what they always differ in, and the items as they are seen through it.
#[derive(Debug, Clone)]
pub struct Lens {
    /// How much of what is usual is taken away.
    centred: f32,
    request: Vec<f32>,
    item: Vec<f32>,
    lower: Vec<f32>,
    items: Vectors,
}

/// How like each item a request and its parts are, seen through a [`Lens`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    pub(crate) whole: Vec<f32>,
    /// None where the whole is the only part.
    pub(crate) parts: Vec<Vec<f32>>,
    /// How much of what is usual was taken away, from 0 to 1.
    pub(crate) centred: f32,
}

impl Lens {
    /// How like each item a request with these vectors is; `None` where they cannot be compared.
    pub fn see(&self, whole: &[f32], parts: &[Vec<f32>]) -> Option<Seen> {
        let only = parts.iter().all(|part| part == whole);
        let parts = if only { &[] } else { parts };
        let parts: Option<Vec<Vec<f32>>> = parts.iter().map(|part| self.likeness(part)).collect();
        Some(Seen { whole: self.likeness(whole)?, parts: parts?, centred: self.centred })
    }

    fn likeness(&self, request: &[f32]) -> Option<Vec<f32>> {
        let request = self.items.takes(request).then(|| of_length_one(request))??;
        self.items.similarities(&self.shortened(&request, &self.request))
    }

    /// The `x` for which `L · x` is what `vector` has beside what is `usual`.
    fn shortened(&self, vector: &[f32], usual: &[f32]) -> Vec<f32> {
        let size = vector.len();
        let mut seen: Vec<f32> = vector.iter().zip(usual).map(|(number, usual)| number - usual).collect();
        for at in 0..size {
            let row = &self.lower[at * size..=at * size + at];
            seen[at] = (seen[at] - dot(&row[..at], &seen[..at])) / row[at];
        }
        seen
    }
}

/// `None` for a vector so short that its length cannot be told.
fn of_length_one(vector: &[f32]) -> Option<Vec<f32>> {
    let length = dot(vector, vector).sqrt();
    length.is_normal().then(|| vector.iter().map(|number| number / length).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items that are told apart by their first two numbers.
    fn items() -> Vectors {
        let mut items = Vectors::default();
        for item in [[1.0, 0.0, 0.1, 0.0], [0.0, 1.0, 0.1, 0.0], [0.7, 0.7, 0.1, 0.0]] {
            items.push(Some(&item));
        }
        items
    }

    /// Requests for the first two, which are put in ways that differ by `how` in their last number.
    fn learned(times: u32, how: f32) -> Differences {
        let mut differences = Differences::default();
        for number in 0..times {
            let how = if number % 4 < 2 { how } else { -how };
            let wanted = number % 2;
            let request = [1.0 - wanted as f32, wanted as f32, 0.5, how];
            differences.learn(&request, &[wanted], &items());
        }
        differences
    }

    #[test]
    fn what_requests_always_differ_in_counts_less_for_every_item() {
        let mut put_so = items();
        put_so.push(Some(&[0.2, 0.0, 0.0, 1.0]));
        let request = [0.87, 0.2, 0.5, 0.8];
        let plain = put_so.similarities(&request).unwrap_or_default();
        assert!(plain[3] > plain[0], "{plain:?}");
        let seen =
            learned(200, 1.0).lens(&put_so).and_then(|lens| lens.see(&request, &[])).unwrap_or_default();
        assert!(seen.whole[3] < seen.whole[0], "{:?}", seen.whole);
    }

    #[test]
    fn few_requests_change_little_and_none_nothing() {
        assert!(learned(0, 1.0).lens(&items()).is_none());
        let request = [0.9, 0.3, 0.2, 0.4];
        let plain = items().similarities(&request).unwrap_or_default();
        for (times, most) in [(1, 0.1), (2, 0.2)] {
            let lens = learned(times, 1.0).lens(&items());
            let seen = lens.and_then(|lens| lens.see(&request, &[])).unwrap_or_default();
            assert_eq!(seen.whole.len(), plain.len());
            let change = seen.whole.iter().zip(&plain).map(|(seen, plain)| (seen - plain).abs());
            assert!(change.fold(0.0, f32::max) < most, "{:?} {plain:?}", seen.whole);
        }
    }

    #[test]
    fn parts_are_seen_too_unless_there_is_one() {
        let lens = learned(50, 0.5).lens(&items()).expect("something was learned");
        let (whole, part) = ([0.6, 0.6, 0.2, 0.0], vec![1.0, 0.0, 0.2, 0.0]);
        assert_eq!(lens.see(&whole, &[whole.to_vec()]).map(|seen| seen.parts.len()), Some(0));
        let seen = lens.see(&whole, &[part.clone(), whole.to_vec()]).unwrap_or_default();
        assert_eq!(seen.parts.len(), 2);
        assert_eq!(seen.parts[0], lens.see(&part, &[]).unwrap_or_default().whole);
    }

    #[test]
    fn what_cannot_be_compared_teaches_nothing_and_is_not_seen() {
        let mut differences = learned(4, 1.0);
        differences.learn(&[1.0, 0.0], &[0], &items());
        differences.learn(&[0.0; 4], &[0], &items());
        differences.learn(&[1e-30, 0.0, 0.0, 0.0], &[0], &items());
        differences.learn(&[1.0, 0.0, 0.0, 0.0], &[9], &items());
        differences.learn(&[1.0, 0.0, 0.0, 0.0], &[], &items());
        assert_eq!(differences.number, 4);
        let long = vec![1.0; MOST_NUMBERS + 1];
        let mut of_long = Vectors::default();
        of_long.push(Some(&long));
        let mut none = Differences::default();
        none.learn(&long, &[0], &of_long);
        assert!(none.lens(&of_long).is_none());
        let lens = differences.lens(&items()).expect("something was learned");
        assert_eq!(lens.see(&[1.0, 0.0], &[]), None);
        assert_eq!(lens.see(&[0.0; 4], &[]), None);
        assert!(differences.lens(&Vectors::default()).is_none());
    }
}
