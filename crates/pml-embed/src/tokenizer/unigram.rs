//! Unigram, as in SentencePiece models: the most likely segmentation of a word.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use super::charsmap::Charsmap;
use super::vocabulary::Vocabulary;
use crate::parts::ModelTensors;

/// The character that stands for a space.
const SPACE: char = '\u{2581}';

/// Log-probability of an unknown character, below that of the least likely piece.
const UNKNOWN_PENALTY: f64 = 10.0;

/// Characters read per token that fits. This is far more than an average piece has, and it bounds the cost of a text of
/// many megabytes.
const LETTERS_PER_TOKEN: usize = 64;

/// Rules that turn text into words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnigramRules {
    /// Normalisation steps, in order.
    pub(crate) steps: Vec<NormaliserStep>,
    /// Whether all white space separates words and is dropped; otherwise each space begins a word.
    pub(crate) split_whitespace: bool,
    pub(crate) prepend: SpacePrepending,
}

/// One step of normalisation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NormaliserStep {
    /// The table that comes with the model.
    Charsmap,
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
    Lowercase,
    /// Runs of two or more spaces become this text.
    Spaces(String),
    /// Trims white space at the ends.
    Strip {
        left: bool,
        right: bool,
    },
}

/// Which words get a leading space when they have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SpacePrepending {
    Always,
    First,
    Never,
}

/// Whether a span is at the beginning of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanPosition {
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
    pub(crate) fn new(
        rules: &UnigramRules,
        vocabulary: &Vocabulary,
        parts: &ModelTensors,
    ) -> Result<Unigram, String> {
        let scores = parts.doubles("scores", vocabulary.len())?;
        let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let mapped = rules.steps.contains(&NormaliserStep::Charsmap);
        let charsmap = if mapped { Some(Charsmap::new(parts.bytes("charsmap")?)?) } else { None };
        Ok(Unigram { scores, unknown_score: least - UNKNOWN_PENALTY, charsmap })
    }

    /// Appends the pieces of `text` until there are at least `room`; the last word is completed.
    #[expect(clippy::too_many_arguments, reason = "the tokenizer's parts, and where the text stands")]
    pub(crate) fn encode(
        &self,
        text: &str,
        place: SpanPosition,
        rules: &UnigramRules,
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
            let is_first = place == SpanPosition::First && index == 0;
            for word in words(
                stretch,
                rules.prepend == SpacePrepending::Always
                    || rules.prepend == SpacePrepending::First && is_first,
            ) {
                if out.len() >= room {
                    return;
                }
                self.pieces(&word, vocabulary, unknown, out);
            }
        }
    }

    fn step(&self, step: &NormaliserStep, text: &str) -> String {
        match step {
            NormaliserStep::Charsmap => {
                self.charsmap.as_ref().map_or_else(|| text.to_owned(), |map| map.normalise(text))
            }
            NormaliserStep::Nfc => text.nfc().collect(),
            NormaliserStep::Nfd => text.nfd().collect(),
            NormaliserStep::Nfkc => text.nfkc().collect(),
            NormaliserStep::Nfkd => text.nfkd().collect(),
            NormaliserStep::Lowercase => text.chars().flat_map(char::to_lowercase).collect(),
            NormaliserStep::Spaces(with) => collapse(text, with),
            NormaliserStep::Strip { left, right } => {
                let text = if *left { text.trim_start() } else { text };
                if *right { text.trim_end() } else { text }.to_owned()
            }
        }
    }

    /// Appends the most likely pieces of a word. Consecutive unknown characters become one token.
    fn pieces(&self, word: &str, vocabulary: &Vocabulary, unknown: u32, out: &mut Vec<u32>) {
        let mut ways: Vec<Option<ViterbiCell>> = vec![None; word.len() + 1];
        for (start, letter) in word.char_indices() {
            let score = ways[start].map_or(0.0, |way| way.score);
            let mut offer = |end: usize, id: u32, score: f64| {
                if ways[end].is_none_or(|way| score > way.score) {
                    ways[end] = Some(ViterbiCell { start, id, score });
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

/// Best segmentation of a word up to some offset: its last piece and its log-probability.
#[derive(Debug, Clone, Copy)]
struct ViterbiCell {
    start: usize,
    id: u32,
    score: f64,
}

/// The words of a span, each beginning with its space.
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
