//! Finds the words and literals of an intent that name a value.

use std::ops::Range;

use serde_json::Value;

use super::fold::fold;
use super::values::says;
use super::words::{IntentToken, WordFunction};

/// The token ranges that name `value`: as a literal, else in the same words.
pub(super) fn find_value(tokens: &[IntentToken], value: &Value) -> Vec<Range<usize>> {
    let literals = tokens.iter().enumerate().filter(|(_, token)| match token {
        IntentToken::Literal(literal) => says(literal, value),
        IntentToken::Word(_) => false,
    });
    let found: Vec<Range<usize>> = literals.map(|(at, _)| at..at + 1).collect();
    match value.as_str() {
        Some(text) if found.is_empty() => in_words(tokens, text),
        _ => found,
    }
}

fn in_words(tokens: &[IntentToken], text: &str) -> Vec<Range<usize>> {
    let wanted = plain_words(text);
    let telling = |token: &IntentToken| match token {
        IntentToken::Word(word) => {
            word.function == WordFunction::Content
                || word.function == WordFunction::Light
                || word.raw.len() > 3
        }
        IntentToken::Literal(_) => true,
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

/// The text of a token, without quotation marks.
pub(super) fn raw(token: &IntentToken) -> &str {
    match token {
        IntentToken::Word(word) => &word.raw,
        IntentToken::Literal(literal) => &literal.text,
    }
}

/// The folded words of a text.
pub(super) fn plain_words(text: &str) -> Vec<String> {
    let folded = fold(text);
    folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}
