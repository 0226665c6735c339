//! Whether an intent asks for another value than one a program is written with.
//!
//! A parameter can be given another value, a constant cannot: a program with `=== "Engineering"` in it gives Engineering's
//! number whatever it is asked. [`judge`] compares what the served intents said with what a new one says, and both with the
//! constants. A value that is said again, or that an argument says, has its place; one that stands instead of a constant
//! contradicts it. What cannot be told apart is taken for a contradiction: writing the program again costs less than a
//! wrong answer that looks right.

mod heard;
mod lists;

use pml_analysis::Constant;
use serde_json::{Map, Value};

use super::kinds;
use super::literals::{Class, Literal};
use super::similar::opposites;
use super::template::{contains, leaves, plain_words, raw};
use super::values::says;
use super::vocabulary as table;
use super::words::{Part, Token, concept, fold, part_of};
use super::{LONGEST, Past, Procedure, values_of};
use heard::{Heard, Side, is_in_words, is_number, literal, same, says_same};
use lists::{FIELDS, GENERIC, ONE, PLACES};

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
        self.opposite()
            .or_else(|| self.exchanged())
            .or_else(|| self.letter())
            .or_else(|| self.one_of_many(&dropped))
            .or_else(|| self.one_word())
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
        // `the search feature` and `the beta feature`.
        let heads = (self.old.content(dropped.at + 1), self.new.content(left.at + 1));
        let modifies = heads.0.is_some() && heads.0 == heads.1;
        before == now || (field(&before) && field(&now)) || governed || modifies
    }

    /// A letter that names one of several: `class a` and `class b`, where `a` is also an article.
    fn letter(&self) -> Option<(String, String)> {
        let letters = |heard: &Heard| -> Vec<(String, String)> {
            let named = |at: usize| {
                let Token::Word(word) = &heard.tokens[at] else { return None };
                let letter = fold(&word.raw);
                let noun = heard.content(at.checked_sub(1)?)?.to_owned();
                (letter.chars().count() == 1 && !heard.taken.contains(&at)).then_some((noun, letter))
            };
            (1..heard.tokens.len()).filter_map(named).collect()
        };
        let (before, now) = (letters(self.old), letters(self.new));
        let fixed = |letter: &str| {
            self.constants
                .iter()
                .any(|constant| matches!(constant, Constant::Text(text) if fold(text) == letter))
        };
        before.iter().filter(|(_, letter)| fixed(letter)).find_map(|(noun, letter)| {
            let mut named = now.iter().filter(|(other, _)| other == noun);
            let (_, said) = named.next().filter(|(_, said)| said != letter)?;
            Some((letter.clone(), said.clone()))
        })
    }

    /// A number of things was fixed, and one of them is asked for: `the 3 cheapest products` and `the cheapest product`.
    fn one_of_many(&self, dropped: &[Dropped]) -> Option<(String, String)> {
        let number = dropped.iter().find(|dropped| dropped.number && dropped.strength == Strength::Sure)?;
        let counted = self.old.tokens[number.at + 1..].iter().take(COUNTED_WITHIN).filter_map(Token::content);
        let mut plural = counted.filter(|word| fold(&word.raw).ends_with('s'));
        plural.find_map(|many| {
            let words = self.new.free().filter_map(|(_, token)| token.content());
            let mut one = words.filter(|one| one.concept == many.concept && !fold(&one.raw).ends_with('s'));
            one.next().map(|one| (number.shown.clone(), one.raw.clone()))
        })
    }

    /// All is said again but for one word, in whose place another stands: `the open tasks` and `the done tasks`. A verb that
    /// begins a request is mostly another word for the same.
    fn one_word(&self) -> Option<(String, String)> {
        let only = |one: &Heard, other: &Heard| -> Vec<usize> {
            let free = one.free().filter(|(_, token)| match token {
                Token::Word(word) => word.part == Part::Content && !other.says_concept(&word.concept),
                Token::Literal(literal) => !other.says_literal(literal),
            });
            free.map(|(at, _)| at).collect()
        };
        let (before, now) = (only(self.old, self.new), only(self.new, self.old));
        let ([was], [is]) = (before.as_slice(), now.as_slice()) else { return None };
        let (Token::Word(old), Token::Word(new)) = (&self.old.tokens[*was], &self.new.tokens[*is]) else {
            return None;
        };
        let generic = |concept: &str| {
            GENERIC.contains(&concept)
                || table::BRINGING.contains(&concept)
                || table::MAKING.contains(&concept)
        };
        let around =
            |heard: &Heard, at: usize| [Side::Before, Side::After].map(|side| heard.neighbour(at, side));
        let served = self.served.iter().any(|heard| heard.says_concept(&new.concept));
        let replaced = (*was, *is) != (0, 0) && around(self.old, *was) == around(self.new, *is);
        (replaced && !served && !generic(&old.concept) && !generic(&new.concept))
            .then(|| (old.raw.clone(), new.raw.clone()))
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

/// What is said instead of a constant.
fn instead_of<'l>(dropped: &Dropped, left: &'l [Left]) -> Option<&'l Left> {
    let literals = || left.iter().filter(|left| left.literal);
    let alike = literals().find(|left| left.number == dropped.number);
    let word = || left.iter().find(|left| !left.literal && (!dropped.number || left.number));
    alike.or_else(word).or_else(|| literals().next())
}

/// Shorter texts may be equal by chance.
const TELLING: usize = 3;

/// How many words after a number may stand what it counts: `3 most expensive products`.
const COUNTED_WITHIN: usize = 4;

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
