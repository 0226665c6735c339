//! How alike intents are, and how much each earlier one has to say about a new one.
//!
//! This is kernel ridge regression over the nearest traces. Unlike votes weighted by similarity alone,
//! ten copies of one trace do not outvote another that is as near. Intents that are not [`RELATED`] are not asked, and
//! likeness counts from there: a hundred that are somewhat alike would otherwise add up to more than one that is meant.

use super::Request;
use super::memory::{Match, Memory, Past, profile};
use super::row::Row;
use crate::linear;
use crate::past::RELATED;

/// How many traces are asked.
const NEAREST: usize = 100;

/// The part of meaning in likeness; the rest is what the catalogue offers for both.
const MEANING: f32 = 0.6;

/// How little a single trace is trusted.
const DOUBT: f64 = 0.3;

/// An earlier trace, seen from a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Near {
    pub(super) trace: usize,
    /// Up to 1.
    pub(super) similarity: f32,
    /// What its word counts. Negative where nearer ones have said more than enough of the same.
    pub(super) weight: f32,
}

/// The traces nearest to `request`, nearest first, and what each one's word counts.
pub(super) fn nearest(memory: &Memory, request: &Request<'_>) -> Vec<Near> {
    let row = request.vector.and_then(Row::new);
    let profile = profile(request.matches);
    let meaning = match (&row, profile.is_empty()) {
        (None, _) => 0.0,
        (Some(_), true) => 1.0,
        (Some(_), false) => MEANING,
    };
    let mut offered = vec![0.0_f32; memory.tools.len()];
    profile.iter().for_each(|found| offered[found.tool as usize] = found.value);
    let mut near: Vec<Near> = (memory.traces.iter().enumerate())
        .filter_map(|(trace, past)| {
            let cosine = row.as_ref().zip(past.row.as_ref()).map(|(a, b)| a.cosine(b));
            if row.is_some() && cosine.is_none_or(|cosine| cosine < RELATED) {
                return None;
            }
            let means = cosine.map_or(0.0, beyond_related);
            let same: f32 = past.profile.iter().map(|found| found.value * offered[found.tool as usize]).sum();
            Some(Near { trace, similarity: meaning * means + (1.0 - meaning) * same, weight: 0.0 })
        })
        .collect();
    let by_similarity =
        |a: &Near, b: &Near| b.similarity.total_cmp(&a.similarity).then(a.trace.cmp(&b.trace));
    if near.len() > NEAREST {
        near.select_nth_unstable_by(NEAREST, by_similarity);
        near.truncate(NEAREST);
    }
    near.sort_unstable_by(by_similarity);
    weigh(&mut near, memory, meaning);
    near
}

/// Solves (K + doubt) weight = similarity, where K is how alike the traces are among themselves.
fn weigh(near: &mut [Near], memory: &Memory, meaning: f32) {
    let size = near.len();
    let mut matrix = vec![0.0_f64; size * size];
    for row in 0..size {
        let a = &memory.traces[near[row].trace];
        for column in 0..=row {
            let alike = likeness(a, &memory.traces[near[column].trace], meaning);
            matrix[row * size + column] = f64::from(alike) + if row == column { DOUBT } else { 0.0 };
        }
    }
    let mut weights: Vec<f64> = near.iter().map(|near| f64::from(near.similarity)).collect();
    // Rounded vectors could leave a little less than the doubt, but never nothing.
    linear::factor(&mut matrix, size, DOUBT / 2.0);
    linear::solve(&matrix, &mut weights);
    near.iter_mut().zip(weights).for_each(|(near, weight)| near.weight = weight as f32);
}

/// How much more alike two intents are than such as have nothing to do with each other, from 0 to 1.
fn beyond_related(cosine: f32) -> f32 {
    ((cosine - RELATED) / (1.0 - RELATED)).max(0.0)
}

fn likeness(a: &Past, b: &Past, meaning: f32) -> f32 {
    let means = a.row.as_ref().zip(b.row.as_ref()).map_or(0.0, |(a, b)| beyond_related(a.cosine(b)));
    meaning * means + (1.0 - meaning) * overlap(&a.profile, &b.profile)
}

/// The product of two vectors that are given by their sorted entries.
fn overlap(a: &[Match], b: &[Match]) -> f32 {
    let (mut at, mut sum) = (0, 0.0);
    for found in a {
        while at < b.len() && b[at].tool < found.tool {
            at += 1;
        }
        if at < b.len() && b[at].tool == found.tool {
            sum += found.value * b[at].value;
        }
    }
    sum
}
