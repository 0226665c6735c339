//! Advice for a new request from past intents.
//!
//! A successful run shows which items (tools, or capabilities) served an intent. [`PastIntents`] learns one such trace
//! at a time and answers a request with an [`ItemHint`] per item.
//!
//! Learning must not hurt, so a hint is used in two safe ways. First, items with traces are reordered among themselves:
//! they share the places that they have without memory, so no item without traces moves, and an item that alone has
//! traces keeps its place. Second, an item may only gain, and only when an intent that it served is nearer to the
//! request than [`RELATED`] and than any description.
//!
//! Vectors are passed in and may be missing; then only the words of past intents count. Items are numbered by the
//! caller. This module does not know the descriptions.

mod learned;
mod words;
pub mod workflow;

use std::collections::HashMap;
use std::ops::Range;

use learned::{LearnedEvidence, LearnedVectors};
use words::{IntentWords, WordEvidence};

use crate::vectors::VectorTable;

/// Cosine below which two intents are unrelated.
pub const RELATED: f32 = 0.5;

/// Weight of the learned vectors.
const PULL: f32 = 0.8;

/// Weight of the cosine of the nearest past intent, beyond [`NEAR_BY_CHANCE`].
const NEAREST: f32 = 5.0;

/// Cosine of the nearest intent that is expected by chance with one trace; only the excess counts.
const NEAR_BY_CHANCE: f32 = 0.35;
/// Growth of that cosine with every factor e of traces: among many intents, one is near by chance.
const NEAR_BY_CHANCE_GROWTH: f32 = 0.03;

/// Number of traces at which half of the nearest intent's evidence is believed.
const HALF_NEAR: f32 = 1.0;

/// Weight of the words of past intents, by the share of the request they cover, beyond [`HEARD_BY_CHANCE`].
const WORDS: f32 = 6.0;
/// Share of words that is expected by chance with one trace.
const HEARD_BY_CHANCE: f32 = 0.233;
/// Growth of that share with every factor e of traces.
const HEARD_BY_CHANCE_GROWTH: f32 = 0.05;
/// Number of traces at which half of the words' evidence is believed. It takes more intents than for vectors until an
/// item's vocabulary is known.
const HALF_WORDS: f32 = 2.0;

/// Share of words below which they are no evidence, when there are no vectors. For comparison: one intent with all of
/// the words reaches 0.4.
const COMMON_WORDS: f32 = 0.25;

/// Maximum share of the description's score that is replaced by the evidence of traces; both say much the same, and
/// traces say it better.
const TRUST: f32 = 0.7;

/// Number of traces at which half of that is reached.
const HALF_TRUST: f32 = 4.0;

/// Exponent of the number of parts by which the evidence of a whole request fades: the whole is a mixture of its parts,
/// and an item serves one of them.
const FADING: f32 = 0.25;
/// The same for the trust in traces: the description is compared with the parts, so less of its score is replaced the
/// more parts there are.
const FADING_TRUST: f32 = 1.0;

/// A successful run.
#[derive(Debug, Clone, Copy)]
pub struct IntentTrace<'a> {
    /// Items that served the intent.
    pub items: &'a [u32],
    /// The intent.
    pub intent: EmbeddedIntent<'a>,
    /// Cosine of every item's own vector with the intent's, in the order of items; empty if unknown.
    pub item_cosines: &'a [f32],
}

/// An intent with its vectors, of a trace or of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmbeddedIntent<'a> {
    /// Text of the intent, as written.
    pub text: &'a str,
    /// Vector of the text; `None` without a model.
    pub vector: Option<&'a [f32]>,
    /// Vectors of its parts, if it has several. [`PastIntents::hints`] uses only their number.
    pub parts: &'a [Vec<f32>],
}

/// Advice of the past for one item and one request.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ItemHint {
    /// Number of intents the item has served.
    pub trace_count: u32,
    /// Share of the description's score that is replaced, from 0 to below 1.
    pub trust: f32,
    /// Evidence in standard deviations of the catalogue's scores, for comparison among items with traces; negative if
    /// it speaks against the item.
    pub evidence: f32,
    /// Gain of the item over items without traces, per unit of the cosine of the nearest intent.
    pub gain_weight: f32,
    /// Gain by the words of past intents, when there are no vectors.
    pub word_gain: f32,
    /// Cosine of the nearest intent that the item has served; 0 without one.
    pub nearest_cosine: f32,
}

/// Advice of the past for one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PastAdvice {
    /// Hints, in catalogue order.
    pub hints: Vec<ItemHint>,
}

impl ItemHint {
    /// Score of an item among others with traces; `standard` is its score by description alone, in standard deviations
    /// from the mean of the catalogue.
    pub fn adjusted_score(&self, standard: f32) -> f32 {
        standard * (1.0 - self.trust) + self.evidence
    }

    /// Gain of the item over all others, at least 0; `described` is the cosine of the description most similar to the
    /// request.
    pub fn gain(&self, described: f32) -> f32 {
        self.gain_weight * (self.nearest_cosine - described.max(RELATED)).max(0.0) + self.word_gain
    }

    /// Whether the item has served a similar request.
    pub(crate) fn is_related(&self) -> bool {
        self.nearest_cosine >= RELATED || self.word_gain > 0.0
    }
}

/// Similarity of a request to the intents an item has served, for [`workflow::score_workflows`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WorkflowRecall {
    /// Alignment of the parts of the request with those of the nearest intent, as a cosine.
    pub nearest_cosine: f32,
    /// Share of the request's words, weighted by rarity, that its intents contain.
    pub word_share: f32,
    /// 0 when the request is as long as its intents, negative the more the lengths differ: a longer request asks for
    /// more steps.
    pub length_penalty: f32,
}

/// All traces, as far as ranking learns from them.
#[derive(Debug, Clone, Default)]
pub struct PastIntents {
    slots: ItemSlots,
    learned: LearnedVectors,
    words: IntentWords,
    /// Vectors of the parts of all intents, and the range of each intent.
    parts: VectorTable,
    parted: Vec<IntentParts>,
}

/// An intent as a range of parts.
#[derive(Debug, Clone)]
struct IntentParts {
    slots: Vec<usize>,
    rows: Range<usize>,
}

impl PastIntents {
    /// Learns from a successful run. A vector that cannot be compared with the earlier ones is ignored.
    pub fn learn_trace(&mut self, trace: &IntentTrace<'_>) {
        let mut items = trace.items.to_vec();
        items.sort_unstable();
        items.dedup();
        if items.is_empty() {
            return;
        }
        let slots: Vec<usize> = items.iter().map(|item| self.slots.take(*item)).collect();
        self.words.learn_intent(&slots, trace.intent.text);
        let Some(vector) = trace.intent.vector.filter(|vector| self.learned.accepts_vector(vector)) else {
            return;
        };
        self.learned.learn_intent(&items, &self.slots, vector, trace.item_cosines);
        let start = self.parts.len();
        self.comparable(&trace.intent).into_iter().for_each(|part| self.parts.push(Some(part)));
        self.parted.push(IntentParts { slots, rows: start..self.parts.len() });
    }

    /// Hints for each of the first `items` items.
    pub fn hints(&self, request: &EmbeddedIntent<'_>, items: usize) -> Vec<ItemHint> {
        let mut hints = vec![ItemHint::default(); items];
        let heard = self.words.evidence_by_slot(request.text);
        let vector = request.vector.filter(|vector| self.learned.accepts_vector(vector));
        let parts = request.parts.len().max(1) as f32;
        let told =
            vector.map(|vector| self.learned.evidence_by_slot(vector, &self.slots)).unwrap_or_default();
        for (slot, heard) in heard.iter().enumerate() {
            if let Some(hint) = hints.get_mut(self.slots.item(slot) as usize) {
                let traces = self.words.intent_count(slot);
                let told = told.get(slot).copied().flatten();
                *hint = told.map_or_else(|| spoken(*heard, traces), |told| known(told, *heard, parts));
                hint.trace_count = traces;
            }
        }
        hints
    }

    /// Similarity of `request` to the intents that each of the first `items` items has served.
    pub fn workflow_recalls(&self, request: &EmbeddedIntent<'_>, items: usize) -> Vec<WorkflowRecall> {
        let mut recalls = vec![WorkflowRecall::default(); items];
        let nearest = self.nearest_in_parts(request);
        for (slot, heard) in self.words.evidence_by_slot(request.text).into_iter().enumerate() {
            if let Some(recall) = recalls.get_mut(self.slots.item(slot) as usize) {
                *recall = WorkflowRecall {
                    nearest_cosine: nearest[slot],
                    word_share: heard.share,
                    length_penalty: heard.length_penalty,
                };
            }
        }
        recalls
    }

    /// Per slot, the best alignment of the parts of the request with those of an intent.
    fn nearest_in_parts(&self, request: &EmbeddedIntent<'_>) -> Vec<f32> {
        let mut nearest = vec![0.0_f32; self.slots.len()];
        let wanted: Vec<Vec<f32>> =
            self.comparable(request).into_iter().filter_map(|part| self.parts.similarities(part)).collect();
        if wanted.is_empty() {
            return nearest;
        }
        for intent in &self.parted {
            let match_of = alignment(&wanted, intent.rows.clone());
            intent.slots.iter().for_each(|slot| nearest[*slot] = nearest[*slot].max(match_of));
        }
        nearest
    }

    /// Vectors of the parts of an intent, or of the whole if it has only one part.
    fn comparable<'a>(&self, intent: &EmbeddedIntent<'a>) -> Vec<&'a [f32]> {
        let parts: Vec<&[f32]> =
            intent.parts.iter().map(Vec::as_slice).filter(|part| self.parts.accepts_vector(part)).collect();
        if parts.len() > 1 {
            parts
        } else {
            intent.vector.filter(|whole| self.parts.accepts_vector(whole)).into_iter().collect()
        }
    }
}

/// Hint with vectors, for a request of `parts` parts.
fn known(told: LearnedEvidence, heard: WordEvidence, parts: f32) -> ItemHint {
    let traces = told.trace_count as f32;
    let near = told.nearest_cosine - NEAR_BY_CHANCE - NEAR_BY_CHANCE_GROWTH * traces.ln();
    let words = heard.share - HEARD_BY_CHANCE - HEARD_BY_CHANCE_GROWTH * traces.ln();
    let alike = grown(traces, HALF_NEAR) * NEAREST * near + grown(traces, HALF_WORDS) * WORDS * words;
    ItemHint {
        trace_count: told.trace_count,
        trust: TRUST * grown(traces, HALF_TRUST) * parts.powf(-FADING_TRUST),
        evidence: (PULL * told.pull + alike) * parts.powf(-FADING),
        gain_weight: NEAREST * grown(traces, HALF_NEAR) * parts.powf(-FADING),
        word_gain: 0.0,
        nearest_cosine: told.nearest_cosine.max(0.0),
    }
}

/// Hint by words alone: they can speak for an item but never against it, because one thing can be said in many words.
fn spoken(heard: WordEvidence, traces: u32) -> ItemHint {
    let share = (heard.share - COMMON_WORDS).max(0.0);
    ItemHint { word_gain: grown(traces as f32, HALF_NEAR) * WORDS * share, ..ItemHint::default() }
}

/// Saturation from 0 to 1 with the number of traces; one half at `half`.
fn grown(traces: f32, half: f32) -> f32 {
    traces / (traces + half)
}

/// Mean of the best cosine of each requested part with the intent's parts, and vice versa.
fn alignment(wanted: &[Vec<f32>], rows: Range<usize>) -> f32 {
    let best = |similarities: &mut dyn Iterator<Item = f32>| similarities.fold(-1.0_f32, f32::max);
    let there: f32 = wanted.iter().map(|part| best(&mut rows.clone().map(|row| part[row]))).sum();
    let back: f32 = rows.clone().map(|row| best(&mut wanted.iter().map(|part| part[row]))).sum();
    0.5 * (there / wanted.len() as f32 + back / rows.len().max(1) as f32)
}

/// Items that have served anything, numbered in the order of first use.
#[derive(Debug, Clone, Default)]
struct ItemSlots {
    items: Vec<u32>,
    of: HashMap<u32, usize>,
}

impl ItemSlots {
    fn len(&self) -> usize {
        self.items.len()
    }

    fn item(&self, slot: usize) -> u32 {
        self.items[slot]
    }

    fn of(&self, item: u32) -> Option<usize> {
        self.of.get(&item).copied()
    }

    /// Slot of an item; assigns one if it has none.
    fn take(&mut self, item: u32) -> usize {
        *self.of.entry(item).or_insert_with(|| {
            self.items.push(item);
            self.items.len() - 1
        })
    }
}

#[cfg(test)]
mod tests;
