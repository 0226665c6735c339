//! Similarity of intents, and the vote weight of each trace for a new intent.
//!
//! This is kernel ridge regression over the nearest traces. Unlike votes weighted by similarity alone, ten copies of
//! one trace do not outvote another that is as near. Intents that are not [`RELATED`] have no vote, and similarity is
//! measured from there: a hundred somewhat similar intents would otherwise outweigh the one that matches.

use super::ProcedureRequest;
use super::memory::{ProcedureMemory, RememberedTrace, ToolMatch, unit_profile};
use super::row::QuantisedVector;
use crate::linear;
use crate::past::RELATED;

/// Number of nearest traces that vote.
const NEAREST: usize = 100;

/// Weight of the cosine in the similarity; the rest is the overlap of catalogue matches.
const MEANING: f32 = 0.6;

/// Ridge parameter: how little a single trace is trusted.
const DOUBT: f64 = 0.3;

/// A trace near a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NearTrace {
    pub(super) trace: usize,
    /// Similarity to the request, up to 1.
    pub(super) similarity: f32,
    /// Weight of its vote. Negative where nearer traces overstate the same vote.
    pub(super) vote_weight: f32,
}

/// The traces nearest to `request`, nearest first, with vote weights.
pub(super) fn nearest_traces(memory: &ProcedureMemory, request: &ProcedureRequest<'_>) -> Vec<NearTrace> {
    let row = request.vector.and_then(QuantisedVector::new);
    let profile = unit_profile(request.matches);
    let meaning = match (&row, profile.is_empty()) {
        (None, _) => 0.0,
        (Some(_), true) => 1.0,
        (Some(_), false) => MEANING,
    };
    let mut offered = vec![0.0_f32; memory.tools.len()];
    profile.iter().for_each(|found| offered[found.tool as usize] = found.probability);
    let mut near: Vec<NearTrace> = (memory.traces.iter().enumerate())
        .filter_map(|(trace, past)| {
            let cosine = row.as_ref().zip(past.row.as_ref()).map(|(a, b)| a.cosine(b));
            if row.is_some() && cosine.is_none_or(|cosine| cosine < RELATED) {
                return None;
            }
            let means = cosine.map_or(0.0, beyond_related);
            let same: f32 =
                past.profile.iter().map(|found| found.probability * offered[found.tool as usize]).sum();
            Some(NearTrace { trace, similarity: meaning * means + (1.0 - meaning) * same, vote_weight: 0.0 })
        })
        .collect();
    let by_similarity =
        |a: &NearTrace, b: &NearTrace| b.similarity.total_cmp(&a.similarity).then(a.trace.cmp(&b.trace));
    if near.len() > NEAREST {
        near.select_nth_unstable_by(NEAREST, by_similarity);
        near.truncate(NEAREST);
    }
    near.sort_unstable_by(by_similarity);
    weigh(&mut near, memory, meaning);
    near
}

/// Solves (K + DOUBT) · weight = similarity, where K is the similarity of the traces among themselves.
fn weigh(near: &mut [NearTrace], memory: &ProcedureMemory, meaning: f32) {
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
    // Rounded vectors can make the diagonal slightly smaller than `DOUBT`, but never zero.
    linear::cholesky_factor(&mut matrix, size, DOUBT / 2.0);
    linear::cholesky_solve(&matrix, &mut weights);
    near.iter_mut().zip(weights).for_each(|(near, weight)| near.vote_weight = weight as f32);
}

/// Similarity in excess of [`RELATED`], scaled from 0 to 1.
fn beyond_related(cosine: f32) -> f32 {
    ((cosine - RELATED) / (1.0 - RELATED)).max(0.0)
}

fn likeness(a: &RememberedTrace, b: &RememberedTrace, meaning: f32) -> f32 {
    let means = a.row.as_ref().zip(b.row.as_ref()).map_or(0.0, |(a, b)| beyond_related(a.cosine(b)));
    meaning * means + (1.0 - meaning) * overlap(&a.profile, &b.profile)
}

/// Dot product of two sparse vectors, sorted by tool.
fn overlap(a: &[ToolMatch], b: &[ToolMatch]) -> f32 {
    let (mut at, mut sum) = (0, 0.0);
    for found in a {
        while at < b.len() && b[at].tool < found.tool {
            at += 1;
        }
        if at < b.len() && b[at].tool == found.tool {
            sum += found.probability * b[at].probability;
        }
    }
    sum
}
