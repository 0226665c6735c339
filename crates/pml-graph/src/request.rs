//! A request as ranking sees it: its terms, and the parts that contain each of them.
//!
//! It is parsed against one index, which provides the rarity of terms; it never sees an item's text.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;

use pml_language::clauses::sentences;

use crate::lexical::{DocumentField, FULL_MATCH, LexicalIndex};
use crate::tokens::{self, Token};
use crate::vectors;

/// Maximum number of parts: more are noise, and cost time.
const MAX_PARTS: usize = 24;

/// Maximum bytes read of a request: no task needs a longer description, and time grows with length.
pub(crate) const MAX_BYTES: usize = 16 * 1024;

/// Smoothing of the coverage of a request by an item, in units of rarity: a match on few or common words is less
/// certain than one on many rare ones.
const DOUBT: f64 = 1.0;

/// Smoothing of the same kind for names: a short common name occurs in many requests by chance.
const NAME_DOUBT: f64 = 4.0;

/// Share of the uncovered rest of a request that naming the item answers. Half, because the rest may be arguments or
/// another task.
const NAMED: f64 = 0.5;

/// Parsed request.
#[derive(Debug)]
pub(crate) struct RequestTerms {
    /// Distinct terms, in the order of the request.
    pub(crate) terms: Vec<RequestTerm>,
    /// Distinct pairs of terms that are adjacent within a part.
    pub(crate) pairs: Vec<RequestPair>,
    /// Number of parts, at least one.
    pub(crate) parts: usize,
}

/// Two adjacent terms of a request, both of which some item has.
#[derive(Debug)]
pub(crate) struct RequestPair {
    pub(crate) first: u32,
    pub(crate) second: u32,
    /// As in [`RequestTerm`].
    parts: u32,
}

impl RequestPair {
    pub(crate) fn occurs_in(&self, part: usize) -> bool {
        self.parts & (1 << part) != 0
    }
}

/// A term of a request.
#[derive(Debug)]
pub(crate) struct RequestTerm {
    /// Number in the index; `None` when no item has the term.
    pub(crate) number: Option<u32>,
    /// Rarity of the term.
    pub(crate) idf: f32,
    /// Parts that contain the term, one bit each.
    parts: u32,
}

impl RequestTerm {
    pub(crate) fn occurs_in(&self, part: usize) -> bool {
        self.parts & (1 << part) != 0
    }
}

impl RequestTerms {
    /// Parses a request for the items of `index`.
    pub(crate) fn parse(text: &str, index: &LexicalIndex) -> RequestTerms {
        let mut request = RequestTerms { terms: Vec::new(), pairs: Vec::new(), parts: 0 };
        let (mut known, mut known_pairs) = (HashMap::new(), HashMap::new());
        for piece in sentences(pml_language::byte_prefix(text, MAX_BYTES)) {
            let tokens = tokens::tokenize(piece);
            let is_part = is_part(&tokens) && request.parts < MAX_PARTS;
            let part = if is_part { 1 << request.parts } else { 0 };
            request.parts += usize::from(is_part);
            let mut before = None;
            for token in tokens {
                let compound = token.compound;
                let number = request.add(token, part, &mut known, index);
                if !compound {
                    request.add_pair(mem::replace(&mut before, number), number, part, &mut known_pairs);
                }
            }
        }
        if request.parts == 0 {
            request.parts = 1;
            request.terms.iter_mut().for_each(|term| term.parts = 1);
        }
        request
    }

    /// Adds a term. Returns its number in the index.
    fn add(
        &mut self,
        token: Token<'_>,
        part: u32,
        known: &mut HashMap<String, usize>,
        index: &LexicalIndex,
    ) -> Option<u32> {
        match known.entry(token.term) {
            Entry::Occupied(at) => {
                let term = &mut self.terms[*at.get()];
                term.parts |= part;
                term.number
            }
            Entry::Vacant(free) => {
                let number = index.term_number(free.key());
                // The two words of a compound are added already; the compound itself may be unknown.
                if !token.compound || number.is_some() {
                    self.terms.push(RequestTerm { number, idf: index.idf(number), parts: part });
                    free.insert(self.terms.len() - 1);
                }
                number
            }
        }
    }

    /// Adds two adjacent terms when items have both.
    fn add_pair(
        &mut self,
        first: Option<u32>,
        second: Option<u32>,
        part: u32,
        known: &mut HashMap<(u32, u32), usize>,
    ) {
        let Some((first, second)) = first.zip(second) else { return };
        let at = *known.entry((first, second)).or_insert_with(|| {
            self.pairs.push(RequestPair { first, second, parts: 0 });
            self.pairs.len() - 1
        });
        self.pairs[at].parts |= part;
    }

    /// Share of the request, or of its best-covered part, that `item` covers, from 0 to 1; raised when words of its
    /// name make up that share.
    pub(crate) fn coverage_by(&self, item: usize, index: &LexicalIndex) -> f64 {
        let parts = (0..self.parts).map(|part| self.share(item, index, |term| term.occurs_in(part)));
        let share = parts.fold(self.share(item, index, |_| true), f64::max);
        share + (1.0 - share) * NAMED * self.named(item, index)
    }

    /// How surely the request names `item`: the share of the item's name that the request contains, less when the name
    /// is short and common.
    fn named(&self, item: usize, index: &LexicalIndex) -> f64 {
        let found =
            self.terms.iter().filter_map(|term| Some((term, index.find_posting(term.number?, item)?)));
        let in_name = found.filter(|(_, posting)| posting.fields.contains(DocumentField::Name));
        let mass: f64 = in_name.map(|(term, _)| f64::from(term.idf)).sum();
        if mass > 0.0 { mass / f64::from(index.name_mass(item)) * mass / (mass + NAME_DOUBT) } else { 0.0 }
    }

    fn share(&self, item: usize, index: &LexicalIndex, counts: impl Fn(&RequestTerm) -> bool) -> f64 {
        let (mut asked, mut covered) = (DOUBT, 0.0);
        for term in self.terms.iter().filter(|term| counts(term)) {
            asked += f64::from(term.idf);
            if let Some(posting) = term.number.and_then(|number| index.find_posting(number, item)) {
                covered += f64::from((posting.score / FULL_MATCH).min(term.idf));
            }
        }
        covered / asked
    }
}

/// The parts of `text`: its sentences, lines and list items with at least two meaningful words, without surrounding
/// punctuation; the whole text when there are none. [`DenseEvidence`](crate::rank::DenseEvidence) needs their vectors
/// beside that of the whole.
pub fn split_parts(text: &str) -> Vec<&str> {
    let text = pml_language::byte_prefix(text, MAX_BYTES);
    let parts: Vec<&str> =
        sentences(text).filter(|piece| is_part(&tokens::tokenize(piece))).take(MAX_PARTS).map(bare).collect();
    if parts.is_empty() { vec![bare(text)] } else { parts }
}

/// From this number of parts on, the vector of the whole is computed from those of the parts: embedding the whole text
/// costs as much as all parts together and finds nothing else.
const MANY_PARTS: usize = 4;

/// Texts of a request that have to be embedded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTexts<'t> {
    whole: Option<&'t str>,
    parts: Vec<&'t str>,
}

impl<'t> RequestTexts<'t> {
    /// The texts of `request`.
    pub fn of(request: &'t str) -> RequestTexts<'t> {
        let parts = split_parts(request);
        RequestTexts { whole: (parts.len() < MANY_PARTS).then_some(request), parts }
    }

    /// All texts, in the order in which [`assemble_vectors`](RequestTexts::assemble_vectors) takes their vectors.
    pub fn iter(&self) -> impl Iterator<Item = &'t str> {
        self.whole.into_iter().chain(self.parts.iter().copied())
    }

    /// Vectors of the whole and of each part, from the vectors of the texts; `None` when their number differs.
    pub fn assemble_vectors<V: AsRef<[f32]>>(&self, vectors: &[V]) -> Option<(Vec<f32>, Vec<Vec<f32>>)> {
        if vectors.len() != self.iter().count() {
            return None;
        }
        let mut vectors: Vec<Vec<f32>> = vectors.iter().map(|vector| vector.as_ref().to_vec()).collect();
        if self.whole.is_none() {
            return Some((vectors::mean_direction(&vectors), vectors));
        }
        let parts = vectors.split_off(1);
        Some((vectors.pop()?, parts))
    }
}

/// Whether there is more than one word, which distinguishes a part from a greeting.
fn is_part(tokens: &[Token<'_>]) -> bool {
    tokens.iter().filter(|token| !token.compound).nth(1).is_some()
}

/// `piece` without surrounding spaces and punctuation.
fn bare(piece: &str) -> &str {
    piece.trim_matches(|c: char| c.is_whitespace() || matches!(c, '-' | '*' | '—' | '–' | '•'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_many_parts_is_not_read_once_more_as_a_whole() {
        let few = RequestTexts::of("Buy some milk. Then send mail.");
        assert_eq!(
            few.iter().collect::<Vec<_>>(),
            ["Buy some milk. Then send mail.", "Buy some milk.", "Then send mail."]
        );
        let vectors = [[0.6_f32, 0.8], [1.0, 0.0], [0.0, 1.0]];
        assert_eq!(
            few.assemble_vectors(&vectors),
            Some((vec![0.6, 0.8], vec![vec![1.0, 0.0], vec![0.0, 1.0]]))
        );
        assert_eq!(few.assemble_vectors(&vectors[1..]), None);
        let many =
            RequestTexts::of("Buy some milk. Send the mail. Book the flight home. Find a quiet hotel.");
        assert_eq!(many.iter().next(), Some("Buy some milk."));
        let (whole, parts) =
            many.assemble_vectors(&[[1.0_f32, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]).unwrap();
        assert_eq!(parts.len(), 4);
        assert!(whole.iter().all(|number| (number - 0.5_f32.sqrt()).abs() < 1e-6), "{whole:?}");
    }

    #[test]
    fn parts_are_bare_and_say_something() {
        for (text, expected) in [
            ("Hello. — Translate this text! * send the mail", "Translate this text! | send the mail"),
            ("Translate. Summarise.", "Translate. Summarise."),
            (" weather ", "weather"),
            ("🙂", "🙂"),
            ("", ""),
        ] {
            assert_eq!(split_parts(text).join(" | "), expected);
        }
        assert_eq!(split_parts(&"read file. ".repeat(100)).len(), MAX_PARTS);
    }

    #[test]
    fn there_is_a_part_for_every_text_that_is_embedded() {
        for text in ["", "a", "Read file. Thanks.", "x: 1) read file 2) write file", "Hello", "read. - a b c"]
        {
            assert_eq!(
                split_parts(text).len(),
                RequestTerms::parse(text, &LexicalIndex::default()).parts,
                "{text}"
            );
        }
    }

    #[test]
    fn pieces_of_one_word_are_no_parts_and_there_is_always_one_part() {
        let index = LexicalIndex::default();
        assert_eq!(RequestTerms::parse("Hello. Translate text. Thanks!", &index).parts, 1);
        assert_eq!(RequestTerms::parse("Translate. Summarise.", &index).parts, 1);
        assert_eq!(RequestTerms::parse("", &index).parts, 1);
        assert_eq!(RequestTerms::parse(&"read file. ".repeat(100), &index).parts, MAX_PARTS);
    }
}
