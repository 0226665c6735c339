//! Detects intents that contradict a constant of a learned program.
//!
//! A parameter can take another value, a constant cannot: a program with `=== "Engineering"` in it returns
//! Engineering's number whatever the intent. [`judge`] compares the served intents with a new one, and both with the
//! constants. A value that is repeated, or that is an argument, has its place. A value that stands where a constant
//! stood contradicts it. Doubtful cases count as contradictions: writing the program again costs less than a wrong
//! result that looks right.

mod heard;
mod lists;

use pml_analysis::Constant;
use pml_language::polarity::{self, Opposition};
use serde_json::{Map, Value};

use super::kinds;
use super::literals::{IntentLiteral, LiteralClass};

use super::find::{plain_words, raw};
use super::fold::fold;
use super::template::{leaves, overlaps_value};
use super::values::says;
use super::vocabulary as table;
use super::words::{IntentToken, IntentWord, WordFunction, concept, function_of, is_known_word};
use super::{EarlierValues, LONGEST, ReadIntent, ReusableProcedure, values_of};
use heard::{NeighbourSide, TokenizedIntent, is_in_words, is_number, literal, same_literal, says_same};
use lists::{FIELDS, GENERIC, ONE, PLACES};

/// The values of an intent that the parameters of a program do not account for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judgement {
    /// A value that contradicts a constant of the program.
    pub contradiction: Option<Contradiction>,
    /// Values of the intent that have no place in the program.
    pub unplaced: Vec<String>,
    /// Values that the first intent named, that no parameter takes, and that this intent does not name.
    pub unsaid_constants: Vec<String>,
}

impl Judgement {
    /// Whether every value of the intent is an argument or repeats a constant. Only such an intent may be stored as
    /// one that the program serves.
    pub fn is_fully_placed(&self) -> bool {
        self.contradiction.is_none() && self.unplaced.is_empty() && self.unsaid_constants.is_empty()
    }
}

/// What an intent contradicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The constant in the program, or the words of the served intent.
    pub constant: String,
    /// The value in the intent, or its words.
    pub said_instead: String,
    /// The served intent that named the constant.
    pub served_intent: String,
    /// What is contradicted.
    pub grounds: ContradictionGrounds,
}

/// What an intent contradicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContradictionGrounds {
    /// A constant of the program: it cannot do what the intent asks for, whoever runs it.
    Constant,
    /// The words of an intent that it served: it is neither offered nor remembered for the intent, but whoever names
    /// it knows what it does.
    Wording,
}

impl std::fmt::Display for Contradiction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Contradiction { constant: fixed, said_instead: said, served_intent: served, grounds } = self;
        match grounds {
            ContradictionGrounds::Constant => {
                write!(f, "it is fixed to `{fixed}` (it served \"{served}\"), and this intent says `{said}`")
            }
            ContradictionGrounds::Wording => {
                write!(f, "it served \"{served}\", which this intent rules out (`{fixed}`, `{said}`)")
            }
        }
    }
}

/// Compares `intent`, run with `arguments`, with the constants of the program.
pub fn judge(
    procedure: &ReusableProcedure<'_>,
    constants: &[Constant],
    intent: &ReadIntent,
    arguments: &Map<String, Value>,
) -> Judgement {
    if intent.is_too_long() {
        return Judgement {
            unplaced: vec![format!("an intent of more than {LONGEST} bytes")],
            ..Judgement::default()
        };
    }
    let asked = plain(intent.text());
    if procedure.intents.iter().any(|served| plain(served.text()) == asked) {
        return Judgement::default();
    }
    let resolved = intent.with_meanings_of(procedure.intents);
    let intent = resolved.as_ref().unwrap_or(intent);
    if let Some((intent, intents)) = super::both_in_english(procedure, intent) {
        let procedure = ReusableProcedure { intents: &intents, ..*procedure };
        return judge_as_said(&procedure, constants, intent, arguments);
    }
    judge_as_said(procedure, constants, intent, arguments)
}

fn judge_as_said(
    procedure: &ReusableProcedure<'_>,
    constants: &[Constant],
    intent: &ReadIntent,
    arguments: &Map<String, Value>,
) -> Judgement {
    let none = Map::new();
    let properties = procedure.parameters.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let given: Vec<&Value> = arguments.values().flat_map(leaves).collect();
    let mut new = TokenizedIntent::new(intent, &given);
    new.take_switches(arguments.iter());
    new.take_choices(properties, |name, value| arguments.get(name) == Some(value));
    // Arguments that the intent does not spell out account for as many of its values.
    let unsaid_arguments = arguments.iter().filter(|(name, value)| {
        properties.get(*name).is_some_and(|schema| schema.get("default") != Some(*value))
            && leaves(value).iter().all(|leaf| new.places_of(leaf).is_empty())
    });
    let accounted = unsaid_arguments.count();
    let served: Vec<TokenizedIntent<'_>> = (0..)
        .zip(procedure.intents)
        .map(|(at, served)| {
            let values = values_of(
                procedure,
                properties,
                if at == 0 { EarlierValues::First } else { EarlierValues::Any },
            );
            let had: Vec<&Value> = values.iter().flat_map(|(_, values)| values).flat_map(leaves).collect();
            let mut served = TokenizedIntent::new(served, &had);
            served.take_switches(
                properties.iter().filter_map(|(name, schema)| Some((name, schema.get("default")?))),
            );
            let had = |name: &str, value: &Value| {
                values.iter().any(|(other, values)| other == name && values.contains(value))
            };
            served.take_choices(properties, had);
            served
        })
        .collect();
    let compare = |at: usize| IntentComparison {
        old: &served[at],
        served: &served,
        new: &new,
        constants,
        first: at == 0,
        accounted,
    };
    let mut judgement = Judgement::default();
    if !served.is_empty() {
        let literals = compare(0).added_values().into_iter().filter(|left| left.literal);
        judgement.unplaced = literals.map(|left| left.text).collect();
        let sure = compare(0)
            .dropped_constants()
            .into_iter()
            .filter(|dropped| !matches!(dropped.strength, ConstantStrength::Weak | ConstantStrength::Part));
        judgement.unsaid_constants = sure.map(|dropped| dropped.shown).collect();
    }
    judgement.contradiction = procedure.intents.iter().enumerate().find_map(|(at, served)| {
        let (fixed, said) = compare(at).contradiction()?;
        let grounds = ContradictionGrounds::Constant;
        let served_intent = served.text().to_owned();
        Some(Contradiction { constant: fixed, said_instead: said, served_intent, grounds })
    });
    if judgement.contradiction.is_none() {
        judgement.contradiction = opposed_intent(procedure.intents, &served, &new);
    }
    judgement
}

/// The served intent that the words of the new one rule out. Served intents that say the same as the new one in these
/// words settle it: a procedure may have been asked for in either way.
fn opposed_intent(
    intents: &[&ReadIntent],
    served: &[TokenizedIntent<'_>],
    new: &TokenizedIntent<'_>,
) -> Option<Contradiction> {
    let oppositions: Vec<Opposition> =
        served.iter().map_while(|served| polarity::opposition(served.polar(), new.polar())).collect();
    let first = oppositions.first().filter(|_| oppositions.len() == served.len())?;
    let nothing = || "without it".to_owned();
    Some(Contradiction {
        constant: Some(first.one.clone()).filter(|said| !said.is_empty()).unwrap_or_else(nothing),
        said_instead: Some(first.other.clone()).filter(|said| !said.is_empty()).unwrap_or_else(nothing),
        served_intent: intents.first()?.text().to_owned(),
        grounds: ContradictionGrounds::Wording,
    })
}

/// The form of an intent for literal comparison: folded, with single spaces, without the final punctuation.
fn plain(intent: &str) -> String {
    let words: Vec<&str> = intent.split_whitespace().collect();
    fold(words.join(" ").trim_end_matches(['.', '?', '!', ' ']))
}

/// How certain it is that a token of an intent names a constant of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConstantStrength {
    /// It equals a constant.
    Sure,
    /// It is a value that no parameter takes, so the program must contain it in some form.
    Implied,
    /// It equals a part of a string.
    Part,
    /// It equals a field name, which may be there for another reason.
    Weak,
}

/// A constant that the old intent names and the new one does not.
struct DroppedConstant {
    at: usize,
    shown: String,
    strength: ConstantStrength,
    number: bool,
}

/// A value that only the new intent names and that is no argument.
struct AddedValue {
    at: usize,
    text: String,
    literal: bool,
    number: bool,
}

struct IntentComparison<'c> {
    old: &'c TokenizedIntent<'c>,
    /// All served intents, `old` included.
    served: &'c [TokenizedIntent<'c>],
    new: &'c TokenizedIntent<'c>,
    constants: &'c [Constant],
    /// Whether `old` is the intent whose values are the defaults.
    first: bool,
    /// The number of arguments whose value no intent names.
    accounted: usize,
}

impl IntentComparison<'_> {
    fn contradiction(&self) -> Option<(String, String)> {
        let (dropped, left) = (self.dropped_constants(), self.added_values());
        let mut accounted = self.accounted;
        for dropped in &dropped {
            let found = match dropped.strength {
                ConstantStrength::Sure => instead_of(dropped, &left),
                ConstantStrength::Implied => {
                    let said =
                        |left: &&AddedValue| left.literal || PLACES.contains(&concept(&left.text).as_str());
                    let other = left.iter().filter(said).find(|left| left.number == dropped.number);
                    match other {
                        Some(_) if accounted > 0 => {
                            accounted -= 1;
                            None
                        }
                        other => other,
                    }
                }
                ConstantStrength::Weak => left.iter().find(|left| self.replaces(left, dropped)),
                // A word of a text may be there for another reason, unless a word that nobody knows stands for it.
                ConstantStrength::Part => left
                    .iter()
                    .find(|left| self.replaces(left, dropped) || left.literal || !is_known_word(&left.text)),
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

    /// The constants that the old intent names and the new one does not.
    fn dropped_constants(&self) -> Vec<DroppedConstant> {
        self.old.free_tokens().filter_map(|(at, token)| self.dropped_at(at, token)).collect()
    }

    fn dropped_at(&self, at: usize, token: &IntentToken) -> Option<DroppedConstant> {
        match token {
            IntentToken::Literal(literal) => {
                if self.new.says_literal(literal) {
                    return None;
                }
                let fixed = self.constants.iter().find(|constant| is_said_by(constant, literal));
                let strength = match fixed {
                    Some(_) => ConstantStrength::Sure,
                    None if self.first => ConstantStrength::Implied,
                    None => return None,
                };
                let shown =
                    fixed.map_or_else(|| literal.text.clone(), |constant| shown(constant, &literal.text));
                Some(DroppedConstant { at, shown, strength, number: is_number(literal) })
            }
            IntentToken::Word(word) if word.function == WordFunction::Content => {
                if self.new.says_concept(&word.concept) {
                    return None;
                }
                let place = || {
                    // `the first line`: the program has that index somewhere.
                    let is_place = self.first && PLACES.contains(&word.concept.as_str());
                    is_place.then(|| (ConstantStrength::Implied, word.raw.clone()))
                };
                let (strength, shown) = self.constant_of(&word.raw).or_else(place)?;
                Some(DroppedConstant { at, shown, strength, number: strength == ConstantStrength::Implied })
            }
            IntentToken::Word(_) => None,
        }
    }

    /// The constant that a content word names.
    fn constant_of(&self, word: &str) -> Option<(ConstantStrength, String)> {
        let wanted = concept(word);
        let mut weak: Option<(ConstantStrength, String)> = None;
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
            // A string constant whose every word is in the intent is a value; any other merely contains the word.
            if is_value && parts.iter().all(|part| self.old.says_concept(&concept(part))) {
                return Some((ConstantStrength::Sure, text.clone()));
            }
            let strength = if is_value { ConstantStrength::Part } else { ConstantStrength::Weak };
            if weak.as_ref().is_none_or(|(known, _)| *known == ConstantStrength::Weak) {
                weak = Some((strength, text.clone()));
            }
        }
        weak
    }

    /// The values that only the new intent names.
    fn added_values(&self) -> Vec<AddedValue> {
        self.new.free_tokens().filter_map(|(at, token)| self.left_at(at, token)).collect()
    }

    fn left_at(&self, at: usize, token: &IntentToken) -> Option<AddedValue> {
        match token {
            IntentToken::Literal(literal) => {
                let equal = |constant: &Constant| match constant {
                    Constant::Text(text) => {
                        text.len() >= TELLING && says(literal, &Value::from(text.as_str()))
                    }
                    // Small numbers occur in many places of a program.
                    Constant::Number(_) | Constant::Name(_) => false,
                };
                let known = self.said_before(literal) || self.constants.iter().any(equal);
                (!known).then(|| AddedValue {
                    at,
                    text: literal.text.clone(),
                    literal: true,
                    number: is_number(literal),
                })
            }
            IntentToken::Word(word) if word.function == WordFunction::Content => {
                let place = PLACES.contains(&word.concept.as_str());
                let number = place || ONE.contains(&fold(&word.raw).as_str()) || word.concept == "all";
                let generic = table::BRINGING.contains(&word.concept.as_str())
                    || table::MAKING.contains(&word.concept.as_str())
                    || GENERIC.contains(&word.concept.as_str());
                let known = generic || self.served.iter().any(|heard| heard.says_concept(&word.concept));
                (!known).then(|| AddedValue { at, text: word.raw.clone(), literal: false, number })
            }
            IntentToken::Word(_) => None,
        }
    }

    /// Whether a served intent names the literal where it is no value of a parameter.
    fn said_before(&self, wanted: &IntentLiteral) -> bool {
        let text = Value::from(wanted.text.as_str());
        self.served.iter().any(|heard| {
            let free = |range: &std::ops::Range<usize>| {
                range.clone().all(|at| !heard.parameter_tokens.contains(&at))
            };
            heard
                .free_tokens()
                .any(|(_, token)| literal(token).is_some_and(|other| same_literal(wanted, other)))
                || (is_in_words(wanted) && heard.places_of(&text).iter().any(free))
        })
    }

    /// Whether `left` stands where `dropped` stood: between the same neighbours, or with the same role.
    fn replaces(&self, left: &AddedValue, dropped: &DroppedConstant) -> bool {
        // `by`, `per` and `as` determine what a value is for, so an equal role is enough.
        const TELLING_ROLES: u16 = table::BY | table::PER | table::AS;
        let (was, is) = (self.old.role(dropped.at), self.new.role(left.at));
        if was & is & TELLING_ROLES != 0 {
            return true;
        }
        let around = |heard: &TokenizedIntent<'_>, at: usize| {
            [NeighbourSide::Before, NeighbourSide::After].map(|side| heard.neighbour(at, side))
        };
        let (before, now) = (around(self.old, dropped.at), around(self.new, left.at));
        // `the amount column` and `the column tax`; `sum of the amount` and `sum of the tax`.
        let field =
            |near: &[Option<String>; 2]| near.iter().flatten().any(|word| FIELDS.contains(&word.as_str()));
        let governed = was != 0 && was & is != 0 && before[0].is_some() && before[0] == now[0];
        // `the search feature` and `the beta feature`.
        let heads = (self.old.concept_at(dropped.at + 1), self.new.concept_at(left.at + 1));
        let modifies = heads.0.is_some() && heads.0 == heads.1;
        before == now || (field(&before) && field(&now)) || governed || modifies
    }

    /// A single letter that names one of several: `class a` and `class b`, although `a` is also an article.
    fn letter(&self) -> Option<(String, String)> {
        let letters = |heard: &TokenizedIntent<'_>| -> Vec<(String, String)> {
            let named = |at: usize| {
                let IntentToken::Word(word) = &heard.tokens[at] else { return None };
                let letter = fold(&word.raw);
                let noun = heard.concept_at(at.checked_sub(1)?)?.to_owned();
                (letter.chars().count() == 1 && !heard.parameter_tokens.contains(&at))
                    .then_some((noun, letter))
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

    /// A fixed count became one: `the 3 cheapest products` and `the cheapest product`.
    fn one_of_many(&self, dropped: &[DroppedConstant]) -> Option<(String, String)> {
        let number =
            dropped.iter().find(|dropped| dropped.number && dropped.strength == ConstantStrength::Sure)?;
        let counted = self.old.tokens[number.at + 1..]
            .iter()
            .take(COUNTED_WITHIN)
            .filter_map(IntentToken::content_word);
        let mut plural = counted.filter(|word| fold(&word.raw).ends_with('s'));
        plural.find_map(|many| {
            let words = self.new.free_tokens().filter_map(|(_, token)| token.content_word());
            let mut one = words.filter(|one| one.concept == many.concept && !fold(&one.raw).ends_with('s'));
            one.next().map(|one| (number.shown.clone(), one.raw.clone()))
        })
    }

    /// The intents differ in exactly one word: `the open tasks` and `the done tasks`. A verb that begins a request is
    /// exempt: it is mostly a synonym.
    fn one_word(&self) -> Option<(String, String)> {
        let only = |one: &TokenizedIntent<'_>, other: &TokenizedIntent<'_>| -> Vec<usize> {
            let free = one.free_tokens().filter(|(_, token)| match token {
                IntentToken::Word(word) => {
                    let is_empty = word.function == WordFunction::Light
                        && table::EMPTY_VERBS.contains(&fold(&word.raw).as_str());
                    (word.function == WordFunction::Content || is_empty) && !other.says_concept(&word.concept)
                }
                IntentToken::Literal(literal) => !other.says_literal(literal),
            });
            free.map(|(at, _)| at).collect()
        };
        let (before, now) = (only(self.old, self.new), only(self.new, self.old));
        let ([was], [is]) = (before.as_slice(), now.as_slice()) else { return None };
        let (IntentToken::Word(old), IntentToken::Word(new)) =
            (&self.old.tokens[*was], &self.new.tokens[*is])
        else {
            return None;
        };
        let is_empty = |word: &IntentWord| word.function == WordFunction::Light;
        if is_empty(old) || is_empty(new) {
            return None;
        }
        let generic = |concept: &str| {
            GENERIC.contains(&concept)
                || table::BRINGING.contains(&concept)
                || table::MAKING.contains(&concept)
        };
        let around = |heard: &TokenizedIntent<'_>, at: usize| {
            [NeighbourSide::Before, NeighbourSide::After].map(|side| heard.neighbour(at, side))
        };
        let served = self.served.iter().any(|heard| heard.says_concept(&new.concept));
        let replaced = (*was, *is) != (0, 0) && around(self.old, *was) == around(self.new, *is);
        (replaced && !served && !generic(&old.concept) && !generic(&new.concept))
            .then(|| (old.raw.clone(), new.raw.clone()))
    }

    /// One intent says the opposite of the other: `more than` and `less than`, `top` and `bottom`.
    fn opposite(&self) -> Option<(String, String)> {
        let only = |one: &TokenizedIntent<'_>, other: &TokenizedIntent<'_>| -> Vec<(String, String)> {
            let words = one.free_tokens().filter_map(|(_, token)| token.content_word());
            words
                .filter(|word| !other.says_concept(&word.concept))
                .map(|word| (word.concept.clone(), word.raw.clone()))
                .collect()
        };
        let (before, now) = (only(self.old, self.new), only(self.new, self.old));
        before.iter().find_map(|(was, raw)| {
            let (_, said) = now.iter().find(|(is, _)| table::are_opposites(was, is))?;
            Some((raw.clone(), said.clone()))
        })
    }

    /// The intents exchange two values: `from Paris to Lyon` and `from Lyon to Paris`.
    fn exchanged(&self) -> Option<(String, String)> {
        let values: Vec<(&str, usize, usize)> = self
            .old
            .free_tokens()
            .filter(|(_, token)| self.is_value(token))
            .filter_map(|(at, token)| {
                let (now, _) = self.new.free_tokens().find(|(_, other)| says_same(token, other))?;
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

    /// Whether a token could be another value in another intent.
    fn is_value(&self, token: &IntentToken) -> bool {
        match token {
            IntentToken::Literal(_) => true,
            IntentToken::Word(word) => {
                kinds::word_kind(&fold(&word.raw)).is_some()
                    || matches!(self.constant_of(&word.raw), Some((ConstantStrength::Sure, _)))
            }
        }
    }
}

/// The added value that replaces a dropped constant.
fn instead_of<'l>(dropped: &DroppedConstant, left: &'l [AddedValue]) -> Option<&'l AddedValue> {
    let literals = || left.iter().filter(|left| left.literal);
    let alike = literals().find(|left| left.number == dropped.number);
    let word = || left.iter().find(|left| !left.literal && (!dropped.number || left.number));
    alike.or_else(word).or_else(|| literals().next())
}

/// In bytes: shorter texts may be equal by chance.
const TELLING: usize = 3;

/// The noun that a number counts stands within this many words after it: `3 most expensive products`.
const COUNTED_WITHIN: usize = 4;

/// Whether a literal of an intent equals a constant, or part of one.
fn is_said_by(constant: &Constant, literal: &IntentLiteral) -> bool {
    match constant {
        Constant::Number(number) => {
            let said = literal.value.as_f64();
            (is_number(literal) || literal.class == LiteralClass::Date)
                && (said == Some(*number)
                    || (literal.unit() == "%" && said.map(|said| said / 100.0) == Some(*number)))
        }
        Constant::Text(text) | Constant::Name(text) => {
            let value = Value::from(text.as_str());
            says(literal, &value) || overlaps_value(&value, literal) || begins_alike(text, literal)
        }
    }
}

/// Whether one text is a prefix of the other: `Eng` of `Engineering`.
fn begins_alike(text: &str, literal: &IntentLiteral) -> bool {
    let (text, said) = (fold(text), fold(literal.bare()));
    let plain = text.len() >= TELLING && text.chars().all(char::is_alphanumeric);
    plain
        && matches!(literal.class, LiteralClass::Name | LiteralClass::Quoted)
        && (said.starts_with(&text) || text.starts_with(&said))
}

/// A constant as shown to people: the whole where it is short, else the part that the intent named.
fn shown(constant: &Constant, said: &str) -> String {
    match constant {
        Constant::Number(number) => number.to_string(),
        Constant::Text(text) | Constant::Name(text) if text.chars().count() <= 40 => text.trim().to_owned(),
        Constant::Text(_) | Constant::Name(_) => said.to_owned(),
    }
}

/// The words of a text or an identifier, however they are joined: `unitPrice`, `unit_price`.
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
    plain_words(&spaced).into_iter().filter(|word| function_of(word) == WordFunction::Content).collect()
}

#[cfg(test)]
mod tests;
