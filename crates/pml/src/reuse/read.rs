//! An intent that was read once, to be compared with many others.

use pml_language::french::BETWEEN_MEANINGS;
use pml_language::literals::depends_on_today;
use serde_json::Value;

use super::find::find_value;
use super::same::{self, SameProcedureQuestion};
use super::similar::IntentPiece;
use super::values::Strictness;
use super::words::{IntentToken, family, tokenize};
use super::{LONGEST, mask};

/// An intent with its tokens, and the same of its English gloss where it is French.
#[derive(Debug, Clone)]
pub struct ReadIntent {
    text: String,
    tokens: Vec<IntentToken>,
    depends_on_today: bool,
    english: Option<Box<ReadIntent>>,
}

impl ReadIntent {
    /// Reads `text`. A text longer than an intent may be has no tokens.
    pub fn new(text: &str) -> ReadIntent {
        let english = mask::in_english(text).map(|gloss| Box::new(ReadIntent::as_said(gloss)));
        ReadIntent { english, ..ReadIntent::as_said(text.to_owned()) }
    }

    fn as_said(text: String) -> ReadIntent {
        let tokens = if text.len() <= LONGEST { tokenize(&text) } else { Vec::new() };
        let literals = tokens.iter().filter_map(|token| match token {
            IntentToken::Literal(literal) => Some(literal),
            IntentToken::Word(_) => None,
        });
        let depends_on_today = !tokens.is_empty() && depends_on_today(&text, literals);
        ReadIntent { text, tokens, depends_on_today, english: None }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn tokens(&self) -> &[IntentToken] {
        &self.tokens
    }

    /// Whether it counts from today, so that dates derived from it differ on another day.
    pub(super) fn depends_on_today(&self) -> bool {
        self.depends_on_today
    }

    /// The English gloss of a French intent.
    pub(super) fn english(&self) -> Option<&ReadIntent> {
        self.english.as_deref()
    }

    pub(super) fn is_too_long(&self) -> bool {
        self.text.len() > LONGEST
    }

    /// The same with one meaning of every French word that has several: the one that a served intent has too.
    /// `None` if no word has several.
    pub(super) fn with_meanings_of(&self, served: &[&ReadIntent]) -> Option<ReadIntent> {
        let english = self.english.as_deref()?;
        let is_said = |token: &IntentToken| {
            let wanted = token.content_word().map(|word| family(&word.concept));
            let said = served.iter().flat_map(|served| served.english().unwrap_or(served).tokens());
            wanted.is_some()
                && said
                    .filter_map(IntentToken::content_word)
                    .any(|word| Some(family(&word.concept)) == wanted)
        };
        let mut tokens: Vec<IntentToken> = Vec::with_capacity(english.tokens.len());
        let mut several = false;
        for token in &english.tokens {
            let is_meaning = |before: &IntentToken| {
                english.text[before.span().end..token.span().start].chars().eq([BETWEEN_MEANINGS])
            };
            match english.tokens.iter().take_while(|other| other.span().start < token.span().start).last() {
                Some(before) if before.span().end <= token.span().start && is_meaning(before) => {
                    several = true;
                    let last = tokens.len() - 1;
                    if is_said(token) && !is_said(&tokens[last]) {
                        tokens[last] = token.clone();
                    }
                }
                Some(_) | None => tokens.push(token.clone()),
            }
        }
        let english = ReadIntent { tokens, ..english.clone() };
        several.then(|| ReadIntent { english: Some(Box::new(english)), ..self.clone() })
    }

    /// Whether it contains `value`, as a literal or in the same words. Of a list or an object it must contain every
    /// part.
    pub fn mentions(&self, value: &Value) -> bool {
        mentions(&self.tokens, value)
    }

    /// The similarity from 0 to 1, whatever the values. Literals are compared by class.
    pub fn similarity(&self, other: &ReadIntent) -> f64 {
        self.similarity_for(other, Strictness::Reads)
    }

    /// As [`ReadIntent::similarity`]; with [`Strictness::Writes`] the intents must use the same words.
    pub(super) fn similarity_for(&self, other: &ReadIntent, strictness: Strictness) -> f64 {
        same::same_procedure(&SameProcedureQuestion {
            served: &self.pieces(),
            asked: &other.pieces(),
            served_text: &self.text,
            asked_text: &other.text,
            strictness,
        })
    }

    fn pieces(&self) -> Vec<IntentPiece<'_>> {
        self.tokens.iter().map(IntentPiece::Token).collect()
    }
}

fn mentions(tokens: &[IntentToken], value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty() && items.iter().all(|item| mentions(tokens, item)),
        Value::Object(fields) => !fields.is_empty() && fields.values().all(|field| mentions(tokens, field)),
        leaf => !find_value(tokens, leaf).is_empty(),
    }
}
