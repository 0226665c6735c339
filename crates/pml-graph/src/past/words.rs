//! Words of past intents: the share of a request's distinctive words that an item has served before.

use std::collections::HashMap;

use crate::tokens;

/// Maximum bytes read of an intent or request.
const MAX_BYTES: usize = 16 * 1024;

/// BM25 saturation: from about this count on, further intents with the same word add little.
const SATURATION: f32 = 1.5;

/// BM25 length normalisation: how strongly an item with many words is penalised.
const LENGTH_PENALTY: f32 = 0.75;

#[derive(Debug, Clone, Default)]
pub(super) struct IntentWords {
    terms: HashMap<String, u32>,
    /// For each term, in order of slot: the number of intents of the slot with that term.
    postings: Vec<Vec<(u32, u32)>>,
    /// Word counts per slot.
    spoken: Vec<IntentWordCounts>,
    /// Sum of `IntentWordCounts::distinct`.
    distinct: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct IntentWordCounts {
    intents: u32,
    /// Words, each counted once per intent.
    distinct: u32,
    /// Words, counted with repetitions.
    words: u32,
}

/// Evidence from words for one item.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WordEvidence {
    /// Share of the request's known words, weighted by rarity, that the item's intents contain: 0 to about 1.
    pub(super) share: f32,
    /// 0 when the request is as long as the item's usual intents, negative the more the lengths differ.
    pub(super) length_penalty: f32,
}

impl IntentWords {
    /// Learns the words of an intent that the items in `slots` served.
    pub(super) fn learn_intent(&mut self, slots: &[usize], text: &str) {
        let (terms, words) = read(text);
        for &slot in slots {
            if self.spoken.len() <= slot {
                self.spoken.resize(slot + 1, IntentWordCounts::default());
            }
            let spoken = &mut self.spoken[slot];
            spoken.intents += 1;
            spoken.distinct += terms.len() as u32;
            spoken.words += words;
            self.distinct += terms.len() as u32;
        }
        for term in terms {
            let next = self.postings.len() as u32;
            let number = *self.terms.entry(term).or_insert(next);
            if number == next {
                self.postings.push(Vec::new());
            }
            slots.iter().for_each(|slot| count(&mut self.postings[number as usize], *slot as u32));
        }
    }

    /// Evidence from the words of `text`, per slot.
    pub(super) fn evidence_by_slot(&self, text: &str) -> Vec<WordEvidence> {
        let (terms, words) = read(text);
        let mut heard: Vec<WordEvidence> = self
            .spoken
            .iter()
            .map(|spoken| WordEvidence { share: 0.0, length_penalty: length(words, *spoken) })
            .collect();
        let usual = self.distinct as f32 / self.spoken.len().max(1) as f32;
        let mut whole = 0.0;
        for postings in terms.iter().filter_map(|term| Some(&self.postings[*self.terms.get(term)? as usize]))
        {
            let rarity = self.rarity(postings.len());
            whole += rarity * (SATURATION + 1.0);
            for (slot, intents) in postings {
                let longer = self.spoken[*slot as usize].distinct as f32 / usual;
                let times = *intents as f32 / (1.0 - LENGTH_PENALTY + LENGTH_PENALTY * longer);
                heard[*slot as usize].share += rarity * times * (SATURATION + 1.0) / (times + SATURATION);
            }
        }
        if whole > 0.0 {
            heard.iter_mut().for_each(|heard| heard.share /= whole);
        }
        heard
    }

    /// Number of intents of a slot.
    pub(super) fn intent_count(&self, slot: usize) -> u32 {
        self.spoken[slot].intents
    }

    fn rarity(&self, items: usize) -> f32 {
        let (all, items) = (self.spoken.len() as f32, items as f32);
        (1.0 + (all - items + 0.5) / (items + 0.5)).ln()
    }
}

/// Distinct terms of a text in sorted order, and the number of its words.
fn read(text: &str) -> (Vec<String>, u32) {
    let tokens = tokens::tokenize(pml_language::byte_prefix(text, MAX_BYTES));
    let words = tokens.iter().filter(|token| !token.compound).count() as u32;
    let mut terms: Vec<String> = tokens.into_iter().map(|token| token.term).collect();
    terms.sort_unstable();
    terms.dedup();
    (terms, words)
}

fn count(postings: &mut Vec<(u32, u32)>, slot: u32) {
    match postings.binary_search_by_key(&slot, |(slot, _)| *slot) {
        Ok(at) => postings[at].1 += 1,
        Err(at) => postings.insert(at, (slot, 1)),
    }
}

/// One word is added on both sides, so that the logarithm is defined.
fn length(words: u32, spoken: IntentWordCounts) -> f32 {
    let usual = spoken.words as f32 / spoken.intents.max(1) as f32;
    -((words as f32 + 1.0) / (usual + 1.0)).ln().abs()
}
