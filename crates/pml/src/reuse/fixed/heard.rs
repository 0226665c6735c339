//! An intent as it is held against a program: its pieces, in English where its words are known, and which of them say
//! values of parameters.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::Value;

use super::lists::ACRONYMS;
use crate::reuse::literals::{Class, Literal};
use crate::reuse::template::{contains, places, plain_words, role};
use crate::reuse::words::{Part, Token, concept, fold, tokens};

/// An intent in pieces, with the pieces that say the values of parameters.
pub(super) struct Heard {
    pub(super) tokens: Vec<Token>,
    /// Those that say values of parameters.
    pub(super) taken: BTreeSet<usize>,
}

impl Heard {
    /// Reads `intent`, in English where its words are known: the values of a program are mostly compared with words of
    /// either language.
    pub(super) fn new(intent: &str, values: &[&Value]) -> Heard {
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

    pub(super) fn places(&self, value: &Value) -> Vec<Range<usize>> {
        places(&self.tokens, value)
    }

    /// The pieces that are no values of parameters.
    pub(super) fn free(&self) -> impl Iterator<Item = (usize, &Token)> {
        self.tokens.iter().enumerate().filter(|(at, _)| !self.taken.contains(at))
    }

    pub(super) fn says_concept(&self, wanted: &str) -> bool {
        self.tokens.iter().any(|token| match token {
            Token::Word(word) => word.concept == wanted,
            Token::Literal(literal) => {
                matches!(literal.class, Class::Name | Class::Quoted)
                    && plain_words(&literal.text).iter().any(|word| concept(word) == wanted)
            }
        })
    }

    pub(super) fn says_literal(&self, wanted: &Literal) -> bool {
        self.tokens.iter().any(|token| literal(token).is_some_and(|other| same(wanted, other)))
            || (is_in_words(wanted) && !self.places(&Value::from(wanted.text.as_str())).is_empty())
    }

    pub(super) fn role(&self, at: usize) -> u16 {
        role(&self.tokens, at)
    }

    /// What the piece at `at` says, where it is a plain word that says something.
    pub(super) fn content(&self, at: usize) -> Option<&str> {
        self.tokens.get(at).and_then(Token::content).map(|word| word.concept.as_str())
    }

    /// Whether what stands there is joined by a word like `and`.
    pub(super) fn joins(&self, range: Range<usize>) -> bool {
        let joining = |token: &Token| matches!(token, Token::Word(word) if word.part == Part::Joining || word.concept == "or");
        self.tokens[range].iter().any(joining)
    }
}

pub(super) fn literal(token: &Token) -> Option<&Literal> {
    match token {
        Token::Literal(literal) => Some(literal),
        Token::Word(_) => None,
    }
}

pub(super) fn is_number(literal: &Literal) -> bool {
    matches!(literal.class, Class::Number | Class::Ordinal)
        || (literal.class == Class::Id && literal.text.starts_with('#'))
}

/// Whether a literal may as well be written as plain words; what has signs in it may not: `-5` is not `5`.
pub(super) fn is_in_words(literal: &Literal) -> bool {
    matches!(literal.class, Class::Name | Class::Quoted)
}

/// Whether both say the same, in whichever way and language.
pub(super) fn same(one: &Literal, other: &Literal) -> bool {
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

pub(super) fn says_same(one: &Token, other: &Token) -> bool {
    match (one, other) {
        (Token::Literal(one), Token::Literal(other)) => same(one, other),
        (Token::Word(one), Token::Word(other)) => one.concept == other.concept,
        (Token::Literal(_), Token::Word(_)) | (Token::Word(_), Token::Literal(_)) => false,
    }
}

#[derive(Clone, Copy)]
pub(super) enum Side {
    Before,
    After,
}

impl Heard {
    /// What is said next to a piece, small words left out.
    pub(super) fn neighbour(&self, at: usize, side: Side) -> Option<String> {
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
