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
        let clauses = clauses::clauses(text, &values);
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

/// Lists and objects that are written out in brackets, each of which is one value. A bracket within another value, such
/// as a quotation or an address, is part of that.
fn bracketed(text: &str, values: &[IntentLiteral]) -> Vec<Range<usize>> {
    let inside = |at: usize| values.iter().any(|value| value.span.contains(&at));
    let mut found: Vec<Range<usize>> = Vec::new();
    for (start, open) in text.char_indices().filter(|(_, c)| matches!(c, '[' | '{')) {
        if found.last().is_some_and(|last| start < last.end) || inside(start) {
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

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn values_have_a_class_a_span_and_a_unit() {
        let text = "On 2023-01-31 10:00 or March 3rd, 2024 send \"it's done\" and 'a@b.example' to ann@x.example, \
            06 12 34 56 78 or 555-123-4567, see https://x.example/a,b and /etc/hosts for $1,000.50 in New York (5% of \
            a 2000-pound load), with ['red', 'blue'] in Spanish as JSON, not 'he don't know' or https://x.example/[a]/b.";
        let shown = |value: &IntentLiteral| {
            let unit = value.measured_in.map(|unit| format!(" in {:?}", unit.dimension));
            format!("{:?} {}{}", value.class, &text[value.span.clone()], unit.unwrap_or_default())
        };
        let found: Vec<String> = Reading::of(text).values.iter().map(shown).collect();
        expect![[r#"
            Date 2023-01-31 10:00
            Date March 3rd, 2024
            Quoted "it's done"
            Email 'a@b.example'
            Email ann@x.example
            Phone 06 12 34 56 78
            Phone 555-123-4567
            Url https://x.example/a,b
            Path /etc/hosts
            Number $1,000.50 in Money
            Name New York
            Number 5% in Share
            Number 2000 in Mass
            Quoted ['red', 'blue']
            Name Spanish
            Quoted 'he don't know'
            Url https://x.example/[a]/b"#]]
        .assert_eq(&found.join("\n"));
    }

    #[test]
    fn words_are_found_beside_a_value() {
        let reading = Reading::of("les 5 dernières lignes de a.txt");
        let five = &reading.values[0].span;
        assert_eq!(reading.language, Language::French);
        assert_eq!(reading.word_before(five.start).map(|word| word.raw.as_str()), Some("les"));
        assert_eq!(reading.word_after(five.end).map(|word| word.concept.as_str()), Some("last"));
        let between = Reading::of("between 3 and 5, 7");
        assert_eq!(between.word_before(between.values[2].span.start), None, "a literal stands there");
    }

    #[test]
    fn any_text_can_be_read() {
        let long = "send 'it' to 1st of Café, [".repeat(3000);
        for text in [
            "",
            " ",
            "🙂🙂",
            "'",
            "'''",
            "1st of é",
            "+é",
            "«a»é",
            "\u{0}\u{301}1-",
            "a@",
            "[]{[}",
            "[é",
            "{[a] 'b] c'}",
            "5 ‰",
            "日本語でファイルを読む。",
            &long,
        ] {
            let reading = Reading::of(text);
            let mut end = 0;
            for value in &reading.values {
                assert!(end <= value.span.start && reading.text.get(value.span.clone()).is_some(), "{text}");
                end = value.span.end;
            }
            let clauses: String =
                reading.clauses.iter().map(|clause| &reading.text[clause.span.clone()]).collect();
            assert_eq!(clauses, reading.text, "clauses cover the text");
        }
    }
}
