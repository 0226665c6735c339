//! The tokens of an intent for comparison with a program: glossed into English where possible, and marked where they
//! are values of parameters.

use std::collections::BTreeSet;
use std::ops::Range;

use pml_language::polarity::PolarText;
use serde_json::{Map, Value};

use super::lists::ACRONYMS;
use crate::reuse::choice;
use crate::reuse::find::{find_value, plain_words};
use crate::reuse::fold::fold;
use crate::reuse::literals::{IntentLiteral, LiteralClass};
use crate::reuse::read::ReadIntent;
use crate::reuse::switch;
use crate::reuse::template::{overlaps_value, role};
use crate::reuse::words::{IntentToken, WordFunction, concept, family};

/// A tokenized intent, with the tokens that are values of parameters.
pub(super) struct TokenizedIntent<'i> {
    pub(super) tokens: &'i [IntentToken],
    /// Indices of the tokens that are values of parameters.
    pub(super) parameter_tokens: BTreeSet<usize>,
}

impl<'i> TokenizedIntent<'i> {
    /// Takes the tokens of `intent`, glossed into English where its words are known: programs compare their values with words
    /// of either language.
    pub(super) fn new(intent: &'i ReadIntent, values: &[&Value]) -> TokenizedIntent<'i> {
        let mut own = intent.tokens();
        if let Some(read) = intent.english().map(ReadIntent::tokens) {
            let literals = |tokens: &[IntentToken]| -> Vec<String> {
                let mut texts: Vec<String> =
                    tokens.iter().filter_map(literal).map(|literal| literal.text.clone()).collect();
                texts.sort();
                texts
            };
            if literals(own) == literals(read) {
                own = read;
            }
        }
        let mut heard = TokenizedIntent { tokens: own, parameter_tokens: BTreeSet::new() };
        for value in values {
            let said = heard.places_of(value);
            heard.parameter_tokens.extend(said.into_iter().flatten());
            let parts = heard.tokens.iter().enumerate().filter(|(_, token)| {
                literal(token).is_some_and(|literal| !is_number(literal) && overlaps_value(value, literal))
            });
            let parts: Vec<usize> = parts.map(|(at, _)| at).collect();
            heard.parameter_tokens.extend(parts);
        }
        heard
    }

    /// Counts the words that say a boolean of these as values of parameters.
    pub(super) fn take_switches<'v>(&mut self, values: impl Iterator<Item = (&'v String, &'v Value)>) {
        for (name, value) in values {
            let said = switch::said_of_value(self.tokens, name, Some(value));
            self.parameter_tokens.extend(said.into_iter().flat_map(|said| said.range));
        }
    }

    /// Counts the words that name a listed value of one of these parameters, which it has, as values of parameters.
    pub(super) fn take_choices(
        &mut self,
        properties: &Map<String, Value>,
        has: impl Fn(&str, &Value) -> bool,
    ) {
        for (name, schema) in properties {
            let said = choice::said_choice(self.tokens, schema).filter(|said| has(name, &said.value));
            self.parameter_tokens.extend(said.into_iter().flat_map(|said| said.range));
        }
    }

    pub(super) fn places_of(&self, value: &Value) -> Vec<Range<usize>> {
        find_value(self.tokens, value)
    }

    /// The tokens that are no values of parameters, with their indices.
    pub(super) fn free_tokens(&self) -> impl Iterator<Item = (usize, &IntentToken)> {
        self.tokens.iter().enumerate().filter(|(at, _)| !self.parameter_tokens.contains(at))
    }

    /// The tokens with those that are values, for what they affirm and deny.
    pub(super) fn polar(&self) -> PolarText<'_> {
        PolarText::new(self.tokens, &self.parameter_tokens)
    }

    pub(super) fn says_concept(&self, wanted: &str) -> bool {
        self.tokens.iter().any(|token| match token {
            IntentToken::Word(word) => same_concept(&word.concept, wanted),
            IntentToken::Literal(literal) => {
                matches!(literal.class, LiteralClass::Name | LiteralClass::Quoted)
                    && plain_words(&literal.text).iter().any(|word| same_concept(&concept(word), wanted))
            }
        })
    }

    pub(super) fn says_literal(&self, wanted: &IntentLiteral) -> bool {
        self.tokens.iter().any(|token| literal(token).is_some_and(|other| same_literal(wanted, other)))
            || (is_in_words(wanted) && !self.places_of(&Value::from(wanted.text.as_str())).is_empty())
    }

    pub(super) fn role(&self, at: usize) -> u16 {
        role(self.tokens, at)
    }

    /// The concept of the token at `at`; `None` unless it is a content word.
    pub(super) fn concept_at(&self, at: usize) -> Option<&str> {
        self.tokens.get(at).and_then(IntentToken::content_word).map(|word| word.concept.as_str())
    }

    /// Whether the range contains a joining word such as `and`.
    pub(super) fn joins(&self, range: Range<usize>) -> bool {
        let joining = |token: &IntentToken| matches!(token, IntentToken::Word(word) if word.function == WordFunction::Joining || word.concept == "or");
        self.tokens[range].iter().any(joining)
    }
}

/// Whether two concepts are the same, or forms of one word.
fn same_concept(one: &str, other: &str) -> bool {
    one == other || (family(one) == family(other) && family(one).len() > 2)
}

pub(super) fn literal(token: &IntentToken) -> Option<&IntentLiteral> {
    match token {
        IntentToken::Literal(literal) => Some(literal),
        IntentToken::Word(_) => None,
    }
}

pub(super) fn is_number(literal: &IntentLiteral) -> bool {
    matches!(literal.class, LiteralClass::Number | LiteralClass::Ordinal)
        || (literal.class == LiteralClass::Id && literal.text.starts_with('#'))
}

/// Whether a literal may equally be written as plain words. One with signs may not: `-5` is not `5`.
pub(super) fn is_in_words(literal: &IntentLiteral) -> bool {
    matches!(literal.class, LiteralClass::Name | LiteralClass::Quoted)
}

/// Whether two literals mean the same value, however they are written and in either language.
pub(super) fn same_literal(one: &IntentLiteral, other: &IntentLiteral) -> bool {
    one.says_same_as(other) || same_number(one, other) || same_acronym(one, other)
}

fn same_number(one: &IntentLiteral, other: &IntentLiteral) -> bool {
    is_number(one)
        && is_number(other)
        && one.unit() == other.unit()
        && one.value.as_f64() == other.value.as_f64()
}

fn same_acronym(one: &IntentLiteral, other: &IntentLiteral) -> bool {
    let (one, other) = (fold(&one.text), fold(&other.text));
    ACRONYMS.iter().any(|(a, b)| (one == *a && other == *b) || (one == *b && other == *a))
}

pub(super) fn says_same(one: &IntentToken, other: &IntentToken) -> bool {
    match (one, other) {
        (IntentToken::Literal(one), IntentToken::Literal(other)) => same_literal(one, other),
        (IntentToken::Word(one), IntentToken::Word(other)) => one.concept == other.concept,
        (IntentToken::Literal(_), IntentToken::Word(_)) | (IntentToken::Word(_), IntentToken::Literal(_)) => {
            false
        }
    }
}

#[derive(Clone, Copy)]
pub(super) enum NeighbourSide {
    Before,
    After,
}

impl TokenizedIntent<'_> {
    /// The concept next to a token; function words are skipped.
    pub(super) fn neighbour(&self, at: usize, side: NeighbourSide) -> Option<String> {
        let near = |at: usize| match &self.tokens[at] {
            IntentToken::Word(word) if word.function == WordFunction::Content => Some(word.concept.clone()),
            IntentToken::Word(_) => None,
            IntentToken::Literal(literal) => Some(format!("<{:?}>", literal.class)),
        };
        match side {
            NeighbourSide::Before => (0..at).rev().find_map(near),
            NeighbourSide::After => (at + 1..self.tokens.len()).find_map(near),
        }
    }
}
