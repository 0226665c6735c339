//! A request as ranking sees it: its terms, and the parts that contain each of them.
//!
//! It is parsed against one index, which provides the rarity of terms; it never sees an item's text.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;
use std::ops::Range;

use pml_language::clauses::{sentences, step_spans, without_joints};
use pml_language::related::related_words;

use crate::lexical::{DocumentField, FULL_MATCH, LexicalIndex, TermPosting};
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
    /// Weight: 1 for a word of the request, [`RankWeights::related`](crate::weights::RankWeights) for one that it is
    /// only related to.
    pub(crate) weight: f32,
    /// Parts that contain the term, one bit each.
    parts: u32,
}

impl RequestTerm {
    /// Whether the request has the term itself.
    fn is_own(&self) -> bool {
        self.weight >= 1.0
    }

    /// What an item gains by the term.
    pub(crate) fn gain(&self, posting: &TermPosting) -> f32 {
        self.weight * posting.score
    }

    pub(crate) fn occurs_in(&self, part: usize) -> bool {
        self.parts & (1 << part) != 0
    }
}

impl RequestTerms {
    /// Parses a request for the items of `index`; words that it is only related to have the weight `related`.
    pub(crate) fn parse(text: &str, index: &LexicalIndex, related: f32) -> RequestTerms {
        let mut request = RequestTerms { terms: Vec::new(), pairs: Vec::new(), parts: 0 };
        let (mut known, mut known_pairs) = (HashMap::new(), HashMap::new());
        let mut meant: Vec<(String, u32)> = Vec::new();
        for piece in pieces(pml_language::byte_prefix(text, MAX_BYTES)) {
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
            let words = related_words(piece).into_iter().filter_map(tokens::stem_word);
            meant.extend(words.map(|term| (term.into_owned(), part)));
        }
        if related > 0.0 {
            request.add_related(meant, &known, index, related);
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
                    self.terms.push(RequestTerm { number, idf: index.idf(number), weight: 1.0, parts: part });
                    free.insert(self.terms.len() - 1);
                }
                number
            }
        }
    }

    /// Adds the terms that the request is only related to, as far as items have them.
    fn add_related(
        &mut self,
        meant: Vec<(String, u32)>,
        known: &HashMap<String, usize>,
        index: &LexicalIndex,
        weight: f32,
    ) {
        let mut added: HashMap<u32, usize> = HashMap::new();
        for (term, part) in meant.into_iter().filter(|(term, _)| !known.contains_key(term)) {
            let Some(number) = index.term_number(&term) else { continue };
            let at = *added.entry(number).or_insert_with(|| {
                let idf = weight * index.idf(Some(number));
                self.terms.push(RequestTerm { number: Some(number), idf, weight, parts: 0 });
                self.terms.len() - 1
            });
            self.terms[at].parts |= part;
        }
    }

    /// Number of terms that the request itself has.
    pub(crate) fn own_terms(&self) -> usize {
        self.terms.iter().filter(|term| term.is_own()).count()
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
            asked += if term.is_own() { f64::from(term.idf) } else { 0.0 };
            if let Some(posting) = term.number.and_then(|number| index.find_posting(number, item)) {
                covered += f64::from((term.gain(&posting) / FULL_MATCH).min(term.idf));
            }
        }
        (covered / asked).min(1.0)
    }
}

/// The sentences, lines and list items of `text`; where these are few, each is split further where a second verb with an
/// object of its own begins. A text of many sentences says enough of each task as it is.
fn pieces(text: &str) -> Vec<&str> {
    let whole: Vec<&str> = sentences(text).collect();
    let said = whole.iter().filter(|piece| is_part(&tokens::tokenize(piece))).count();
    if said >= MANY_PARTS { whole } else { whole.into_iter().flat_map(steps).collect() }
}

/// The steps of a sentence. A step that does not make sense alone belongs to the one before it, or to the next one.
fn steps(sentence: &str) -> Vec<&str> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    for span in step_spans(sentence) {
        let makes_sense = |span: &Range<usize>| is_part(&tokens::tokenize(&sentence[span.clone()]));
        match spans.last_mut() {
            Some(last) if !makes_sense(last) || !makes_sense(&span) => last.end = span.end,
            _ => spans.push(span),
        }
    }
    match spans.len() {
        0 | 1 => vec![sentence],
        _ => spans.into_iter().map(|span| without_joints(&sentence[span])).collect(),
    }
}

/// The parts of `text`: its sentences, lines and list items, and the steps within them, with at least two meaningful words, without surrounding
/// punctuation; the whole text when there are none. [`DenseEvidence`](crate::rank::DenseEvidence) needs their vectors
/// beside that of the whole.
pub fn split_parts(text: &str) -> Vec<&str> {
    let text = pml_language::byte_prefix(text, MAX_BYTES);
    let parts: Vec<&str> = pieces(text)
        .into_iter()
        .filter(|piece| is_part(&tokens::tokenize(piece)))
        .take(MAX_PARTS)
        .map(bare)
        .collect();
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
            ("read a csv file and sum a column", "read a csv file | sum a column"),
            ("read and parse a JSON file, then post it", "read and parse a JSON file, then post it"),
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
                RequestTerms::parse(text, &LexicalIndex::default(), 0.0).parts,
                "{text}"
            );
        }
    }

    #[test]
    fn pieces_of_one_word_are_no_parts_and_there_is_always_one_part() {
        let index = LexicalIndex::default();
        assert_eq!(RequestTerms::parse("Hello. Translate text. Thanks!", &index, 0.0).parts, 1);
        assert_eq!(RequestTerms::parse("Translate. Summarise.", &index, 0.0).parts, 1);
        assert_eq!(RequestTerms::parse("", &index, 0.0).parts, 1);
        assert_eq!(RequestTerms::parse(&"read file. ".repeat(100), &index, 0.0).parts, MAX_PARTS);
    }
}
