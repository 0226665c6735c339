//! A request as ranking sees it: its terms, and the parts in which each of them stands.
//!
//! It is read against one index, which says how rare the terms are; it never sees an item's text.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;

use crate::lexical::{FULL_MATCH, Field, Index};
use crate::tokens::{self, Token};
use crate::vectors;

/// More parts than this are noise, and cost time.
const MAX_PARTS: usize = 24;

/// Requests are read up to here: nobody describes one task in more, and time grows with length.
pub(crate) const MAX_BYTES: usize = 16 * 1024;

/// Doubt added to the words of a request when it is asked how much an item covers, in units of rarity:
/// a match on few or common words is less certain than one on many rare ones.
const DOUBT: f64 = 1.0;

/// Doubt of the same kind about names: a short common one stands in many requests by chance.
const NAME_DOUBT: f64 = 4.0;

/// How much of what a request leaves open is answered by naming the item. Half, because the rest of the
/// request may be arguments or may be another task.
const NAMED: f64 = 0.5;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Request {
    /// Every term once, in the order of the request.
    pub(crate) terms: Vec<Term>,
    /// Every pair of terms that stand side by side in a part, once.
    pub(crate) pairs: Vec<Pair>,
    /// How many parts there are, at least one.
    pub(crate) parts: usize,
}

/// Two terms of a request that stand side by side, both of which some item has.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) first: u32,
    pub(crate) second: u32,
    /// As in [`Term`].
    parts: u32,
}

impl Pair {
    pub(crate) fn stands_in(&self, part: usize) -> bool {
        self.parts & (1 << part) != 0
    }
}

/// A term of a request.
#[derive(Debug)]
pub(crate) struct Term {
    /// Its number in the index, where any item has it.
    pub(crate) number: Option<u32>,
    /// How rare it is.
    pub(crate) idf: f32,
    /// The parts it stands in, one bit each.
    parts: u32,
}

impl Term {
    pub(crate) fn stands_in(&self, part: usize) -> bool {
        self.parts & (1 << part) != 0
    }
}

impl Request {
    /// Reads a request written for the items of `index`.
    pub(crate) fn read(text: &str, index: &Index) -> Request {
        let mut request = Request { terms: Vec::new(), pairs: Vec::new(), parts: 0 };
        let (mut known, mut known_pairs) = (HashMap::new(), HashMap::new());
        for piece in pieces(tokens::beginning(text, MAX_BYTES)) {
            let tokens = tokens::tokens(piece);
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

    /// Adds a term, and tells its number in the index.
    fn add(
        &mut self,
        token: Token<'_>,
        part: u32,
        known: &mut HashMap<String, usize>,
        index: &Index,
    ) -> Option<u32> {
        match known.entry(token.term) {
            Entry::Occupied(at) => {
                let term = &mut self.terms[*at.get()];
                term.parts |= part;
                term.number
            }
            Entry::Vacant(free) => {
                let number = index.term(free.key());
                // Its two words are there already; put together they may be nobody's word.
                if !token.compound || number.is_some() {
                    self.terms.push(Term { number, idf: index.idf(number), parts: part });
                    free.insert(self.terms.len() - 1);
                }
                number
            }
        }
    }

    /// Adds two terms that follow each other, where items have both.
    fn add_pair(
        &mut self,
        first: Option<u32>,
        second: Option<u32>,
        part: u32,
        known: &mut HashMap<(u32, u32), usize>,
    ) {
        let Some((first, second)) = first.zip(second) else { return };
        let at = *known.entry((first, second)).or_insert_with(|| {
            self.pairs.push(Pair { first, second, parts: 0 });
            self.pairs.len() - 1
        });
        self.pairs[at].parts |= part;
    }

    /// How well `item` alone answers the request, from 0 to 1: which share of the request, or of the
    /// part of it that it covers best, it covers; where words of its name make up that share, more.
    pub(crate) fn answered_by(&self, item: usize, index: &Index) -> f64 {
        let parts = (0..self.parts).map(|part| self.share(item, index, |term| term.stands_in(part)));
        let share = parts.fold(self.share(item, index, |_| true), f64::max);
        share + (1.0 - share) * NAMED * self.named(item, index)
    }

    /// How surely the request names `item`: the share of the item's name that the request has, less
    /// where the name is short and common.
    fn named(&self, item: usize, index: &Index) -> f64 {
        let found = self.terms.iter().filter_map(|term| Some((term, index.find(term.number?, item)?)));
        let in_name = found.filter(|(_, posting)| posting.fields.contains(Field::Name));
        let mass: f64 = in_name.map(|(term, _)| f64::from(term.idf)).sum();
        if mass > 0.0 { mass / f64::from(index.name_mass(item)) * mass / (mass + NAME_DOUBT) } else { 0.0 }
    }

    fn share(&self, item: usize, index: &Index, counts: impl Fn(&Term) -> bool) -> f64 {
        let (mut asked, mut covered) = (DOUBT, 0.0);
        for term in self.terms.iter().filter(|term| counts(term)) {
            asked += f64::from(term.idf);
            if let Some(posting) = term.number.and_then(|number| index.find(number, item)) {
                covered += f64::from((posting.worth / FULL_MATCH).min(term.idf));
            }
        }
        covered / asked
    }
}

/// The parts of `text`: its sentences, lines and list points that have at least two words which say
/// something, without the marks around them; the whole text where there are none. These are the texts
/// whose vectors [`Dense`](crate::rank::Dense) wants beside that of the whole.
pub fn parts(text: &str) -> Vec<&str> {
    let text = tokens::beginning(text, MAX_BYTES);
    let parts: Vec<&str> =
        pieces(text).filter(|piece| is_part(&tokens::tokens(piece))).take(MAX_PARTS).map(bare).collect();
    if parts.is_empty() { vec![bare(text)] } else { parts }
}

/// From so many parts on they tell what the whole means: to read all of it once more costs as much as the parts together,
/// and finds nothing else.
const MANY_PARTS: usize = 4;

/// The texts of a request whose vectors are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts<'t> {
    whole: Option<&'t str>,
    parts: Vec<&'t str>,
}

impl<'t> Texts<'t> {
    /// Those of `request`.
    pub fn of(request: &'t str) -> Texts<'t> {
        let parts = parts(request);
        Texts { whole: (parts.len() < MANY_PARTS).then_some(request), parts }
    }

    /// All of them, in the order in which [`meant`](Texts::meant) takes their vectors.
    pub fn all(&self) -> impl Iterator<Item = &'t str> {
        self.whole.into_iter().chain(self.parts.iter().copied())
    }

    /// What the whole and each of the parts mean, by the vectors of the texts; `None` where they are of other texts.
    pub fn meant<V: AsRef<[f32]>>(&self, vectors: &[V]) -> Option<(Vec<f32>, Vec<Vec<f32>>)> {
        if vectors.len() != self.all().count() {
            return None;
        }
        let mut vectors: Vec<Vec<f32>> = vectors.iter().map(|vector| vector.as_ref().to_vec()).collect();
        if self.whole.is_none() {
            return Some((vectors::mean(&vectors), vectors));
        }
        let parts = vectors.split_off(1);
        Some((vectors.pop()?, parts))
    }
}

/// Whether there is more than one word, so that a part can be told from a greeting.
fn is_part(tokens: &[Token<'_>]) -> bool {
    tokens.iter().filter(|token| !token.compound).nth(1).is_some()
}

/// `piece` without spaces and the marks that set it apart.
fn bare(piece: &str) -> &str {
    piece.trim_matches(|c: char| c.is_whitespace() || matches!(c, '-' | '*' | '—' | '–' | '•'))
}

/// The sentences, lines and list points of `text`.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end =
            rest.char_indices().find(|(at, c)| ends_piece(&rest[..*at], *c, &rest[at + c.len_utf8()..]));
        let end = end.map_or(rest.len(), |(at, c)| at + c.len_utf8());
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

/// Whether a piece ends with `c`. A full stop, colon or hyphen inside a word (`v1.2`, `12:30`, `e-mail`)
/// ends nothing.
fn ends_piece(before: &str, c: char, after: &str) -> bool {
    let space_follows = after.chars().next().is_none_or(char::is_whitespace);
    match c {
        '\n' | ';' | '—' | '–' | '•' | '。' | '！' | '？' | '；' => true,
        '.' | '!' | '?' | ':' => space_follows,
        '-' | '*' => space_follows && before.chars().next_back().is_none_or(char::is_whitespace),
        c => c.is_whitespace() && is_numbered(after),
    }
}

/// Whether `text` begins like a point of a list: `2) …` or `(2) …`.
fn is_numbered(text: &str) -> bool {
    let text = text.strip_prefix('(').unwrap_or(text);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    matches!(digits, 1 | 2) && text[digits..].starts_with(')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_many_parts_is_not_read_once_more_as_a_whole() {
        let few = Texts::of("Buy some milk. Then send mail.");
        assert_eq!(
            few.all().collect::<Vec<_>>(),
            ["Buy some milk. Then send mail.", "Buy some milk.", "Then send mail."]
        );
        let vectors = [[0.6_f32, 0.8], [1.0, 0.0], [0.0, 1.0]];
        assert_eq!(few.meant(&vectors), Some((vec![0.6, 0.8], vec![vec![1.0, 0.0], vec![0.0, 1.0]])));
        assert_eq!(few.meant(&vectors[1..]), None);
        let many = Texts::of("Buy some milk. Send the mail. Book the flight home. Find a quiet hotel.");
        assert_eq!(many.all().next(), Some("Buy some milk."));
        let (whole, parts) = many.meant(&[[1.0_f32, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]).unwrap();
        assert_eq!(parts.len(), 4);
        assert!(whole.iter().all(|number| (number - 0.5_f32.sqrt()).abs() < 1e-6), "{whole:?}");
    }

    #[test]
    fn a_request_falls_into_sentences_lines_and_points() {
        for (text, expected) in [
            ("Fly to v1.2 street. Then e-mail Ann!", "Fly to v1.2 street. | Then e-mail Ann!"),
            ("- buy milk\n- send mail", "buy milk | send mail"),
            ("weather tomorrow — news today; stocks?", "weather tomorrow — | news today; | stocks?"),
            ("查天气。发邮件", "查天气。 | 发邮件"),
            (
                "Do this: 1) buy milk, 2) send mail at 12:30",
                "Do this: | 1) buy milk, | 2) send mail at 12:30",
            ),
            ("costs (2) as much as v(1) in 1990) or (x)", "costs | (2) as much as v(1) in 1990) or (x)"),
        ] {
            let found = pieces(text).map(str::trim).filter(|piece| !matches!(*piece, "" | "-"));
            assert_eq!(found.collect::<Vec<_>>().join(" | "), expected);
        }
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
            assert_eq!(parts(text).join(" | "), expected);
        }
        assert_eq!(parts(&"read file. ".repeat(100)).len(), MAX_PARTS);
    }

    #[test]
    fn there_is_a_part_for_every_text_that_is_embedded() {
        for text in ["", "a", "Read file. Thanks.", "x: 1) read file 2) write file", "Hello", "read. - a b c"]
        {
            assert_eq!(parts(text).len(), Request::read(text, &Index::default()).parts, "{text}");
        }
    }

    #[test]
    fn pieces_of_one_word_are_no_parts_and_there_is_always_one_part() {
        let index = Index::default();
        assert_eq!(Request::read("Hello. Translate text. Thanks!", &index).parts, 1);
        assert_eq!(Request::read("Translate. Summarise.", &index).parts, 1);
        assert_eq!(Request::read("", &index).parts, 1);
        assert_eq!(Request::read(&"read file. ".repeat(100), &index).parts, MAX_PARTS);
    }
}
