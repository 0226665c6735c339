//! A text, read once for everybody who asks about it.

use std::ops::Range;

use serde_json::Value;

use crate::clauses::{self, Clause};
use crate::fold::fold;
use crate::kinds::{self, WordKind};
use crate::literals::{IntentLiteral, LiteralClass};
use crate::words::{IntentToken, IntentWord, tokenize};
use crate::{byte_prefix, french};

/// Maximum bytes of a text that are read: text beyond is material, not a request.
const MAX_BYTES: usize = 8 * 1024;

/// The language of a text, as far as words and grammar depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// English, or a language that is read like it.
    English,
    /// French.
    French,
}

/// What a text says.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading<'t> {
    /// The text, or its beginning where it is too long. All spans are byte ranges of it.
    pub text: &'t str,
    /// Its words and literals, in order.
    pub tokens: Vec<IntentToken>,
    /// What may be an argument, in order: its literals, the words that name one of a kind (`Spanish`, `USD`), and what
    /// is written out in brackets.
    pub values: Vec<IntentLiteral>,
    /// Its clauses, which cover it without gaps.
    pub clauses: Vec<Clause>,
    /// Its language.
    pub language: Language,
}

impl<'t> Reading<'t> {
    /// Reads `text`.
    pub fn of(text: &'t str) -> Reading<'t> {
        let text = byte_prefix(text, MAX_BYTES);
        let tokens = tokenize(text);
        let values = values(text, &tokens);
        let clauses = clauses::clauses(text, &values.iter().collect::<Vec<_>>());
        let language = if french::is_french(text) { Language::French } else { Language::English };
        Reading { text, tokens, values, clauses, language }
    }

    /// Its literals, in order.
    pub fn literals(&self) -> impl Iterator<Item = &IntentLiteral> {
        self.tokens.iter().filter_map(|token| match token {
            IntentToken::Literal(literal) => Some(literal),
            IntentToken::Word(_) => None,
        })
    }

    /// The steps it asks for, in its words; the whole text where it asks for one thing.
    pub fn steps(&self) -> Vec<String> {
        clauses::steps(self.text, &self.clauses)
    }

    /// The tokens that end at or before `at`.
    pub fn tokens_before(&self, at: usize) -> &[IntentToken] {
        &self.tokens[..self.tokens.partition_point(|token| token.span().end <= at)]
    }

    /// The word right before `at`; `None` where a literal stands there.
    pub fn word_before(&self, at: usize) -> Option<&IntentWord> {
        as_word(self.tokens_before(at).last()?)
    }

    /// The word right after `at`; `None` where a literal stands there.
    pub fn word_after(&self, at: usize) -> Option<&IntentWord> {
        as_word(self.tokens.get(self.tokens.partition_point(|token| token.span().start < at))?)
    }
}

fn as_word(token: &IntentToken) -> Option<&IntentWord> {
    match token {
        IntentToken::Word(word) => Some(word),
        IntentToken::Literal(_) => None,
    }
}

/// The values of `text`, in order.
fn values(text: &str, tokens: &[IntentToken]) -> Vec<IntentLiteral> {
    let mut values: Vec<IntentLiteral> = tokens.iter().filter_map(value_of).collect();
    for whole in bracketed(text, &values) {
        let start = values.partition_point(|value| value.span.end <= whole.start);
        let end = values.partition_point(|value| value.span.start < whole.end);
        values.splice(start..end, [quoted(text, whole)]);
    }
    values
}

/// The value that a token is.
fn value_of(token: &IntentToken) -> Option<IntentLiteral> {
    match token {
        IntentToken::Literal(literal) => Some(literal.clone()),
        IntentToken::Word(word) => {
            let named = match kinds::word_kind(&fold(&word.raw))? {
                // The name of a format is mostly said of the thing itself: `the JSON file`.
                WordKind::Format => false,
                WordKind::Language
                | WordKind::Langue
                | WordKind::Unit
                | WordKind::Currency
                | WordKind::Code => word.raw.starts_with(char::is_uppercase),
            };
            named.then(|| IntentLiteral {
                class: LiteralClass::Name,
                text: word.raw.clone(),
                value: Value::from(word.raw.as_str()),
                measured_in: None,
                span: word.span.clone(),
            })
        }
    }
}

/// Lists and objects that are written out in brackets, each of which is one value. Brackets in quotes are text.
fn bracketed(text: &str, values: &[IntentLiteral]) -> Vec<Range<usize>> {
    let quoted = |at: usize| {
        values.iter().any(|value| value.class == LiteralClass::Quoted && value.span.contains(&at))
    };
    let mut found: Vec<Range<usize>> = Vec::new();
    for (start, open) in text.char_indices().filter(|(_, c)| matches!(c, '[' | '{')) {
        if found.last().is_some_and(|last| start < last.end) || quoted(start) {
            continue;
        }
        let close = if open == '[' { ']' } else { '}' };
        let end = text[start..].find(close).map(|length| start + length + 1);
        found.extend(end.filter(|end| *end > start + 2).map(|end| start..end));
    }
    found
}

fn quoted(text: &str, span: Range<usize>) -> IntentLiteral {
    let text = &text[span.clone()];
    IntentLiteral {
        class: LiteralClass::Quoted,
        text: text.to_owned(),
        value: Value::from(text),
        measured_in: None,
        span,
    }
}
