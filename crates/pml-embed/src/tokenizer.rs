//! Text becomes the numbers of the pieces a model knows.

mod charsmap;
mod unigram;
mod vocabulary;
mod wordpiece;

use serde::{Deserialize, Serialize};

use crate::parts::Parts;
use unigram::Unigram;
pub(crate) use unigram::{Prepend, Rules, Step};
use vocabulary::Vocabulary;
pub(crate) use wordpiece::Letters;

/// What a tokenizer is beside its list of pieces.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Config {
    /// The piece before every text, and the one after it.
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) unknown: u32,
    /// Pieces that are found in a text as they are written, before anything else is done to it.
    pub(crate) specials: Vec<(String, u32)>,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    WordPiece(Letters),
    Unigram(Rules),
}

#[derive(Debug)]
pub(crate) struct Tokenizer {
    config: Config,
    vocabulary: Vocabulary,
    /// What a Unigram model has beside its pieces.
    unigram: Option<Unigram>,
}

impl Tokenizer {
    pub(crate) fn new(config: &Config, parts: &Parts) -> Result<Tokenizer, String> {
        let vocabulary = Vocabulary::new(parts.text("vocabulary")?)?;
        let specials = config.specials.iter().map(|(_, id)| *id);
        let mut named = specials.chain([config.first, config.last, config.unknown]);
        if let Some(outside) = named.find(|id| *id as usize >= vocabulary.len()) {
            return Err(format!("piece {outside} of {} does not exist", vocabulary.len()));
        }
        let unigram = match &config.kind {
            Kind::WordPiece(_) => None,
            Kind::Unigram(rules) => Some(Unigram::new(rules, &vocabulary, parts)?),
        };
        Ok(Tokenizer { config: config.clone(), vocabulary, unigram })
    }

    /// How many pieces there are.
    pub(crate) fn len(&self) -> usize {
        self.vocabulary.len()
    }

    /// The pieces of a text between the two that mark its ends, at most `limit` with these.
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

    /// Where the next special piece is, its length and its number.
    fn next_special(&self, text: &str) -> Option<(usize, usize, u32)> {
        let found = self.config.specials.iter();
        let found = found.filter_map(|(special, id)| Some((text.find(special)?, special.len(), *id)));
        found.min_by_key(|(at, length, _)| (*at, usize::MAX - length))
    }

    fn plain(&self, text: &str, is_first: bool, room: usize, out: &mut Vec<u32>) {
        match (&self.config.kind, &self.unigram) {
            (Kind::Unigram(rules), Some(unigram)) => {
                let place = if is_first { unigram::Place::First } else { unigram::Place::Later };
                unigram.encode(text, place, rules, &self.vocabulary, self.config.unknown, room, out);
            }
            (Kind::WordPiece(letters), _) => {
                wordpiece::encode(text, *letters, &self.vocabulary, self.config.unknown, room, out);
            }
            (Kind::Unigram(_), None) => unreachable!("`new` makes the one with the other"),
        }
    }
}
