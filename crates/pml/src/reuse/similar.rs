//! The similarity of two intents, whatever their values: whether they ask for the same procedure.
//!
//! A similarity of at least [`super::SURE`] means that nothing differs: one word more, fewer or different on either
//! side and it is lower. Below that, the number tells how far apart the intents are.

use pml_language::units::unit_named;

use super::fold::fold;
use super::literals::{IntentLiteral, LiteralClass};
use super::values::Strictness;
use super::vocabulary as table;
use super::words::{IntentToken, IntentWord, WordFunction, concept, family};

/// A piece of an intent for comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum IntentPiece<'a> {
    /// A word, or a literal compared by class.
    Token(&'a IntentToken),
    /// The value of parameters, compared by their names: the value may differ.
    Slot(&'a str, Option<LiteralClass>),
}

impl<'a> IntentPiece<'a> {
    /// The word, where it is one.
    pub(super) fn word(&self) -> Option<&'a IntentWord> {
        match self {
            IntentPiece::Token(IntentToken::Word(word)) => Some(word),
            IntentPiece::Token(IntentToken::Literal(_)) | IntentPiece::Slot(..) => None,
        }
    }
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
    /// Whether it is said as an order: `clean the tree`.
    order: bool,
    /// Whether it is the verb of a subject: `who plays`.
    verb: bool,
}

#[derive(Debug, Default)]
struct IntentOutline {
    said: Vec<SaidConcept>,
    negated: bool,
    asks: bool,
    /// It asks for somebody: `who took the decisions` is not `which decisions were taken`.
    asks_who: bool,
    /// It says by a noun who that is, so that the noun alone asks for the same.
    names_who: bool,
    /// The time that it speaks of, where it says so.
    tense: Option<Tense>,
    /// It states something, or asks whether it is so.
    states: bool,
    /// It asks for one thing and another.
    joins: bool,
}

/// The similarity of two intents from 0 to 1; with [`Strictness::Writes`] they must use the same words.
pub(super) fn compare(a: &[IntentPiece<'_>], b: &[IntentPiece<'_>], strict: Strictness) -> f64 {
    let (mine, theirs) = (outline(a, b), outline(b, a));
    let (only_mine, only_theirs, shared) = differences(&mine, &theirs, strict);
    if shared == 0 {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "an intent has few words")]
    let overlap = (2 * shared) as f64 / (mine.said.len() + theirs.said.len()) as f64;
    if mine.negated != theirs.negated
        || (mine.asks_who != theirs.asks_who && !mine.names_who && !theirs.names_who)
        || mine.tense.zip(theirs.tense).is_some_and(|(one, other)| one != other)
        || opposed(&only_mine, &only_theirs)
        || roles_conflict(&mine, &theirs)
        || roles_conflict(&theirs, &mine)
    {
        return 0.3 * overlap;
    }
    // `what is the mass in a.txt` and `how much flour is in b.txt`: where only values are shared, every word counts.
    let shares_words =
        mine.said.iter().any(|said| said.word && !only_mine.contains(&said) && is_telling(said));
    if !shares_words && !is_same_sentence(a, b) {
        return 0.8 * overlap;
    }
    let heavy =
        only_mine.iter().any(|said| !implied(said, &mine, &theirs) && !is_named_anyway(said, &theirs))
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
    let orders = |one: &IntentOutline, other: &IntentOutline| {
        one.said.iter().any(|said| said.order && other.has(&[said.key.as_str()]))
    };
    let stated = mine.states != theirs.states && (orders(&mine, &theirs) || orders(&theirs, &mine));
    let ordered = strict == Strictness::Writes || (mine.joins && theirs.joins) || stated;
    if heavy || read_into || (ordered && order_differs(&mine, &theirs)) || number_flips(&mine, &theirs) {
        return 0.8 * overlap;
    }
    #[expect(clippy::cast_precision_loss, reason = "an intent has few words")]
    let implied = (only_mine.len() + only_theirs.len()) as f64;
    let asked = if mine.asks == theirs.asks { 0.0 } else { 0.01 };
    (1.0 - 0.04 * implied.min(3.0) - asked).max(super::SURE)
}

fn outline(pieces: &[IntentPiece<'_>], others: &[IntentPiece<'_>]) -> IntentOutline {
    let mut outline = IntentOutline::default();
    let mut role = 0;
    let mut position = ClausePosition::Start;
    let first = pieces.iter().find_map(IntentPiece::word);
    outline.asks_who =
        first.is_some_and(|word| ["who", "whose", "whom", "qui"].contains(&fold(&word.raw).as_str()));
    outline.names_who = outline.asks_who && names_person(pieces);
    for (at, piece) in pieces.iter().enumerate() {
        outline.tense = outline.tense.or_else(|| Tense::of(&fold(&piece.word()?.raw)));
        if let Some(word) =
            piece.word().filter(|word| table::STATEMENT_STARTS.contains(&fold(&word.raw).as_str()))
        {
            // `can you do it` is an order.
            let orders = position == ClausePosition::Start && fold(&word.raw) == "do" && at > 0;
            position = if orders { position } else { ClausePosition::Statement };
        }
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
                WordFunction::Ask => {
                    outline.asks = true;
                    position = position.max(ClausePosition::Within);
                }
                WordFunction::Joining => {
                    outline.joins = true;
                    position = ClausePosition::Start;
                }
                WordFunction::Content if is_amount(word, pieces.get(at + 1)) => continue,
                WordFunction::Content => {
                    let is_noun = pieces.get(at + 1).and_then(IntentPiece::word).is_some_and(is_role);
                    outline.say_word(&word.concept, &word.raw, role);
                    let subject =
                        at.checked_sub(1).and_then(|at| pieces[at].word()).map(|word| fold(&word.raw));
                    let is_verb =
                        subject.is_some_and(|word| ["who", "that", "which", "qui"].contains(&word.as_str()));
                    outline.mark(position == ClausePosition::Start && !is_noun, is_verb);
                    position = position.max(ClausePosition::Within);
                }
            },
        }
        // `of the Sales department` and `of department Sales`: a name and its noun have one role, in either order.
        if !pieces.get(at + 1).is_some_and(|next| is_named(piece, next)) {
            role = 0;
        }
    }
    outline
}

/// Whether a question for somebody says by a noun who that is: `who is the author of it` asks for the author.
fn names_person(pieces: &[IntentPiece<'_>]) -> bool {
    let is = |at: usize, functions: &[WordFunction]| {
        pieces.get(at).and_then(IntentPiece::word).is_some_and(|word| functions.contains(&word.function))
    };
    let noun = if is(2, &[WordFunction::Nothing]) { 3 } else { 2 };
    let governs = pieces.get(noun + 1).and_then(IntentPiece::word).map(|word| word.function);
    is(1, &[WordFunction::Stating])
        && is(noun, &[WordFunction::Content])
        && governs == Some(WordFunction::Role(table::OF))
}

/// The time that a sentence speaks of: `what is the weather`, `what was the weather`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tense {
    Past,
    Present,
    Future,
}

impl Tense {
    fn of(word: &str) -> Option<Tense> {
        match word {
            "was" | "were" => Some(Tense::Past),
            "is" | "are" => Some(Tense::Present),
            "will" | "shall" => Some(Tense::Future),
            _ => None,
        }
    }
}

/// Where a word stands in its clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ClausePosition {
    /// Where an order stands.
    Start,
    /// After that.
    Within,
    /// After an auxiliary or a relative pronoun.
    Statement,
}

/// Whether a word only says that an amount is asked for, which its unit says too: `how many hours`, `total hours`.
fn is_amount(word: &IntentWord, next: Option<&IntentPiece<'_>>) -> bool {
    let unit = next.and_then(IntentPiece::word).and_then(|next| unit_named(&next.raw));
    unit.is_some() && ["count", "sum", "how_much"].contains(&word.concept.as_str())
}

fn is_role(word: &IntentWord) -> bool {
    matches!(word.function, WordFunction::Role(_))
}

/// Whether a piece is the value of a parameter, or a name.
fn is_name(piece: &IntentPiece<'_>) -> bool {
    match piece {
        IntentPiece::Slot(..) => true,
        IntentPiece::Token(IntentToken::Literal(literal)) => literal.class == LiteralClass::Name,
        IntentPiece::Token(IntentToken::Word(_)) => false,
    }
}

/// Whether two pieces are a name and a noun, whichever comes first.
fn is_named(one: &IntentPiece<'_>, other: &IntentPiece<'_>) -> bool {
    let noun = |piece: &IntentPiece<'_>| matches!(piece, IntentPiece::Token(token) if token.content_word().is_some());
    (is_name(one) && noun(other)) || (noun(one) && is_name(other))
}

fn is_person(class: LiteralClass) -> bool {
    matches!(class, LiteralClass::Handle | LiteralClass::Email)
}

impl IntentOutline {
    fn say(&mut self, key: String, raw: &str, role: u16, person: bool) {
        self.said.push(SaidConcept {
            key,
            raw: raw.to_owned(),
            role,
            person,
            word: false,
            order: false,
            verb: false,
        });
    }

    /// Says whether what was said last is an order or the verb of a subject.
    fn mark(&mut self, order: bool, verb: bool) {
        if let Some(last) = self.said.last_mut() {
            (last.order, last.verb) = (order, verb);
        }
    }

    fn say_word(&mut self, key: &str, raw: &str, role: u16) {
        let key = key.to_owned();
        let raw = fold(raw);
        self.said.push(SaidConcept { key, raw, role, person: false, word: true, order: false, verb: false });
    }

    /// Adds a literal. A name or a quoted text that the other intent has as plain words is compared as words.
    fn say_literal(&mut self, literal: &IntentLiteral, role: u16, others: &[IntentPiece<'_>]) {
        let folded = fold(&literal.text);
        let words: Vec<&str> =
            folded.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
        let plain = matches!(literal.class, LiteralClass::Name | LiteralClass::Quoted);
        let has =
            |wanted: &&str| others.iter().filter_map(IntentPiece::word).any(|w| fold(&w.raw) == **wanted);
        if plain && words.iter().all(has) {
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

/// Whether a word says what is asked for, and not only that something is.
fn is_telling(said: &SaidConcept) -> bool {
    said.key != "how_much"
}

/// Whether the intents are equal word for word, apart from their values.
fn is_same_sentence(a: &[IntentPiece<'_>], b: &[IntentPiece<'_>]) -> bool {
    let shown = |piece: &IntentPiece<'_>| piece.word().map(|word| fold(&word.raw));
    a.len() == b.len() && a.iter().zip(b).all(|(one, other)| shown(one) == shown(other))
}

/// The concepts that only one of the intents contains, and the number that both contain.
fn differences<'a>(
    mine: &'a IntentOutline,
    theirs: &'a IntentOutline,
    strict: Strictness,
) -> (Vec<&'a SaidConcept>, Vec<&'a SaidConcept>, usize) {
    let mut left: Vec<&SaidConcept> = theirs.said.iter().collect();
    let mut only_mine = Vec::new();
    for said in &mine.said {
        match left.iter().position(|other| other.key == said.key) {
            Some(at) => drop(left.remove(at)),
            None => only_mine.push(said),
        }
    }
    if strict == Strictness::Reads {
        only_mine.retain(|said| match left.iter().position(|other| is_inflected(said, other)) {
            Some(at) => {
                left.remove(at);
                false
            }
            None => true,
        });
    }
    let shared = mine.said.len() - only_mine.len();
    (only_mine, left, shared)
}

/// Whether two words are forms of one: `used` and `using`. What one is asked to do is not what has been done: `close the
/// tickets`, `the closed tickets`, `the tickets to close`.
fn is_inflected(one: &SaidConcept, other: &SaidConcept) -> bool {
    let asked = |said: &SaidConcept| said.order || said.role & table::TO != 0;
    one.word
        && other.word
        && !asked(one)
        && !asked(other)
        && family(&one.key) == family(&other.key)
        && family(&one.key).len() > 2
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
    if table::BRINGING.contains(&key) || table::FINDING.contains(&key) || key == "calculate" {
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

/// Whether what was served names things that are asked for now: `names of the items`, `which items`.
fn is_named_anyway(served: &SaidConcept, asked: &IntentOutline) -> bool {
    served.key == "name" && (asked.asks || asked.asks_who)
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
    // A preposition with several meanings, such as `de`, need not have this one.
    let elsewhere = theirs.said.iter().filter(|other| other.key != said.key && other.role == said.role);
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
    let says = |outline: &IntentOutline, raw: &str| {
        outline.said.iter().any(|said| said.word && !said.verb && said.raw == raw)
    };
    // `litres … per litre` says both, and so does the other one.
    let flips = |one: &IntentOutline, other: &IntentOutline| {
        one.said.iter().filter(|said| said.word && !said.verb).any(|said| {
            let plural = format!("{}s", said.raw);
            says(other, &plural) && !says(other, &said.raw) && !says(one, &plural)
        })
    };
    !counts && matters && (flips(mine, theirs) || flips(theirs, mine))
}
