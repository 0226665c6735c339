//! How sure two intents ask for the same procedure, whatever their values.
//!
//! Sure means that nothing that was said differs: one word more, less or other on either side and the
//! answer is below [`super::SURE`]. What is left for the number to tell is how far apart they are.

use std::collections::HashSet;

use super::literals::{Class, Literal};
use super::values::Strict;
use super::vocabulary as table;
use super::words::{Part, Token, concept, fold, tokens};

/// An intent that was read, to be compared with others.
#[derive(Debug, Clone)]
pub struct Read(Vec<Piece>);

impl Read {
    /// Reads `intent`.
    pub fn new(intent: &str) -> Read {
        Read(plain(intent))
    }

    /// How sure both ask for the same procedure, from 0 to 1. Literals count by their class.
    pub fn similarity(&self, other: &Read) -> f64 {
        compare(&self.0, &other.0, Strict::Reads)
    }
}

/// As [`Read::similarity`]; a request that changes something has to be put in the same words.
pub(super) fn similarity_of(a: &str, b: &str, strict: Strict) -> f64 {
    compare(&plain(a), &plain(b), strict)
}

/// The pieces of an intent; none of a text that is too long to be one.
fn plain(intent: &str) -> Vec<Piece> {
    tokens(Some(intent).filter(|intent| intent.len() <= super::LONGEST).unwrap_or_default())
        .into_iter()
        .map(Piece::Token)
        .collect()
}

/// A piece of an intent that is compared.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    /// A word, or a literal that counts by its class.
    Token(Token),
    /// The value of parameters, which counts by their names: it may differ.
    Slot(String, Option<Class>),
}

/// Something an intent says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Said {
    key: String,
    raw: String,
    /// How it is related to what stands before it.
    role: u16,
    /// Whether it is about a person, where every relation makes a difference.
    person: bool,
    word: bool,
}

#[derive(Debug, Default)]
struct Outline {
    said: Vec<Said>,
    negated: bool,
    asks: bool,
    /// It says or asks that something is so.
    states: bool,
    /// It asks for one thing and another.
    joins: bool,
}

/// As [`Read::similarity`], for intents whose values have been found.
pub(super) fn compare(a: &[Piece], b: &[Piece], strict: Strict) -> f64 {
    let (mine, theirs) = (outline(a, &vocabulary(b)), outline(b, &vocabulary(a)));
    let (only_mine, only_theirs, shared) = differences(&mine, &theirs);
    if shared == 0 {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "an intent has few words")]
    let overlap = (2 * shared) as f64 / (mine.said.len() + theirs.said.len()) as f64;
    if mine.negated != theirs.negated
        || opposed(&only_mine, &only_theirs)
        || roles_conflict(&mine, &theirs)
        || roles_conflict(&theirs, &mine)
    {
        return 0.3 * overlap;
    }
    let heavy = only_mine.iter().any(|said| !implied(said, &mine, &theirs))
        || only_theirs.iter().any(|said| !implied(said, &theirs, &mine));
    // `show tag v1` and `tag v1`, `is it closed` and `close it`: with a plan that changes something, what
    // is read into a request is left out.
    let told = only_mine.is_empty()
        && only_theirs.is_empty()
        && mine.asks == theirs.asks
        && mine.states == theirs.states;
    let read_into = strict == Strict::Writes && !told;
    // With two things to do, the order says what is done to what; and `is the tree clean` asks what `clean the tree` does.
    let ordered = strict == Strict::Writes || (mine.joins && theirs.joins) || mine.states != theirs.states;
    if heavy || read_into || (ordered && order_differs(&mine, &theirs)) || number_flips(&mine, &theirs) {
        return 0.8 * overlap;
    }
    #[expect(clippy::cast_precision_loss, reason = "an intent has few words")]
    let implied = (only_mine.len() + only_theirs.len()) as f64;
    let asked = if mine.asks == theirs.asks { 0.0 } else { 0.01 };
    (1.0 - 0.04 * implied.min(3.0) - asked).max(super::SURE)
}

/// The folded words of an intent that are not part of a literal.
fn vocabulary(pieces: &[Piece]) -> HashSet<String> {
    let words = pieces.iter().filter_map(|piece| match piece {
        Piece::Token(Token::Word(word)) => Some(fold(&word.raw)),
        Piece::Token(Token::Literal(_)) | Piece::Slot(..) => None,
    });
    words.collect()
}

fn outline(pieces: &[Piece], others: &HashSet<String>) -> Outline {
    let mut outline = Outline::default();
    let mut role = 0;
    for piece in pieces {
        match piece {
            Piece::Slot(name, class) => {
                outline.say(format!("<{name}>"), name, role, class.is_some_and(is_person));
            }
            Piece::Token(Token::Literal(literal)) => outline.say_literal(literal, role, others),
            Piece::Token(Token::Word(word)) => match word.part {
                Part::Role(found) => {
                    role = found;
                    continue;
                }
                Part::Void | Part::Light => continue,
                Part::Stating => {
                    outline.states = true;
                    continue;
                }
                Part::Negation => outline.negated = true,
                Part::Ask => outline.asks = true,
                Part::Joining => outline.joins = true,
                Part::Content => outline.say_word(&word.concept, &word.raw, role),
            },
        }
        role = 0;
    }
    outline
}

fn is_person(class: Class) -> bool {
    matches!(class, Class::Handle | Class::Email)
}

impl Outline {
    fn say(&mut self, key: String, raw: &str, role: u16, person: bool) {
        self.said.push(Said { key, raw: raw.to_owned(), role, person, word: false });
    }

    fn say_word(&mut self, key: &str, raw: &str, role: u16) {
        self.said.push(Said { key: key.to_owned(), raw: fold(raw), role, person: false, word: true });
    }

    /// A name or a quoted text that the other intent has as plain words is compared as those.
    fn say_literal(&mut self, literal: &Literal, role: u16, others: &HashSet<String>) {
        let folded = fold(&literal.text);
        let words: Vec<&str> =
            folded.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
        let plain = matches!(literal.class, Class::Name | Class::Quoted);
        if plain && words.iter().all(|word| others.contains(*word)) {
            for word in words {
                self.say_word(&concept(word), word, role);
            }
            return;
        }
        let class = if literal.class == Class::Id && literal.text.starts_with('#') {
            Class::Number
        } else {
            literal.class
        };
        // What is written to a number is no value of its own: 5 MB are not 5 GB.
        let key = format!("<{class:?}{}>", literal.unit());
        self.say(key, &literal.text, role, is_person(class));
    }

    fn has(&self, keys: &[&str]) -> bool {
        self.said.iter().any(|said| keys.contains(&said.key.as_str()))
    }
}

/// What only one of them says, and how much both say.
fn differences<'a>(mine: &'a Outline, theirs: &'a Outline) -> (Vec<&'a Said>, Vec<&'a Said>, usize) {
    let mut left: Vec<&Said> = theirs.said.iter().collect();
    let mut only_mine = Vec::new();
    for said in &mine.said {
        match left.iter().position(|other| other.key == said.key) {
            Some(at) => drop(left.remove(at)),
            None => only_mine.push(said),
        }
    }
    let shared = mine.said.len() - only_mine.len();
    (only_mine, left, shared)
}

/// Whether the words both say stand in another order.
fn order_differs(mine: &Outline, theirs: &Outline) -> bool {
    let shared = |one: &Outline, other: &Outline| -> Vec<String> {
        let words = one
            .said
            .iter()
            .filter(|said| said.word && other.said.iter().any(|o| o.word && o.key == said.key));
        words.map(|said| said.key.clone()).collect()
    };
    shared(mine, theirs) != shared(theirs, mine)
}

fn opposed(mine: &[&Said], theirs: &[&Said]) -> bool {
    mine.iter().any(|said| theirs.iter().any(|other| opposites(&said.key, &other.key)))
}

/// Whether two concepts contradict each other.
pub(super) fn opposites(one: &str, other: &str) -> bool {
    table::OPPOSITES.iter().any(|(a, b)| (one == *a && other == *b) || (one == *b && other == *a))
}

/// Whether what `said` adds to `mine` is meant by `theirs` as well.
fn implied(said: &Said, mine: &Outline, theirs: &Outline) -> bool {
    let key = said.key.as_str();
    if table::BRINGING.contains(&key) {
        // Who counts the words of a file reads it. Said last, it is a request of its own.
        let first = mine.said.first().is_some_and(|first| first == said);
        let makes = mine.has(table::MAKING) && theirs.has(table::MAKING);
        let brings_otherwise = theirs.has(table::BRINGING);
        return first && (makes || !brings_otherwise);
    }
    // Who asks for the files asks for all of them, as long as nothing is done to them.
    key == "all"
        && !mine.has(&["last", "first"])
        && mine.has(&["list", "read", "search", "count", "summarize"])
}

/// Whether something stands in another relation: `from` instead of `to`, or what is counted per what.
fn roles_conflict(mine: &Outline, theirs: &Outline) -> bool {
    mine.said.iter().any(|said| {
        let mut same = theirs.said.iter().filter(|other| other.key == said.key);
        let (Some(other), None) = (same.next(), same.next()) else { return false };
        disagree(said, other) || (said.role != 0 && other.role == 0 && taken(said, mine, theirs))
    })
}

fn disagree(one: &Said, other: &Said) -> bool {
    if one.person && (one.role == 0) != (other.role == 0) {
        return true;
    }
    let both = one.role != 0 && other.role != 0;
    let apart = one.role & other.role == 0;
    let directed = (one.role | other.role) & (table::TO | table::BY | table::PER) != 0;
    both && apart && (one.person || directed)
}

/// Whether in `theirs` something else has the relation that `said` has in `mine`.
fn taken(said: &Said, mine: &Outline, theirs: &Outline) -> bool {
    let elsewhere = theirs.said.iter().filter(|other| other.key != said.key && other.role & said.role != 0);
    let mut moved = elsewhere.filter(|other| {
        mine.said.iter().any(|before| before.key == other.key && before.role & said.role == 0)
    });
    moved.next().is_some()
}

/// Whether one of many became all of them, or the other way round, where that makes a difference.
fn number_flips(mine: &Outline, theirs: &Outline) -> bool {
    const COUNTED: &[&str] = &["last", "first", "newest", "oldest", "largest", "smallest"];
    let counts = mine.has(&["count"]);
    let matters = mine.has(COUNTED)
        || !mine.has(table::BRINGING) && !mine.has(table::MAKING) && !mine.asks
        || mine.has(&["delete"]);
    let flips = |said: &Said| {
        let plural = format!("{}s", said.raw);
        said.word && theirs.said.iter().any(|other| other.word && other.raw == plural)
    };
    let flips_back = |other: &Said| {
        let plural = format!("{}s", other.raw);
        other.word && mine.said.iter().any(|said| said.word && said.raw == plural)
    };
    !counts && matters && (mine.said.iter().any(flips) || theirs.said.iter().any(flips_back))
}
