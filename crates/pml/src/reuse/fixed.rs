//! Whether an intent asks for another value than one a program is written with.
//!
//! A parameter can be given another value, a constant cannot: a program with `=== "Engineering"` in it gives Engineering's
//! number whatever it is asked. [`judge`] compares what the served intents said with what a new one says, and both with the
//! constants. A value that is said again, or that an argument says, has its place; one that stands instead of a constant
//! contradicts it. What cannot be told apart is taken for a contradiction: writing the program again costs less than a
//! wrong answer that looks right.

mod lists;

use std::collections::BTreeSet;

use pml_analysis::Constant;
use serde_json::{Map, Value};

use super::kinds;
use super::literals::{Class, Literal};
use super::similar::opposites;
use super::template::{contains, leaves, places, plain_words, raw, role};
use super::values::says;
use super::vocabulary as table;
use super::words::{Part, Token, concept, fold, part_of, tokens};
use super::{LONGEST, Past, Procedure, values_of};
use lists::{ACRONYMS, FIELDS, GENERIC, ONE, PLACES};

/// What an intent says beside what a program can be given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judgement {
    /// A value that contradicts a constant of the program.
    pub contradiction: Option<Contradiction>,
    /// Values of the intent that have no place in the program.
    pub unplaced: Vec<String>,
    /// Values that the first intent named, that cannot be changed, and that this one does not name.
    pub unsaid: Vec<String>,
}

impl Judgement {
    /// Whether every value of the intent is one of the arguments or what it always was, so that the intent may be
    /// remembered for the program.
    pub fn has_place(&self) -> bool {
        self.contradiction.is_none() && self.unplaced.is_empty() && self.unsaid.is_empty()
    }
}

/// A constant that an intent contradicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// What the program is fixed to.
    pub fixed: String,
    /// What the intent says instead.
    pub said: String,
    /// The intent that named the constant.
    pub served: String,
}

impl std::fmt::Display for Contradiction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Contradiction { fixed, said, served } = self;
        write!(f, "it is fixed to `{fixed}` (it served \"{served}\"), and this intent says `{said}`")
    }
}

/// Compares `intent`, run with `arguments`, with what the program is fixed to.
pub fn judge(
    procedure: &Procedure<'_>,
    constants: &[Constant],
    intent: &str,
    arguments: &Map<String, Value>,
) -> Judgement {
    if intent.len() > LONGEST {
        return Judgement {
            unplaced: vec![format!("an intent of more than {LONGEST} bytes")],
            ..Judgement::default()
        };
    }
    if procedure.intents.iter().any(|served| plain(served) == plain(intent)) {
        return Judgement::default();
    }
    let properties =
        procedure.parameters.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let given: Vec<&Value> = arguments.values().flat_map(leaves).collect();
    let new = Heard::new(intent, &given);
    // Values that are given by name and in other words than the intent's account for what it says.
    let unsaid_arguments = arguments.iter().filter(|(name, value)| {
        properties.get(*name).is_some_and(|schema| schema.get("default") != Some(*value))
            && leaves(value).iter().all(|leaf| new.places(leaf).is_empty())
    });
    let accounted = unsaid_arguments.count();
    let served: Vec<Heard> = (0..)
        .zip(procedure.intents)
        .map(|(at, served)| {
            let values = values_of(procedure, &properties, if at == 0 { Past::First } else { Past::Any });
            let had: Vec<&Value> = values.iter().flat_map(|(_, values)| values).flat_map(leaves).collect();
            Heard::new(served, &had)
        })
        .collect();
    let compare = |at: usize| Comparison {
        old: &served[at],
        served: &served,
        new: &new,
        constants,
        first: at == 0,
        accounted,
    };
    let mut judgement = Judgement::default();
    if !served.is_empty() {
        let literals = compare(0).left().into_iter().filter(|left| left.literal);
        judgement.unplaced = literals.map(|left| left.text).collect();
        let sure = compare(0).dropped().into_iter().filter(|dropped| dropped.strength != Strength::Weak);
        judgement.unsaid = sure.map(|dropped| dropped.shown).collect();
    }
    judgement.contradiction = procedure.intents.iter().enumerate().find_map(|(at, served)| {
        let (fixed, said) = compare(at).contradiction()?;
        Some(Contradiction { fixed, said, served: (*served).to_owned() })
    });
    judgement
}

/// An intent as it is compared word for word: without capitals, spare spaces and the sign at its end.
fn plain(intent: &str) -> String {
    let words: Vec<&str> = intent.split_whitespace().collect();
    fold(words.join(" ").trim_end_matches(['.', '?', '!', ' ']))
}

/// An intent in pieces, with the pieces that say the values of parameters.
struct Heard {
    tokens: Vec<Token>,
    taken: BTreeSet<usize>,
}

impl Heard {
    /// Reads `intent`, in English where its words are known: the values of a program are mostly compared with words of
    /// either language.
    fn new(intent: &str, values: &[&Value]) -> Heard {
        let mut own = tokens(intent);
        if let Some(english) = pml_graph::french::gloss(intent) {
            let read = tokens(&english);
            let literals = |tokens: &[Token]| -> Vec<String> {
                let mut texts: Vec<String> =
                    tokens.iter().filter_map(literal).map(|literal| literal.text.clone()).collect();
                texts.sort();
                texts
            };
            if literals(&own) == literals(&read) {
                own = read;
            }
        }
        let mut heard = Heard { tokens: own, taken: BTreeSet::new() };
        for value in values {
            let said = heard.places(value);
            heard.taken.extend(said.into_iter().flatten());
            let parts = heard.tokens.iter().enumerate().filter(|(_, token)| {
                literal(token).is_some_and(|literal| !is_number(literal) && contains(value, literal))
            });
            let parts: Vec<usize> = parts.map(|(at, _)| at).collect();
            heard.taken.extend(parts);
        }
        heard
    }

    fn places(&self, value: &Value) -> Vec<std::ops::Range<usize>> {
        places(&self.tokens, value)
    }

    /// The pieces that are no values of parameters.
    fn free(&self) -> impl Iterator<Item = (usize, &Token)> {
        self.tokens.iter().enumerate().filter(|(at, _)| !self.taken.contains(at))
    }

    fn says_concept(&self, wanted: &str) -> bool {
        self.tokens.iter().any(|token| match token {
            Token::Word(word) => word.concept == wanted,
            Token::Literal(literal) => {
                matches!(literal.class, Class::Name | Class::Quoted)
                    && plain_words(&literal.text).iter().any(|word| concept(word) == wanted)
            }
        })
    }

    fn says_literal(&self, wanted: &Literal) -> bool {
        self.tokens.iter().any(|token| literal(token).is_some_and(|other| same(wanted, other)))
            || (is_in_words(wanted) && !self.places(&Value::from(wanted.text.as_str())).is_empty())
    }

    fn role(&self, at: usize) -> u16 {
        role(&self.tokens, at)
    }

    /// Whether what stands there is joined by a word like `and`.
    fn joins(&self, range: std::ops::Range<usize>) -> bool {
        let joining = |token: &Token| matches!(token, Token::Word(word) if word.part == Part::Joining || word.concept == "or");
        self.tokens[range].iter().any(joining)
    }
}

fn literal(token: &Token) -> Option<&Literal> {
    match token {
        Token::Literal(literal) => Some(literal),
        Token::Word(_) => None,
    }
}

fn is_number(literal: &Literal) -> bool {
    matches!(literal.class, Class::Number | Class::Ordinal)
        || (literal.class == Class::Id && literal.text.starts_with('#'))
}

/// Whether a literal may as well be written as plain words; what has signs in it may not: `-5` is not `5`.
fn is_in_words(literal: &Literal) -> bool {
    matches!(literal.class, Class::Name | Class::Quoted)
}

/// Whether both say the same, in whichever way and language.
fn same(one: &Literal, other: &Literal) -> bool {
    one.same(other) || same_number(one, other) || same_acronym(one, other)
}

fn same_number(one: &Literal, other: &Literal) -> bool {
    is_number(one)
        && is_number(other)
        && one.unit() == other.unit()
        && one.value.as_f64() == other.value.as_f64()
}

fn same_acronym(one: &Literal, other: &Literal) -> bool {
    let (one, other) = (fold(&one.text), fold(&other.text));
    ACRONYMS.iter().any(|(a, b)| (one == *a && other == *b) || (one == *b && other == *a))
}

/// How sure it is that something said is a constant of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strength {
    /// It is one.
    Sure,
    /// It is a value that no parameter has, so the program must have it in some form.
    Implied,
    /// It is the name of a field or a part of a text, which may be there for another reason.
    Weak,
}

/// Something that was said before and is not said now.
struct Dropped {
    at: usize,
    shown: String,
    strength: Strength,
    number: bool,
}

/// Something that is said now, was not said before and is no argument.
struct Left {
    at: usize,
    text: String,
    literal: bool,
    number: bool,
}

struct Comparison<'c> {
    old: &'c Heard,
    /// All intents that were served, the old one among them.
    served: &'c [Heard],
    new: &'c Heard,
    constants: &'c [Constant],
    /// The old intent is the one whose values are the defaults.
    first: bool,
    /// How many values were given by name that no intent says.
    accounted: usize,
}

impl Comparison<'_> {
    fn contradiction(&self) -> Option<(String, String)> {
        let (dropped, left) = (self.dropped(), self.left());
        let mut accounted = self.accounted;
        for dropped in &dropped {
            let found = match dropped.strength {
                Strength::Sure => instead_of(dropped, &left),
                Strength::Implied => {
                    let said = |left: &&Left| left.literal || PLACES.contains(&concept(&left.text).as_str());
                    let other = left.iter().filter(said).find(|left| left.number == dropped.number);
                    match other {
                        Some(_) if accounted > 0 => {
                            accounted -= 1;
                            None
                        }
                        other => other,
                    }
                }
                Strength::Weak => left.iter().find(|left| self.replaces(left, dropped)),
            };
            if let Some(left) = found {
                return Some((dropped.shown.clone(), left.text.clone()));
            }
        }
        self.opposite().or_else(|| self.exchanged())
    }

    /// What the old intent says that the program is fixed to and the new one does not say.
    fn dropped(&self) -> Vec<Dropped> {
        self.old.free().filter_map(|(at, token)| self.dropped_at(at, token)).collect()
    }

    fn dropped_at(&self, at: usize, token: &Token) -> Option<Dropped> {
        match token {
            Token::Literal(literal) => {
                if self.new.says_literal(literal) {
                    return None;
                }
                let fixed = self.constants.iter().find(|constant| is_said_by(constant, literal));
                let strength = match fixed {
                    Some(_) => Strength::Sure,
                    None if self.first => Strength::Implied,
                    None => return None,
                };
                let shown =
                    fixed.map_or_else(|| literal.text.clone(), |constant| shown(constant, &literal.text));
                Some(Dropped { at, shown, strength, number: is_number(literal) })
            }
            Token::Word(word) if word.part == Part::Content => {
                if self.new.says_concept(&word.concept) {
                    return None;
                }
                let place = || {
                    // `the first line` is an index somewhere.
                    let is_place = self.first && PLACES.contains(&word.concept.as_str());
                    is_place.then(|| (Strength::Implied, word.raw.clone()))
                };
                let (strength, shown) = self.constant_of(&word.raw).or_else(place)?;
                Some(Dropped { at, shown, strength, number: strength == Strength::Implied })
            }
            Token::Word(_) => None,
        }
    }

    /// The constant that a plain word names.
    fn constant_of(&self, word: &str) -> Option<(Strength, String)> {
        let wanted = concept(word);
        let mut weak = None;
        for constant in self.constants {
            let (text, is_value) = match constant {
                Constant::Text(text) => (text, true),
                Constant::Name(name) => (name, false),
                Constant::Number(_) => continue,
            };
            let parts = parts(text);
            if !parts.iter().any(|part| concept(part) == wanted) {
                continue;
            }
            // A text of which the intent says every word is a value; any other has the word among others.
            if is_value && parts.iter().all(|part| self.old.says_concept(&concept(part))) {
                return Some((Strength::Sure, text.clone()));
            }
            weak.get_or_insert_with(|| (Strength::Weak, text.clone()));
        }
        weak
    }

    /// What only the new intent says.
    fn left(&self) -> Vec<Left> {
        self.new.free().filter_map(|(at, token)| self.left_at(at, token)).collect()
    }

    fn left_at(&self, at: usize, token: &Token) -> Option<Left> {
        match token {
            Token::Literal(literal) => {
                let equal = |constant: &Constant| match constant {
                    Constant::Text(text) => {
                        text.len() >= TELLING && says(literal, &Value::from(text.as_str()))
                    }
                    // Small numbers stand in many places of a program.
                    Constant::Number(_) | Constant::Name(_) => false,
                };
                let known = self.said_before(literal) || self.constants.iter().any(equal);
                (!known).then(|| Left {
                    at,
                    text: literal.text.clone(),
                    literal: true,
                    number: is_number(literal),
                })
            }
            Token::Word(word) if word.part == Part::Content => {
                let place = PLACES.contains(&word.concept.as_str());
                let number = place || ONE.contains(&fold(&word.raw).as_str()) || word.concept == "all";
                let generic = table::BRINGING.contains(&word.concept.as_str())
                    || table::MAKING.contains(&word.concept.as_str())
                    || GENERIC.contains(&word.concept.as_str());
                let known = generic || self.served.iter().any(|heard| heard.says_concept(&word.concept));
                (!known).then(|| Left { at, text: word.raw.clone(), literal: false, number })
            }
            Token::Word(_) => None,
        }
    }

    /// Whether a served intent says it where it is no value of a parameter.
    fn said_before(&self, wanted: &Literal) -> bool {
        let text = Value::from(wanted.text.as_str());
        self.served.iter().any(|heard| {
            let free = |range: &std::ops::Range<usize>| range.clone().all(|at| !heard.taken.contains(&at));
            heard.free().any(|(_, token)| literal(token).is_some_and(|other| same(wanted, other)))
                || (is_in_words(wanted) && heard.places(&text).iter().any(free))
        })
    }

    /// Whether `left` stands where `dropped` stood: between the same neighbours, or in the same relation.
    fn replaces(&self, left: &Left, dropped: &Dropped) -> bool {
        const TELLING_ROLES: u16 = table::BY | table::PER | table::AS;
        let (was, is) = (self.old.role(dropped.at), self.new.role(left.at));
        if was & is & TELLING_ROLES != 0 {
            return true;
        }
        let around =
            |heard: &Heard, at: usize| [Side::Before, Side::After].map(|side| heard.neighbour(at, side));
        let (before, now) = (around(self.old, dropped.at), around(self.new, left.at));
        // `the amount column` and `the column tax`, `sum of the amount` and `sum of the tax`.
        let field =
            |near: &[Option<String>; 2]| near.iter().flatten().any(|word| FIELDS.contains(&word.as_str()));
        let governed = was != 0 && was & is != 0 && before[0].is_some() && before[0] == now[0];
        before == now || (field(&before) && field(&now)) || governed
    }

    /// The one intent says the opposite of the other: `more than` and `less than`, `top` and `bottom`.
    fn opposite(&self) -> Option<(String, String)> {
        let only = |one: &Heard, other: &Heard| -> Vec<(String, String)> {
            let words = one.free().filter_map(|(_, token)| token.content());
            words
                .filter(|word| !other.says_concept(&word.concept))
                .map(|word| (word.concept.clone(), word.raw.clone()))
                .collect()
        };
        let (before, now) = (only(self.old, self.new), only(self.new, self.old));
        before.iter().find_map(|(was, raw)| {
            let (_, said) = now.iter().find(|(is, _)| opposites(was, is))?;
            Some((raw.clone(), said.clone()))
        })
    }

    /// Both say the same two values, each in the relation of the other: `from Paris to Lyon` and `from Lyon to Paris`.
    fn exchanged(&self) -> Option<(String, String)> {
        let values: Vec<(&str, usize, usize)> = self
            .old
            .free()
            .filter(|(_, token)| self.is_value(token))
            .filter_map(|(at, token)| {
                let (now, _) = self.new.free().find(|(_, other)| says_same(token, other))?;
                Some((raw(token), at, now))
            })
            .collect();
        for (place, (one, at, now)) in values.iter().enumerate() {
            for (other, other_at, other_now) in &values[place + 1..] {
                let (was, is) = (self.old.role(*at), self.new.role(*now));
                let (other_was, other_is) = (self.old.role(*other_at), self.new.role(*other_now));
                let crossed =
                    (was, other_was) == (other_is, is) || (was & other_is != 0 && other_was & is != 0);
                let alike = was & other_was != 0 || was == other_was || self.old.joins(*at..*other_at);
                if crossed && !alike && other_now < now {
                    return Some((format!("{one} before {other}"), format!("{other} before {one}")));
                }
            }
        }
        None
    }

    /// Whether a piece may stand for something else another time.
    fn is_value(&self, token: &Token) -> bool {
        match token {
            Token::Literal(_) => true,
            Token::Word(word) => {
                kinds::kind(&fold(&word.raw)).is_some()
                    || matches!(self.constant_of(&word.raw), Some((Strength::Sure, _)))
            }
        }
    }
}

fn says_same(one: &Token, other: &Token) -> bool {
    match (one, other) {
        (Token::Literal(one), Token::Literal(other)) => same(one, other),
        (Token::Word(one), Token::Word(other)) => one.concept == other.concept,
        (Token::Literal(_), Token::Word(_)) | (Token::Word(_), Token::Literal(_)) => false,
    }
}

#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

impl Heard {
    /// What is said next to a piece, small words left out.
    fn neighbour(&self, at: usize, side: Side) -> Option<String> {
        let near = |at: usize| match &self.tokens[at] {
            Token::Word(word) if word.part == Part::Content => Some(word.concept.clone()),
            Token::Word(_) => None,
            Token::Literal(literal) => Some(format!("<{:?}>", literal.class)),
        };
        match side {
            Side::Before => (0..at).rev().find_map(near),
            Side::After => (at + 1..self.tokens.len()).find_map(near),
        }
    }
}

/// What is said instead of a constant.
fn instead_of<'l>(dropped: &Dropped, left: &'l [Left]) -> Option<&'l Left> {
    let literals = || left.iter().filter(|left| left.literal);
    let alike = literals().find(|left| left.number == dropped.number);
    let word = || left.iter().find(|left| !left.literal && (!dropped.number || left.number));
    alike.or_else(word).or_else(|| literals().next())
}

/// Shorter texts may be equal by chance.
const TELLING: usize = 3;

/// Whether a literal of an intent is a constant, or a part of one.
fn is_said_by(constant: &Constant, literal: &Literal) -> bool {
    match constant {
        Constant::Number(number) => {
            let said = literal.value.as_f64();
            (is_number(literal) || literal.class == Class::Date)
                && (said == Some(*number)
                    || (literal.unit() == "%" && said.map(|said| said / 100.0) == Some(*number)))
        }
        Constant::Text(text) | Constant::Name(text) => {
            let value = Value::from(text.as_str());
            says(literal, &value) || contains(&value, literal) || begins_alike(text, literal)
        }
    }
}

/// Whether one is the beginning of the other: `Eng` of `Engineering`.
fn begins_alike(text: &str, literal: &Literal) -> bool {
    let (text, said) = (fold(text), fold(literal.bare()));
    let plain = text.len() >= TELLING && text.chars().all(char::is_alphanumeric);
    plain
        && matches!(literal.class, Class::Name | Class::Quoted)
        && (said.starts_with(&text) || text.starts_with(&said))
}

/// A constant as people are told of it: the whole where it is short, else the part that was said.
fn shown(constant: &Constant, said: &str) -> String {
    match constant {
        Constant::Number(number) => number.to_string(),
        Constant::Text(text) | Constant::Name(text) if text.chars().count() <= 40 => text.trim().to_owned(),
        Constant::Text(_) | Constant::Name(_) => said.to_owned(),
    }
}

/// The words of a text or a name, however they are joined: `unitPrice`, `unit_price`.
fn parts(text: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(text.len() + 4);
    let mut lower = false;
    for c in text.chars() {
        if c.is_uppercase() && lower {
            spaced.push(' ');
        }
        spaced.push(if c == '_' { ' ' } else { c });
        lower = c.is_lowercase();
    }
    plain_words(&spaced).into_iter().filter(|word| part_of(word) == Part::Content).collect()
}

#[cfg(test)]
mod tests;
