//! Values of an enumeration that are said in words: `descending` for `desc`, `in upper case` for `upper`.
//!
//! The schema of a parameter lists what it may be. Words of an intent name one of these: spelled the same, as a known
//! abbreviation, or as another word for it. Where an intent names two of them, or none, there is no value. The verb that
//! an intent begins with says what to do and is no value.

use std::ops::Range;

use serde_json::Value;

use super::fold::fold;
use super::vocabulary as table;
use super::words::{IntentToken, IntentWord, WordFunction, concept};

/// The most members of an enumeration that are looked for: longer ones are lists of data.
const MOST_MEMBERS: usize = 40;
/// The most words that name one member: `snake case`.
const MOST_WORDS: usize = 2;

/// Words that stand for each other in enumerations. All are folded.
const SAME: &[&[&str]] = &[
    &["asc", "ascending", "increasing", "croissant", "croissante"],
    &["desc", "descending", "decreasing", "decroissant", "decroissante", "reverse", "reversed"],
    &["upper", "uppercase", "majuscule", "majuscules", "capitals"],
    &["lower", "lowercase", "minuscule", "minuscules"],
    &["title", "titlecase"],
    &["camel", "camelcase"],
    &["snake", "snakecase"],
    &["kebab", "kebabcase"],
    &["yaml", "yml"],
    &["markdown", "md"],
    &["text", "txt", "plain", "plaintext"],
    &["min", "minimum"],
    &["max", "maximum"],
    &["avg", "average", "mean", "moyenne"],
    &["day", "days", "daily", "jour", "jours"],
    &["week", "weeks", "weekly", "semaine", "semaines"],
    &["month", "months", "monthly", "mois"],
    &["year", "years", "yearly", "annual", "annee", "annees", "ans"],
    &["hour", "hours", "hourly", "heure", "heures"],
    &["minute", "minutes"],
    &["second", "seconds", "seconde", "secondes"],
    &["c", "celsius"],
    &["f", "fahrenheit"],
    &["k", "kelvin"],
    &["directory", "directories", "dir", "folder", "folders", "dossier", "dossiers"],
    &["file", "files", "fichier", "fichiers"],
];

/// Nouns that repeat what a choice is one of: `in ascending order`, `in upper case`, `in YAML format`.
const FRAMES: &[&str] = &["order", "case", "format", "mode", "form", "style", "letter"];

/// What an intent says of a parameter with listed values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SaidChoice {
    /// The tokens that say it, with the words around them that belong to it.
    pub(super) range: Range<usize>,
    /// The member.
    pub(super) value: Value,
}

/// What the intent says of the parameter with that schema; `None` if nothing, or more than one thing.
pub(super) fn said_choice(tokens: &[IntentToken], schema: &Value) -> Option<SaidChoice> {
    let members: Vec<&Value> =
        schema.get("enum")?.as_array()?.iter().filter(|member| member.is_string()).collect();
    if !(2..=MOST_MEMBERS).contains(&members.len()) {
        return None;
    }
    let is_value = |token: &IntentToken| match token {
        IntentToken::Literal(literal) => members.iter().any(|member| names(&plain(&literal.text), member)),
        IntentToken::Word(_) => false,
    };
    if tokens.iter().any(is_value) {
        return None;
    }
    let first = tokens.iter().position(|token| token.content_word().is_some());
    let mut found: Vec<SaidChoice> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let length = (1..=MOST_WORDS).rev().find_map(|length| {
            let said = joined(tokens.get(at..at + length)?)?;
            let mut meant = members.iter().filter(|member| names(&said, member));
            let value = meant.next().filter(|_| meant.next().is_none() && Some(at) != first)?;
            found.push(SaidChoice { range: framed(tokens, at..at + length), value: (*value).clone() });
            Some(length)
        });
        at += length.unwrap_or(1);
    }
    match found.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// The words of tokens without what separates them; `None` unless all of them are words. What is written as a value has its
/// place like any other value.
fn joined(tokens: &[IntentToken]) -> Option<String> {
    let text = |token: &IntentToken| match token {
        IntentToken::Word(word) if word.function == WordFunction::Nothing => None,
        IntentToken::Word(word) => Some(plain(&word.raw)),
        IntentToken::Literal(_) => None,
    };
    tokens.iter().map(text).collect::<Option<Vec<String>>>().map(|words| words.concat())
}

/// A text or a member without case, accents and separators.
fn plain(text: &str) -> String {
    fold(text).chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Whether the words name the member.
fn names(said: &str, member: &Value) -> bool {
    let Some(member) = member.as_str().map(plain).filter(|member| !member.is_empty()) else { return false };
    // A letter is an article or a pronoun rather than the name of a unit.
    let spelled = said == member && member.len() > 1;
    let same =
        SAME.iter().any(|group| group.contains(&said) && said.len() > 1 && group.contains(&member.as_str()));
    let meant = || said.len() > 2 && member.len() > 2 && concept(said) == concept(&member);
    spelled || same || meant()
}

/// The range with the preposition before it and the noun after it: `in ascending order`, `as YAML`.
fn framed(tokens: &[IntentToken], range: Range<usize>) -> Range<usize> {
    let word = |at: usize| match tokens.get(at) {
        Some(IntentToken::Word(word)) => Some(word),
        Some(IntentToken::Literal(_)) | None => None,
    };
    let is_frame = |word: &IntentWord| {
        FRAMES.contains(&word.concept.as_str()) || FRAMES.contains(&fold(&word.raw).trim_end_matches('s'))
    };
    let mut start = range.start;
    let before = |start: usize| start.checked_sub(1).and_then(word);
    // `par ordre décroissant`, `in the order`
    while before(start).is_some_and(|word| word.function == WordFunction::Nothing || is_frame(word)) {
        start -= 1;
    }
    let relates = |word: &IntentWord| match word.function {
        WordFunction::Role(role) => role & (table::IN | table::AS | table::TO | table::BY) != 0,
        _ => false,
    };
    start = match before(start) {
        Some(word) if relates(word) => start - 1,
        _ => range.start,
    };
    let end = if word(range.end).is_some_and(is_frame) { range.end + 1 } else { range.end };
    start..end
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::words::tokenize;
    use super::*;

    fn said(intent: &str, members: &[&str]) -> Option<String> {
        let found = said_choice(&tokenize(intent), &json!({ "enum": members }))?;
        Some(found.value.as_str().unwrap().to_owned())
    }

    #[test]
    fn members_are_said_in_words() {
        let orders = &["asc", "desc"][..];
        let cases = &["upper", "lower", "title", "camel", "snake"][..];
        for (intent, members, expected) in [
            ("sort a.csv descending", orders, Some("desc")),
            ("sort a.csv in ascending order", orders, Some("asc")),
            ("trie a.csv par ordre décroissant", orders, Some("desc")),
            ("put it in upper case", cases, Some("upper")),
            ("put it in snake_case", cases, Some("snake")),
            ("write it lowercase", cases, Some("lower")),
            ("mets-le en minuscules", cases, Some("lower")),
            ("save it as YAML", &["json", "yaml"], Some("yaml")),
            ("list only the folders", &["file", "directory"], Some("directory")),
            ("how warm is it in Fahrenheit", &["c", "f"], Some("f")),
        ] {
            assert_eq!(said(intent, members).as_deref(), expected, "{intent}");
        }
    }

    #[test]
    fn what_is_said_twice_or_not_at_all_is_open() {
        for (intent, members) in [
            ("sort a.csv", &["asc", "desc"][..]),
            ("sort ascending by name and descending by size", &["asc", "desc"]),
            ("convert it from upper to lower case", &["upper", "lower"]),
            ("describe a.csv", &["asc", "desc"]),
            ("title of the page", &["upper", "title"]),
            ("is it a file", &["a", "b"]),
            ("count the minutes", &["min", "max"]),
            ("is it warmer in \"Los Angeles\" than in Chicago", &["Chicago", "Los Angeles"]),
        ] {
            assert_eq!(said(intent, members), None, "{intent}");
        }
    }

    #[test]
    fn the_words_around_a_member_belong_to_it() {
        let tokens = tokenize("sort a.csv in ascending order by name");
        let found = said_choice(&tokens, &json!({ "enum": ["asc", "desc"] })).unwrap();
        assert_eq!(found.range, 2..5);
    }
}
