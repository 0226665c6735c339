//! The similarity of two intents, whatever their values: whether they ask for the same procedure.
//!
//! A similarity of at least [`super::SURE`] means that nothing differs: one word more, fewer or different on either
//! side and it is lower. Below that, the number tells how far apart the intents are.

use std::collections::HashSet;

use super::fold::fold;
use super::literals::{IntentLiteral, LiteralClass};
use super::values::Strictness;
use super::vocabulary as table;
use super::words::{IntentToken, WordFunction, concept, tokenize};

/// A parsed intent, to be compared with others.
#[derive(Debug, Clone)]
pub struct ComparableIntent(Vec<IntentPiece>);

impl ComparableIntent {
    /// Parses `intent`.
    pub fn new(intent: &str) -> ComparableIntent {
        ComparableIntent(plain(intent))
    }

    /// The similarity from 0 to 1. Literals are compared by class, not by value.
    pub fn similarity(&self, other: &ComparableIntent) -> f64 {
        compare(&self.0, &other.0, Strictness::Reads)
    }
}

/// As [`ComparableIntent::similarity`]; with [`Strictness::Writes`] the intents must use the same words.
pub(super) fn similarity_of(a: &str, b: &str, strict: Strictness) -> f64 {
    compare(&plain(a), &plain(b), strict)
}

/// The pieces of an intent; none for a text longer than an intent may be.
fn plain(intent: &str) -> Vec<IntentPiece> {
    tokenize(Some(intent).filter(|intent| intent.len() <= super::LONGEST).unwrap_or_default())
        .into_iter()
        .map(IntentPiece::Token)
        .collect()
}

/// A piece of an intent for comparison.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum IntentPiece {
    /// A word, or a literal compared by class.
    Token(IntentToken),
    /// The value of parameters, compared by their names: the value may differ.
    Slot(String, Option<LiteralClass>),
}

/// A concept that an intent contains.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SaidConcept {
    key: String,
    raw: String,
    /// The role of the concept: bits of the vocabulary's `ROLES`.
    role: u16,
    /// Whether it is a person, where every difference of role matters.
    person: bool,
    word: bool,
}

#[derive(Debug, Default)]
struct IntentOutline {
    said: Vec<SaidConcept>,
    negated: bool,
    asks: bool,
    /// It states something, or asks whether it is so.
    states: bool,
    /// It asks for one thing and another.
    joins: bool,
}

/// As [`ComparableIntent::similarity`], for intents whose values have been placed.
pub(super) fn compare(a: &[IntentPiece], b: &[IntentPiece], strict: Strictness) -> f64 {
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
    // `show tag v1` and `tag v1`, `is it closed` and `close it`: for a procedure that changes something, implied
    // words do not count as said.
    let told = only_mine.is_empty()
        && only_theirs.is_empty()
        && mine.asks == theirs.asks
        && mine.states == theirs.states;
    let read_into = strict == Strictness::Writes && !told;
    // With two actions, the order tells what is done to what; and `is the tree clean` does not ask for `clean the
    // tree`.
    let ordered =
        strict == Strictness::Writes || (mine.joins && theirs.joins) || mine.states != theirs.states;
    if heavy || read_into || (ordered && order_differs(&mine, &theirs)) || number_flips(&mine, &theirs) {
        return 0.8 * overlap;
    }
    #[expect(clippy::cast_precision_loss, reason = "an intent has few words")]
    let implied = (only_mine.len() + only_theirs.len()) as f64;
    let asked = if mine.asks == theirs.asks { 0.0 } else { 0.01 };
    (1.0 - 0.04 * implied.min(3.0) - asked).max(super::SURE)
}

/// The folded words of an intent outside its literals.
fn vocabulary(pieces: &[IntentPiece]) -> HashSet<String> {
    let words = pieces.iter().filter_map(|piece| match piece {
        IntentPiece::Token(IntentToken::Word(word)) => Some(fold(&word.raw)),
        IntentPiece::Token(IntentToken::Literal(_)) | IntentPiece::Slot(..) => None,
    });
    words.collect()
}

fn outline(pieces: &[IntentPiece], others: &HashSet<String>) -> IntentOutline {
    let mut outline = IntentOutline::default();
    let mut role = 0;
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            IntentPiece::Slot(name, class) => {
                outline.say(format!("<{name}>"), name, role, class.is_some_and(is_person));
            }
            IntentPiece::Token(IntentToken::Literal(literal)) => outline.say_literal(literal, role, others),
            IntentPiece::Token(IntentToken::Word(word)) => match word.function {
                WordFunction::Role(found) => {
                    role = found;
                    continue;
                }
                WordFunction::Nothing | WordFunction::Light => continue,
                WordFunction::Stating => {
                    outline.states = true;
                    continue;
                }
                WordFunction::Negation => outline.negated = true,
                WordFunction::Ask => outline.asks = true,
                WordFunction::Joining => outline.joins = true,
                WordFunction::Content => outline.say_word(&word.concept, &word.raw, role),
            },
        }
        // `of the Sales department` and `of department Sales`: a name and its noun have one role, in either order.
        if !pieces.get(at + 1).is_some_and(|next| is_named(piece, next)) {
            role = 0;
        }
    }
    outline
}

/// Whether a piece is the value of a parameter, or a name.
fn is_name(piece: &IntentPiece) -> bool {
    match piece {
        IntentPiece::Slot(..) => true,
        IntentPiece::Token(IntentToken::Literal(literal)) => literal.class == LiteralClass::Name,
        IntentPiece::Token(IntentToken::Word(_)) => false,
    }
}

/// Whether two pieces are a name and a noun, whichever comes first.
fn is_named(one: &IntentPiece, other: &IntentPiece) -> bool {
    let noun =
        |piece: &IntentPiece| matches!(piece, IntentPiece::Token(token) if token.content_word().is_some());
    (is_name(one) && noun(other)) || (noun(one) && is_name(other))
}

fn is_person(class: LiteralClass) -> bool {
    matches!(class, LiteralClass::Handle | LiteralClass::Email)
}

impl IntentOutline {
    fn say(&mut self, key: String, raw: &str, role: u16, person: bool) {
        self.said.push(SaidConcept { key, raw: raw.to_owned(), role, person, word: false });
    }

    fn say_word(&mut self, key: &str, raw: &str, role: u16) {
        self.said.push(SaidConcept { key: key.to_owned(), raw: fold(raw), role, person: false, word: true });
    }

    /// Adds a literal. A name or a quoted text that the other intent has as plain words is compared as words.
    fn say_literal(&mut self, literal: &IntentLiteral, role: u16, others: &HashSet<String>) {
        let folded = fold(&literal.text);
        let words: Vec<&str> =
            folded.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
        let plain = matches!(literal.class, LiteralClass::Name | LiteralClass::Quoted);
        if plain && words.iter().all(|word| others.contains(*word)) {
            for word in words {
                self.say_word(&concept(word), word, role);
            }
            return;
        }
        let class = if literal.class == LiteralClass::Id && literal.text.starts_with('#') {
            LiteralClass::Number
        } else {
            literal.class
        };
        // The unit is part of the comparison, unlike the number: 5 MB are not 5 GB.
        let key = format!("<{class:?}{}>", literal.unit());
        self.say(key, &literal.text, role, is_person(class));
    }

    fn has(&self, keys: &[&str]) -> bool {
        self.said.iter().any(|said| keys.contains(&said.key.as_str()))
    }
}

/// The concepts that only one of the intents contains, and the number that both contain.
fn differences<'a>(
    mine: &'a IntentOutline,
    theirs: &'a IntentOutline,
) -> (Vec<&'a SaidConcept>, Vec<&'a SaidConcept>, usize) {
    let mut left: Vec<&SaidConcept> = theirs.said.iter().collect();
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

/// Whether the shared words stand in another order.
fn order_differs(mine: &IntentOutline, theirs: &IntentOutline) -> bool {
    let shared = |one: &IntentOutline, other: &IntentOutline| -> Vec<String> {
        let words = one
            .said
            .iter()
            .filter(|said| said.word && other.said.iter().any(|o| o.word && o.key == said.key));
        words.map(|said| said.key.clone()).collect()
    };
    shared(mine, theirs) != shared(theirs, mine)
}

fn opposed(mine: &[&SaidConcept], theirs: &[&SaidConcept]) -> bool {
    mine.iter().any(|said| theirs.iter().any(|other| table::are_opposites(&said.key, &other.key)))
}

/// Whether `theirs` implies the concept that only `mine` contains.
fn implied(said: &SaidConcept, mine: &IntentOutline, theirs: &IntentOutline) -> bool {
    let key = said.key.as_str();
    if table::BRINGING.contains(&key) {
        // Counting the words of a file implies reading it. Said last, reading is a request of its own.
        let first = mine.said.first().is_some_and(|first| first == said);
        let makes = mine.has(table::MAKING) && theirs.has(table::MAKING);
        let brings_otherwise = theirs.has(table::BRINGING);
        return first && (makes || !brings_otherwise);
    }
    // Asking for the files implies asking for all of them, as long as nothing is done to them.
    key == "all"
        && !mine.has(&["last", "first"])
        && mine.has(&["list", "read", "search", "count", "summarize"])
}

/// Whether a concept has another role: `from` instead of `to`, or what is counted per what.
fn roles_conflict(mine: &IntentOutline, theirs: &IntentOutline) -> bool {
    mine.said.iter().any(|said| {
        let mut same = theirs.said.iter().filter(|other| other.key == said.key);
        let (Some(other), None) = (same.next(), same.next()) else { return false };
        disagree(said, other) || (said.role != 0 && other.role == 0 && taken(said, mine, theirs))
    })
}

fn disagree(one: &SaidConcept, other: &SaidConcept) -> bool {
    if one.person && (one.role == 0) != (other.role == 0) {
        return true;
    }
    let both = one.role != 0 && other.role != 0;
    let apart = one.role & other.role == 0;
    let directed = (one.role | other.role) & (table::TO | table::BY | table::PER) != 0;
    both && apart && (one.person || directed)
}

/// Whether another concept of `theirs` has the role that `said` has in `mine`.
fn taken(said: &SaidConcept, mine: &IntentOutline, theirs: &IntentOutline) -> bool {
    let elsewhere = theirs.said.iter().filter(|other| other.key != said.key && other.role & said.role != 0);
    let mut moved = elsewhere.filter(|other| {
        mine.said.iter().any(|before| before.key == other.key && before.role & said.role == 0)
    });
    moved.next().is_some()
}

/// Whether one of many became all of them, or the reverse, where that matters.
fn number_flips(mine: &IntentOutline, theirs: &IntentOutline) -> bool {
    const COUNTED: &[&str] = &["last", "first", "newest", "oldest", "largest", "smallest"];
    let counts = mine.has(&["count"]);
    let matters = mine.has(COUNTED)
        || !mine.has(table::BRINGING) && !mine.has(table::MAKING) && !mine.asks
        || mine.has(&["delete"]);
    let says =
        |outline: &IntentOutline, raw: &str| outline.said.iter().any(|said| said.word && said.raw == raw);
    // `litres … per litre` says both, and so does the other one.
    let flips = |one: &IntentOutline, other: &IntentOutline| {
        one.said.iter().filter(|said| said.word).any(|said| {
            let plural = format!("{}s", said.raw);
            says(other, &plural) && !says(other, &said.raw) && !says(one, &plural)
        })
    };
    !counts && matters && (flips(mine, theirs) || flips(theirs, mine))
}
