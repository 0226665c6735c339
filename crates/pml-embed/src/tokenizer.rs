//! Tokenizers: text to token ids.

mod charsmap;
mod unigram;
mod vocabulary;
mod wordpiece;

use serde::{Deserialize, Serialize};

use crate::parts::ModelTensors;
use unigram::Unigram;
pub(crate) use unigram::{NormaliserStep, SpacePrepending, UnigramRules};
use vocabulary::Vocabulary;
pub(crate) use wordpiece::LetterRules;

/// Settings of a tokenizer, without its vocabulary.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TokenizerConfig {
    /// Ids of the tokens before and after every text.
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) unknown: u32,
    /// Special tokens, matched literally before any normalisation.
    pub(crate) specials: Vec<(String, u32)>,
    pub(crate) kind: TokenizerKind,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TokenizerKind {
    WordPiece(LetterRules),
    Unigram(UnigramRules),
}

#[derive(Debug)]
pub(crate) struct Tokenizer {
    config: TokenizerConfig,
    vocabulary: Vocabulary,
    /// Scores and normalisation table; only for Unigram models.
    unigram: Option<Unigram>,
}

impl Tokenizer {
    pub(crate) fn new(config: &TokenizerConfig, parts: &ModelTensors) -> Result<Tokenizer, String> {
        let vocabulary = Vocabulary::new(parts.text("vocabulary")?)?;
        let specials = config.specials.iter().map(|(_, id)| *id);
        let mut named = specials.chain([config.first, config.last, config.unknown]);
        if let Some(outside) = named.find(|id| *id as usize >= vocabulary.len()) {
            return Err(format!("piece {outside} of {} does not exist", vocabulary.len()));
        }
        let unigram = match &config.kind {
            TokenizerKind::WordPiece(_) => None,
            TokenizerKind::Unigram(rules) => Some(Unigram::new(rules, &vocabulary, parts)?),
        };
        Ok(Tokenizer { config: config.clone(), vocabulary, unigram })
    }

    /// Size of the vocabulary.
    pub(crate) fn len(&self) -> usize {
        self.vocabulary.len()
    }

    /// The token ids of a text, including the first and last token, at most `limit` in all.
    pub(crate) fn encode(&self, text: &str, limit: usize) -> Vec<u32> {
        let mut out = vec![self.config.first];
        let room = limit - 1;
        let mut rest = text;
        while out.len() < room && !rest.is_empty() {
            let special = self.next_special(rest);
            let (at, after) = special.map_or((rest.len(), rest.len()), |(at, length, _)| (at, at + length));
            self.plain(&rest[..at], rest.len() == text.len(), room, &mut out);
            out.extend(special.map(|(_, _, id)| id));
            rest = &rest[after..];
        }
        out.truncate(room);
        out.push(self.config.last);
        out
    }

    /// Offset, length and id of the next special token.
    fn next_special(&self, text: &str) -> Option<(usize, usize, u32)> {
        let found = self.config.specials.iter();
        let found = found.filter_map(|(special, id)| Some((text.find(special)?, special.len(), *id)));
        found.min_by_key(|(at, length, _)| (*at, usize::MAX - length))
    }

    fn plain(&self, text: &str, is_first: bool, room: usize, out: &mut Vec<u32>) {
        match (&self.config.kind, &self.unigram) {
            (TokenizerKind::Unigram(rules), Some(unigram)) => {
                let place =
                    if is_first { unigram::SpanPosition::First } else { unigram::SpanPosition::Later };
                unigram.encode(text, place, rules, &self.vocabulary, self.config.unknown, room, out);
            }
            (TokenizerKind::WordPiece(letters), _) => {
                wordpiece::encode(text, *letters, &self.vocabulary, self.config.unknown, room, out);
            }
            (TokenizerKind::Unigram(_), None) => unreachable!("`new` makes the one with the other"),
        }
    }
}
