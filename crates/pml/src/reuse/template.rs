//! An intent that succeeded, with the places at which it says the values of parameters.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

use super::dates;
use super::literals::{Class, Literal};
use super::values::says;
use super::vocabulary::TO;
use super::words::{Part, Token, fold, tokens};

/// An intent and what of it belongs to parameters.
pub(super) struct Template {
    /// The intent.
    pub(super) intent: String,
    /// The same in pieces.
    pub(super) tokens: Vec<Token>,
    /// The places at which it says values, in order.
    pub(super) slots: Vec<Slot>,
    /// How each parameter's value depends on what is said; none if it does not.
    pub(super) links: BTreeMap<String, Link>,
    /// Whether it counts from now, so that dates made of it are others another day.
    pub(super) moves: bool,
}

/// A place at which an intent says the value of a parameter.
#[derive(Debug)]
pub(super) struct Slot {
    /// The parameters, what each was, and which part of what is said it takes.
    pub(super) parameters: Vec<(String, Value, Take)>,
    /// The tokens that say it.
    pub(super) range: Range<usize>,
    /// Whether the value stands there more than once, or belongs to several parameters.
    pub(super) doubtful: bool,
}

/// Which part of a literal is the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Take {
    /// All of it.
    Whole,
    /// The part before (0) or after (1) the only slash.
    Half(usize),
}

/// How the value of a parameter depends on what an intent says.
#[derive(Debug)]
pub(super) enum Link {
    /// The intent says it at this slot.
    Slot(usize),
    /// It was made of these tokens.
    Made {
        /// The tokens.
        of: Vec<usize>,
        /// Whether it is a list of exactly what they say.
        exactly: bool,
    },
}

impl Template {
    /// Looks for the `values` that parameters had (any of them, the first that is found) in `intent`.
    pub(super) fn new(intent: &str, values: &[(String, Vec<Value>)]) -> Template {
        let tokens = tokens(intent);
        let mut slots: Vec<Slot> = Vec::new();
        for (name, candidates) in values {
            let found = candidates.iter().map(|value| (value, places(&tokens, value)));
            if let Some((value, places)) = found.into_iter().find(|(_, places)| !places.is_empty()) {
                add(&mut slots, name, value, &places);
            }
        }
        halves(&tokens, values, &mut slots);
        slots.sort_by_key(|slot| slot.range.start);
        let mut links = BTreeMap::new();
        for (at, slot) in slots.iter().enumerate() {
            links.extend(slot.parameters.iter().map(|(name, ..)| (name.clone(), Link::Slot(at))));
        }
        for (name, candidates) in values {
            if !links.contains_key(name)
                && let Some(link) = candidates.first().and_then(|value| made(&tokens, value))
            {
                links.insert(name.clone(), link);
            }
        }
        Template { intent: intent.to_owned(), moves: dates::moves(intent), tokens, slots, links }
    }

    /// The literal at a slot, where it is one and not plain words.
    pub(super) fn literal(&self, slot: &Slot) -> Option<&Literal> {
        match &self.tokens[slot.range.start] {
            Token::Literal(literal) if slot.range.len() == 1 => Some(literal),
            Token::Literal(_) | Token::Word(_) => None,
        }
    }

    /// What the intent says that no parameter takes, so that it may be what stood where `default` stands. A procedure may
    /// be left with the defaults of a run that this was not the intent of: one that failed, or one it was merged with.
    pub(super) fn instead_of(&self, default: &Value) -> Option<&str> {
        if matches!(default, Value::Bool(_) | Value::Null) {
            return None;
        }
        let taken = |at: &usize| {
            self.slots.iter().any(|slot| slot.range.contains(at))
                || self.links.values().any(|link| matches!(link, Link::Made { of, .. } if of.contains(at)))
        };
        let mut literals = self.tokens.iter().enumerate().filter_map(|(at, token)| match token {
            Token::Literal(literal) if !taken(&at) => Some(literal.text.as_str()),
            Token::Literal(_) | Token::Word(_) => None,
        });
        literals.next()
    }

    /// The slot that begins at a token.
    pub(super) fn slot_at(&self, token: usize) -> Option<usize> {
        self.slots.iter().position(|slot| slot.range.start == token)
    }

    /// The text of a range of tokens.
    pub(super) fn text(&self, range: &Range<usize>) -> &str {
        said(&self.intent, &self.tokens, range)
    }
}

/// What `tokens[range]` of `intent` says, without quotation marks around a literal.
pub(super) fn said<'a>(intent: &'a str, tokens: &'a [Token], range: &Range<usize>) -> &'a str {
    match &tokens[range.start] {
        Token::Literal(literal) if range.len() == 1 => &literal.text,
        first => &intent[first.span().start..tokens[range.end - 1].span().end],
    }
}

/// Shorter texts may be equal by chance.
const TELLING: usize = 4;

fn add(slots: &mut Vec<Slot>, name: &str, value: &Value, places: &[Range<usize>]) {
    let parameter = (name.to_owned(), value.clone(), Take::Whole);
    if let Some(slot) = slots.iter_mut().find(|slot| slot.range == places[0]) {
        // The same text twice is one thing that two calls are given; the same number may be two things.
        let telling = value.as_str().is_some_and(|text| text.len() >= TELLING);
        let same = slot.parameters.iter().all(|(_, other, _)| other == value);
        slot.parameters.push(parameter);
        slot.doubtful |= !telling || !same || places.len() > 1;
        return;
    }
    let overlaps = |slot: &Slot| slot.range.start < places[0].end && places[0].start < slot.range.end;
    let doubtful = places.len() > 1 || slots.iter().any(overlaps);
    slots.push(Slot { parameters: vec![parameter], range: places[0].clone(), doubtful });
}

/// `owner/name` says two parameters at once, where their values are exactly its halves.
fn halves(tokens: &[Token], values: &[(String, Vec<Value>)], slots: &mut Vec<Slot>) {
    let free = |name: &str, slots: &[Slot]| {
        !slots.iter().flat_map(|s| &s.parameters).any(|(other, ..)| other == name)
    };
    for (at, token) in tokens.iter().enumerate() {
        let Token::Literal(literal) = token else { continue };
        let Some((owner, name)) = split(literal) else { continue };
        let of = |text: &str, slots: &[Slot]| {
            let mut fitting = values.iter().filter_map(|(parameter, values)| {
                let value = values.iter().find(|value| value.as_str() == Some(text))?;
                free(parameter, slots).then(|| (parameter.clone(), value.clone()))
            });
            fitting.next().filter(|_| fitting.next().is_none())
        };
        if let (Some(first), Some(second)) = (of(owner, slots), of(name, slots))
            && first.0 != second.0
            && !slots.iter().any(|slot| slot.range.contains(&at))
        {
            let parameters = vec![(first.0, first.1, Take::Half(0)), (second.0, second.1, Take::Half(1))];
            slots.push(Slot { parameters, range: at..at + 1, doubtful: false });
        }
    }
}

/// The halves of `owner/name`.
pub(super) fn split(literal: &Literal) -> Option<(&str, &str)> {
    let halves = literal.text.split_once('/').filter(|_| literal.class == Class::Path)?;
    let plain =
        |half: &str| !half.is_empty() && !half.contains(['/', '*', '~']) && half != "." && half != "..";
    (plain(halves.0) && plain(halves.1)).then_some(halves)
}

/// Where `tokens` say `value`: as a literal, else in the same words.
pub(super) fn places(tokens: &[Token], value: &Value) -> Vec<Range<usize>> {
    let literals = tokens.iter().enumerate().filter(|(_, token)| match token {
        Token::Literal(literal) => says(literal, value),
        Token::Word(_) => false,
    });
    let found: Vec<Range<usize>> = literals.map(|(at, _)| at..at + 1).collect();
    match value.as_str() {
        Some(text) if found.is_empty() => in_words(tokens, text),
        _ => found,
    }
}

fn in_words(tokens: &[Token], text: &str) -> Vec<Range<usize>> {
    let wanted = plain_words(text);
    let telling = |token: &Token| match token {
        Token::Word(word) => word.part == Part::Content || word.part == Part::Light || word.raw.len() > 3,
        Token::Literal(_) => true,
    };
    let mut found = Vec::new();
    for start in 0..tokens.len() {
        let (mut said, mut end) = (Vec::new(), start);
        while end < tokens.len() && said.len() < wanted.len() {
            said.extend(plain_words(raw(&tokens[end])));
            end += 1;
        }
        if !wanted.is_empty() && said == wanted && tokens[start..end].iter().any(telling) {
            found.push(start..end);
        }
    }
    found
}

/// A piece as it is written, without quotation marks.
pub(super) fn raw(token: &Token) -> &str {
    match token {
        Token::Word(word) => &word.raw,
        Token::Literal(literal) => &literal.text,
    }
}

/// The folded words of a text.
pub(super) fn plain_words(text: &str) -> Vec<String> {
    let folded = fold(text);
    folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The folded words that tokens say, one after the other.
pub(super) fn in_order(tokens: &[Token]) -> Vec<String> {
    tokens.iter().flat_map(|token| plain_words(raw(token))).collect()
}

/// The tokens `value` was made of without being said: a list of literals, or a text that contains one.
fn made(tokens: &[Token], value: &Value) -> Option<Link> {
    let leaves = leaves(value);
    let mut of = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Literal(literal) = token else { continue };
        if leaves.iter().any(|leaf| says(literal, leaf) || contains(leaf, literal)) {
            of.push(at);
        }
    }
    let said =
        |leaf: &&Value| tokens.iter().any(|t| matches!(t, Token::Literal(literal) if says(literal, leaf)));
    let exactly = value.is_array() && leaves.iter().all(said);
    (!of.is_empty()).then_some(Link::Made { of, exactly })
}

/// The values within a value that are neither lists nor objects.
pub(super) fn leaves(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().flat_map(leaves).collect(),
        Value::Object(fields) => fields.values().flat_map(leaves).collect(),
        leaf => vec![leaf],
    }
}

/// Whether one of both is part of the other, so that another literal would have given another value.
pub(super) fn contains(leaf: &Value, literal: &Literal) -> bool {
    let Some(text) = leaf.as_str().map(fold) else { return false };
    let said = fold(literal.bare());
    let parts = |whole: &str, part: &str| {
        whole.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_').any(|piece| piece == part)
    };
    (said.len() > 2 && text.contains(&said)) || parts(&text, &said) || (text.len() > 1 && parts(&said, &text))
}

/// The relation in which the token at `at` stands to what is before it.
pub(super) fn role(tokens: &[Token], at: usize) -> u16 {
    for token in tokens[..at].iter().rev() {
        match token {
            Token::Word(word) => match word.part {
                Part::Void | Part::Stating | Part::Light => {}
                Part::Role(role) => return role,
                Part::Ask | Part::Negation | Part::Joining | Part::Content => return 0,
            },
            Token::Literal(_) => return 0,
        }
    }
    0
}

/// Whether two relations can be the same one.
pub(super) fn roles_agree(class: Option<Class>, one: u16, other: u16) -> bool {
    let person = matches!(class, Some(Class::Handle | Class::Email | Class::Name));
    match (one, other) {
        (0, 0) => true,
        (0, _) | (_, 0) => !person,
        _ => one & other != 0 || (!person && (one | other) & TO == 0),
    }
}

/// `range` with the words before it that relate it to the sentence.
pub(super) fn with_role(tokens: &[Token], range: &Range<usize>) -> Range<usize> {
    if role(tokens, range.start) == 0 {
        return range.clone();
    }
    let related = |token: &Token| matches!(token, Token::Word(word) if matches!(word.part, Part::Role(_)));
    let start = tokens[..range.start].iter().rposition(related).unwrap_or(range.start);
    start..range.end
}
