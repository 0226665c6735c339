//! Unigram, as SentencePiece models have it: of all ways to cut a word, the likeliest.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use super::charsmap::Charsmap;
use super::vocabulary::Vocabulary;
use crate::parts::Parts;

/// What stands for a space.
const SPACE: char = '\u{2581}';

/// How much less likely than the least likely piece an unknown letter is.
const UNKNOWN_PENALTY: f64 = 10.0;

/// Letters of a text that are looked at for each token there is room for. Far more than any piece has
/// on average, and it bounds what a text of many megabytes costs.
const LETTERS_PER_TOKEN: usize = 64;

/// How text becomes words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rules {
    /// What is done to the text, in this order.
    pub(crate) steps: Vec<Step>,
    /// White space of every kind ends a word and is dropped; otherwise each space begins one.
    pub(crate) split_whitespace: bool,
    pub(crate) prepend: Prepend,
}

/// One step of normalisation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    /// By the table that comes with the model.
    Charsmap,
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
    Lowercase,
    /// Two spaces or more become this.
    Spaces(String),
    /// White space at the ends is dropped.
    Strip {
        left: bool,
        right: bool,
    },
}

/// Which words get a space in front if they have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Prepend {
    Always,
    First,
    Never,
}

/// Whether a stretch of text is the beginning of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    First,
    Later,
}

#[derive(Debug)]
pub(crate) struct Unigram {
    scores: Vec<f64>,
    unknown_score: f64,
    charsmap: Option<Charsmap>,
}

impl Unigram {
    pub(crate) fn new(rules: &Rules, vocabulary: &Vocabulary, parts: &Parts) -> Result<Unigram, String> {
        let scores = parts.doubles("scores", vocabulary.len())?;
        let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let mapped = rules.steps.contains(&Step::Charsmap);
        let charsmap = if mapped { Some(Charsmap::new(parts.bytes("charsmap")?)?) } else { None };
        Ok(Unigram { scores, unknown_score: least - UNKNOWN_PENALTY, charsmap })
    }

    /// Adds the pieces of `text` until there are `room` of them, or more by the last word.
    #[expect(clippy::too_many_arguments, reason = "the tokenizer's parts, and where the text stands")]
    pub(crate) fn encode(
        &self,
        text: &str,
        place: Place,
        rules: &Rules,
        vocabulary: &Vocabulary,
        unknown: u32,
        room: usize,
        out: &mut Vec<u32>,
    ) {
        let seen = text.char_indices().nth(room * LETTERS_PER_TOKEN).map_or(text, |(end, _)| &text[..end]);
        let text = rules.steps.iter().fold(Cow::Borrowed(seen), |text, step| self.step(step, &text).into());
        let stretches: Vec<&str> =
            if rules.split_whitespace { text.split_whitespace().collect() } else { vec![&text] };
        for (index, stretch) in stretches.into_iter().filter(|stretch| !stretch.is_empty()).enumerate() {
            let is_first = place == Place::First && index == 0;
            for word in words(
                stretch,
                rules.prepend == Prepend::Always || rules.prepend == Prepend::First && is_first,
            ) {
                if out.len() >= room {
                    return;
                }
                self.pieces(&word, vocabulary, unknown, out);
            }
        }
    }

    fn step(&self, step: &Step, text: &str) -> String {
        match step {
            Step::Charsmap => {
                self.charsmap.as_ref().map_or_else(|| text.to_owned(), |map| map.normalise(text))
            }
            Step::Nfc => text.nfc().collect(),
            Step::Nfd => text.nfd().collect(),
            Step::Nfkc => text.nfkc().collect(),
            Step::Nfkd => text.nfkd().collect(),
            Step::Lowercase => text.chars().flat_map(char::to_lowercase).collect(),
            Step::Spaces(with) => collapse(text, with),
            Step::Strip { left, right } => {
                let text = if *left { text.trim_start() } else { text };
                if *right { text.trim_end() } else { text }.to_owned()
            }
        }
    }

    /// Adds the likeliest pieces of a word. Letters in a row that are unknown are one piece.
    fn pieces(&self, word: &str, vocabulary: &Vocabulary, unknown: u32, out: &mut Vec<u32>) {
        let mut ways: Vec<Option<Way>> = vec![None; word.len() + 1];
        for (start, letter) in word.char_indices() {
            let score = ways[start].map_or(0.0, |way| way.score);
            let mut offer = |end: usize, id: u32, score: f64| {
                if ways[end].is_none_or(|way| score > way.score) {
                    ways[end] = Some(Way { start, id, score });
                }
            };
            let next = start + letter.len_utf8();
            let limit = word.len().min(start + vocabulary.longest());
            for end in (next..=limit).filter(|end| word.is_char_boundary(*end)) {
                if let Some(id) = vocabulary.find("", &word[start..end]) {
                    offer(end, id, score + self.scores[id as usize]);
                }
            }
            if vocabulary.find("", &word[start..next]).is_none() {
                offer(next, unknown, score + self.unknown_score);
            }
        }
        let before = out.len();
        let mut end = word.len();
        while let Some(way) = ways[end] {
            if !(way.id == unknown && out.len() > before && out.last() == Some(&unknown)) {
                out.push(way.id);
            }
            end = way.start;
        }
        out[before..].reverse();
    }
}

/// The best way found so far to cut a word up to some place: its last piece and how likely all of it is.
#[derive(Debug, Clone, Copy)]
struct Way {
    start: usize,
    id: u32,
    score: f64,
}

/// The words of a stretch, each beginning with its space.
fn words(stretch: &str, prepend: bool) -> Vec<String> {
    let mut spaced = stretch.replace(' ', SPACE.encode_utf8(&mut [0; 4]));
    if prepend && !spaced.starts_with(SPACE) {
        spaced.insert(0, SPACE);
    }
    let mut words: Vec<String> = Vec::new();
    for letter in spaced.chars() {
        match words.last_mut() {
            Some(word) if letter != SPACE => word.push(letter),
            _ => words.push(letter.into()),
        }
    }
    words
}

fn collapse(text: &str, with: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("  ") {
        out.push_str(&rest[..at]);
        out.push_str(with);
        rest = rest[at..].trim_start_matches(' ');
    }
    out + rest
}
