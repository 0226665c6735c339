//! What past intents say about a new one.
//!
//! A run that succeeded says which items (tools, or capabilities) served an intent. [`Past`] grows by one
//! such trace at a time and answers, for a request, with a [`Hint`] per item.
//!
//! Learning must not hurt, so a hint is used in two ways that cannot. Items with traces are put in order among
//! themselves: a hint speaks for an item or against it, but they share the places that they have without memory, so no
//! item without traces moves, and an item that alone has traces keeps its place. Beyond that an item only gains, and only
//! where an intent that it served is nearer to the request than [`RELATED`] and than any description is.
//!
//! Vectors are handed in, and may be missing; then the words of past intents speak alone. Items are
//! numbered by the caller. Nothing here knows what a description says.

mod learned;
mod words;
pub mod workflow;

use std::collections::HashMap;
use std::ops::Range;

use learned::{Learned, Told};
use words::{Heard, Words};

use crate::vectors::Vectors;

/// Intents with a lower cosine have nothing to do with each other.
pub const RELATED: f32 = 0.5;

/// How much what the learned vectors say counts.
const PULL: f32 = 0.8;

/// How much the nearest past intent counts, by its cosine, ...
const NEAREST: f32 = 5.0;

/// ... beyond what it is for a request that is nothing to the item, with one trace, and how much more that is with every e
/// times as many traces: among many, one is near by chance.
const NEAR_BY_CHANCE: f32 = 0.35;
const NEAR_BY_CHANCE_GROWTH: f32 = 0.03;

/// With how many traces half of what the nearest intent says is believed.
const HALF_NEAR: f32 = 1.0;

/// The same for the words of past intents, by the share of the request they cover. It takes more intents until an item's
/// words have been heard.
const WORDS: f32 = 6.0;
const HEARD_BY_CHANCE: f32 = 0.233;
const HEARD_BY_CHANCE_GROWTH: f32 = 0.05;
const HALF_WORDS: f32 = 2.0;

/// The share of words below which they say nothing, where they speak alone. One intent that has all of
/// them comes to 0.4.
const COMMON_WORDS: f32 = 0.25;

/// How much of what the description says is given up, at most, for what traces say; both say much the
/// same, and traces say it better.
const TRUST: f32 = 0.7;

/// With how many traces half of that is reached.
const HALF_TRUST: f32 = 4.0;

/// How fast what a whole request says fades with its parts, as a power of their number: it is a mixture of
/// them, and an item is wanted for one. What the description says stands on the parts, so it is given up the
/// less the more there are.
const FADING: f32 = 0.25;
const FADING_TRUST: f32 = 1.0;

/// A run that succeeded.
#[derive(Debug, Clone, Copy)]
pub struct Trace<'a> {
    /// The items that served the intent.
    pub items: &'a [u32],
    /// The intent.
    pub intent: Intent<'a>,
    /// The cosine of every item's own vector and the intent's, in the order of items; empty if not known.
    pub likeness: &'a [f32],
}

/// What is wanted: in a trace, or now.
#[derive(Debug, Clone, Copy, Default)]
pub struct Intent<'a> {
    /// As it was put.
    pub text: &'a str,
    /// The vector of the text.
    pub vector: Option<&'a [f32]>,
    /// The vectors of its parts, if it has several. [`Past::hints`] only asks how many they are.
    pub parts: &'a [Vec<f32>],
}

/// What the past says about one item and one request.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Hint {
    /// How many intents the item has served.
    pub traces: u32,
    /// What share of the description's say is given up, from 0 to below 1.
    pub trust: f32,
    /// What is added, in standard deviations of the scores of the catalogue, where items with traces are compared with
    /// each other; negative if it speaks against.
    pub evidence: f32,
    /// What the item gains beside items without traces for each unit of the cosine of the nearest intent.
    pub weight: f32,
    /// The same by the words of past intents, where they speak alone.
    pub words: f32,
    /// The cosine of the nearest intent the item has served; 0 if there is none to compare with.
    pub nearest: f32,
}

/// All that the past says about one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Advice {
    /// About each item, in catalogue order.
    pub hints: Vec<Hint>,
}

impl Hint {
    /// What an item is worth beside others with traces, whose description alone gives it `standard`, in standard
    /// deviations from the mean of the catalogue.
    pub fn apply(&self, standard: f32) -> f32 {
        standard * (1.0 - self.trust) + self.evidence
    }

    /// What the item gains beside all others, never less than 0, where the description that is most like the request has the
    /// cosine `described`.
    pub fn gain(&self, described: f32) -> f32 {
        self.weight * (self.nearest - described.max(RELATED)).max(0.0) + self.words
    }

    /// Whether the item has served a request like this one.
    pub(crate) fn is_related(&self) -> bool {
        self.nearest >= RELATED || self.words > 0.0
    }
}

/// How like a request is to what an item has served, for [`workflow::scores`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Recall {
    /// How well the parts of the request and of the nearest intent match one another, as a cosine.
    pub nearest: f32,
    /// How much of the request's words, by rarity, its intents have.
    pub words: f32,
    /// 0 if the request is as long as its intents, less the more they differ: a longer one asks for more steps.
    pub length: f32,
}

/// All traces, as far as ranking learns from them.
#[derive(Debug, Clone, Default)]
pub struct Past {
    slots: Slots,
    learned: Learned,
    words: Words,
    /// The parts of all intents with a vector, and which are whose.
    parts: Vectors,
    parted: Vec<Parted>,
}

/// An intent in parts.
#[derive(Debug, Clone)]
struct Parted {
    slots: Vec<usize>,
    rows: Range<usize>,
}

impl Past {
    /// Learns from a run that succeeded. A vector that cannot be compared with those before it is left out.
    pub fn push(&mut self, trace: &Trace<'_>) {
        let mut items = trace.items.to_vec();
        items.sort_unstable();
        items.dedup();
        if items.is_empty() {
            return;
        }
        let slots: Vec<usize> = items.iter().map(|item| self.slots.take(*item)).collect();
        self.words.push(&slots, trace.intent.text);
        let Some(vector) = trace.intent.vector.filter(|vector| self.learned.takes(vector)) else { return };
        self.learned.push(&items, &self.slots, vector, trace.likeness);
        let start = self.parts.len();
        self.comparable(&trace.intent).into_iter().for_each(|part| self.parts.push(Some(part)));
        self.parted.push(Parted { slots, rows: start..self.parts.len() });
    }

    /// What is to be said about each of the first `items` items.
    pub fn hints(&self, request: &Intent<'_>, items: usize) -> Vec<Hint> {
        let mut hints = vec![Hint::default(); items];
        let heard = self.words.ask(request.text);
        let vector = request.vector.filter(|vector| self.learned.takes(vector));
        let parts = request.parts.len().max(1) as f32;
        let told = vector.map(|vector| self.learned.ask(vector, &self.slots)).unwrap_or_default();
        for (slot, heard) in heard.iter().enumerate() {
            if let Some(hint) = hints.get_mut(self.slots.item(slot) as usize) {
                let traces = self.words.intents(slot);
                let told = told.get(slot).copied().flatten();
                *hint = told.map_or_else(|| spoken(*heard, traces), |told| known(told, *heard, parts));
                hint.traces = traces;
            }
        }
        hints
    }

    /// How like `request` is to what each of the first `items` items has served.
    pub fn recall(&self, request: &Intent<'_>, items: usize) -> Vec<Recall> {
        let mut recalls = vec![Recall::default(); items];
        let nearest = self.nearest_in_parts(request);
        for (slot, heard) in self.words.ask(request.text).into_iter().enumerate() {
            if let Some(recall) = recalls.get_mut(self.slots.item(slot) as usize) {
                *recall = Recall { nearest: nearest[slot], words: heard.share, length: heard.length };
            }
        }
        recalls
    }

    /// Per slot, how well the parts of the request and of its best intent match one another.
    fn nearest_in_parts(&self, request: &Intent<'_>) -> Vec<f32> {
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

    /// The vectors of the parts of an intent, or of all of it if it has not several.
    fn comparable<'a>(&self, intent: &Intent<'a>) -> Vec<&'a [f32]> {
        let parts: Vec<&[f32]> =
            intent.parts.iter().map(Vec::as_slice).filter(|part| self.parts.takes(part)).collect();
        if parts.len() > 1 {
            parts
        } else {
            intent.vector.filter(|whole| self.parts.takes(whole)).into_iter().collect()
        }
    }
}

/// What is to be said where vectors can be compared, of a request in so many parts.
fn known(told: Told, heard: Heard, parts: f32) -> Hint {
    let traces = told.traces as f32;
    let near = told.nearest - NEAR_BY_CHANCE - NEAR_BY_CHANCE_GROWTH * traces.ln();
    let words = heard.share - HEARD_BY_CHANCE - HEARD_BY_CHANCE_GROWTH * traces.ln();
    let alike = grown(traces, HALF_NEAR) * NEAREST * near + grown(traces, HALF_WORDS) * WORDS * words;
    Hint {
        traces: told.traces,
        trust: TRUST * grown(traces, HALF_TRUST) * parts.powf(-FADING_TRUST),
        evidence: (PULL * told.pull + alike) * parts.powf(-FADING),
        weight: NEAREST * grown(traces, HALF_NEAR) * parts.powf(-FADING),
        words: 0.0,
        nearest: told.nearest.max(0.0),
    }
}

/// What is to be said by words alone: they can speak for an item, but without them nothing speaks against it,
/// for one thing can be said in many words.
fn spoken(heard: Heard, traces: u32) -> Hint {
    let share = (heard.share - COMMON_WORDS).max(0.0);
    Hint { words: grown(traces as f32, HALF_NEAR) * WORDS * share, ..Hint::default() }
}

/// From 0 to 1 with the number of traces, and a half at `half`.
fn grown(traces: f32, half: f32) -> f32 {
    traces / (traces + half)
}

/// The mean of how near each wanted part comes to one of the intent's, and each of those to a wanted one.
fn alignment(wanted: &[Vec<f32>], rows: Range<usize>) -> f32 {
    let best = |similarities: &mut dyn Iterator<Item = f32>| similarities.fold(-1.0_f32, f32::max);
    let there: f32 = wanted.iter().map(|part| best(&mut rows.clone().map(|row| part[row]))).sum();
    let back: f32 = rows.clone().map(|row| best(&mut wanted.iter().map(|part| part[row]))).sum();
    0.5 * (there / wanted.len() as f32 + back / rows.len().max(1) as f32)
}

/// Items that have served anything, numbered in the order they first did.
#[derive(Debug, Clone, Default)]
struct Slots {
    items: Vec<u32>,
    of: HashMap<u32, usize>,
}

impl Slots {
    fn len(&self) -> usize {
        self.items.len()
    }

    fn item(&self, slot: usize) -> u32 {
        self.items[slot]
    }

    fn of(&self, item: u32) -> Option<usize> {
        self.of.get(&item).copied()
    }

    /// The slot of an item, which gets one if it has none.
    fn take(&mut self, item: u32) -> usize {
        *self.of.entry(item).or_insert_with(|| {
            self.items.push(item);
            self.items.len() - 1
        })
    }
}

#[cfg(test)]
mod tests;
