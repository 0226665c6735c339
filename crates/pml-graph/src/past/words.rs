//! The words of past intents: how many of a request's telling words an item has served before.

use std::collections::HashMap;

use crate::tokens;

/// Intents and requests are read up to here.
const MAX_BYTES: usize = 16 * 1024;

/// Where further intents with the same word stop adding.
const SATURATION: f32 = 1.5;

/// How strongly it is held against an item's words that it has many.
const LENGTH_PENALTY: f32 = 0.75;

#[derive(Debug, Clone, Default)]
pub(super) struct Words {
    terms: HashMap<String, u32>,
    /// Per term, by rising slot: how many intents of the slot have it.
    postings: Vec<Vec<(u32, u32)>>,
    /// Per slot.
    spoken: Vec<Spoken>,
    /// The sum of `Spoken::distinct`.
    distinct: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Spoken {
    intents: u32,
    /// Words, each counted once per intent.
    distinct: u32,
    /// All words.
    words: u32,
}

/// What the words of a request say about an item.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Heard {
    /// From 0 to about 1: how much of the request's known words, by rarity, the item's intents have.
    pub(super) share: f32,
    /// 0 if the request is as long as the item's intents usually are, less the more they differ.
    pub(super) length: f32,
}

impl Words {
    /// Learns the words of an intent that the items in `slots` served.
    pub(super) fn push(&mut self, slots: &[usize], text: &str) {
        let (terms, words) = read(text);
        for &slot in slots {
            if self.spoken.len() <= slot {
                self.spoken.resize(slot + 1, Spoken::default());
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

    /// What the words of `text` say, per slot.
    pub(super) fn ask(&self, text: &str) -> Vec<Heard> {
        let (terms, words) = read(text);
        let mut heard: Vec<Heard> =
            self.spoken.iter().map(|spoken| Heard { share: 0.0, length: length(words, *spoken) }).collect();
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

    /// How many intents a slot has.
    pub(super) fn intents(&self, slot: usize) -> u32 {
        self.spoken[slot].intents
    }

    fn rarity(&self, items: usize) -> f32 {
        let (all, items) = (self.spoken.len() as f32, items as f32);
        (1.0 + (all - items + 0.5) / (items + 0.5)).ln()
    }
}

/// The terms of a text, each once, in order, and the number of its words.
fn read(text: &str) -> (Vec<String>, u32) {
    let tokens = tokens::tokens(tokens::beginning(text, MAX_BYTES));
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

/// A word more is added on both sides, so that there is something to compare.
fn length(words: u32, spoken: Spoken) -> f32 {
    let usual = spoken.words as f32 / spoken.intents.max(1) as f32;
    -((words as f32 + 1.0) / (usual + 1.0)).ln().abs()
}
