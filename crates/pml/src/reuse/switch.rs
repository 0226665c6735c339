//! Booleans that are said in words: `without header`, `case-insensitive`, `recursively`.
//!
//! The name of a parameter says what it switches and which way: `header` and `includeHidden` turn something on,
//! `ignoreCase` turns something off. Words of an intent say the same of the same thing. The value is whether both say it
//! the same way, so that opposites are never confused. Where an intent says it twice or in no known form, there is no
//! value.

use std::ops::Range;

use serde_json::Value;

use super::fold::fold;
use super::vocabulary as table;
use super::words::{IntentToken, IntentWord, WordFunction, concept, family};

/// Words that turn on what follows them.
const ON_BEFORE: &[&str] = &[
    "with",
    "including",
    "include",
    "includes",
    "keep",
    "keeping",
    "respecting",
    "respect",
    "considering",
    "showing",
    "allowing",
    "allow",
    "enabling",
    "avec",
];
/// Words that turn off what follows them.
const OFF_BEFORE: &[&str] = &[
    "without",
    "excluding",
    "exclude",
    "excludes",
    "ignoring",
    "ignore",
    "ignores",
    "skipping",
    "skip",
    "omitting",
    "omit",
    "disregarding",
    "regardless",
    "no",
    "except",
    "hiding",
    "hide",
    "disabling",
    "sans",
];
/// Words that turn on what they follow.
const ON_AFTER: &[&str] = &["sensitive", "sensitively", "included", "enabled", "on", "respected"];
/// Words that turn off what they follow.
const OFF_AFTER: &[&str] =
    &["insensitive", "insensitively", "excluded", "disabled", "off", "ignored", "omitted", "skipped"];
/// Words of names that turn something on.
const ON_NAMES: &[&str] = &[
    "include",
    "with",
    "show",
    "keep",
    "allow",
    "enable",
    "enabled",
    "use",
    "has",
    "is",
    "sensitive",
    "respect",
];
/// Words of names that turn something off.
const OFF_NAMES: &[&str] = &[
    "exclude",
    "without",
    "hide",
    "skip",
    "ignore",
    "omit",
    "no",
    "not",
    "disable",
    "disabled",
    "insensitive",
    "drop",
];

/// What an intent says of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SaidSwitch {
    /// The tokens that say it.
    pub(super) range: Range<usize>,
    /// The value of the parameter.
    pub(super) value: bool,
}

/// What the intent says of the boolean parameter `name`; `None` if nothing, or more than one thing.
pub(super) fn said_switch(tokens: &[IntentToken], name: &str) -> Option<SaidSwitch> {
    let (subject, turns_on) = read_name(name);
    let length = subject.len();
    if length == 0 {
        return None;
    }
    let mut found = Vec::new();
    for start in 0..(tokens.len() + 1).saturating_sub(length) {
        let range = start..start + length;
        let names = |(token, wanted): (&IntentToken, &String)| {
            word(token).is_some_and(|word| is_form_of(word, wanted))
        };
        if tokens[range.clone()].iter().zip(&subject).all(names)
            && let Some((range, on)) = polarity(tokens, range)
        {
            found.push(SaidSwitch { range, value: on == turns_on });
        }
    }
    match found.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// As [`said_switch`], for a parameter with that schema or value.
pub(super) fn said_of_value(tokens: &[IntentToken], name: &str, value: Option<&Value>) -> Option<SaidSwitch> {
    value.filter(|value| value.is_boolean()).and_then(|_| said_switch(tokens, name))
}

/// The concepts of what a name switches, and whether `true` turns it on.
fn read_name(name: &str) -> (Vec<String>, bool) {
    let mut spaced = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_uppercase() || c == '_' || c == '-' {
            spaced.push(' ');
        }
        spaced.extend(Some(c).filter(|c| *c != '_' && *c != '-'));
    }
    let mut subject = Vec::new();
    let mut turns_on = true;
    for part in spaced.split_whitespace().map(fold) {
        if OFF_NAMES.contains(&part.as_str()) {
            turns_on = !turns_on;
        } else if !ON_NAMES.contains(&part.as_str()) && part.chars().any(char::is_alphabetic) {
            subject.push(concept(&part));
        }
    }
    (subject, turns_on)
}

fn word(token: &IntentToken) -> Option<&IntentWord> {
    match token {
        IntentToken::Word(word) => Some(word),
        IntentToken::Literal(_) => None,
    }
}

/// Whether a word is a form of a concept: `headers` of `header`, `recursively` of `recursive`.
fn is_form_of(word: &IntentWord, wanted: &str) -> bool {
    let of_adverb = || {
        let folded = fold(&word.raw);
        folded.strip_suffix("ly").is_some_and(|rest| rest == wanted || family(rest) == family(wanted))
    };
    word.concept == wanted || of_adverb()
}

/// Whether the words around `subject` turn it on, and the range of all of them.
fn polarity(tokens: &[IntentToken], subject: Range<usize>) -> Option<(Range<usize>, bool)> {
    let folded = |at: usize| tokens.get(at).and_then(word).map(|word| fold(&word.raw));
    let is_in =
        |text: &Option<String>, list: &[&str]| text.as_deref().is_some_and(|text| list.contains(&text));
    // Articles and the preposition of `regardless of` stand between.
    let mut before = subject.start;
    while let Some(at) = before.checked_sub(1)
        && word(&tokens[at]).is_some_and(|word| {
            word.function == WordFunction::Nothing || matches!(word.function, WordFunction::Role(table::OF))
        })
    {
        before = at;
    }
    let marker = before.checked_sub(1);
    let ahead = marker.and_then(&folded);
    let behind = folded(subject.end);
    let (range, on) = if is_in(&behind, ON_AFTER) || is_in(&behind, OFF_AFTER) {
        (subject.start..subject.end + 1, is_in(&behind, ON_AFTER))
    } else if let Some(marker) = marker.filter(|_| is_in(&ahead, ON_BEFORE) || is_in(&ahead, OFF_BEFORE)) {
        (marker..subject.end, is_in(&ahead, ON_BEFORE))
    } else if tokens[subject.clone()].iter().filter_map(word).all(|word| fold(&word.raw).ends_with("ly")) {
        (subject, true)
    } else {
        return None;
    };
    // `not recursively`, `not case-sensitive`
    let negated = range
        .start
        .checked_sub(1)
        .filter(|at| word(&tokens[*at]).is_some_and(|word| word.function == WordFunction::Negation));
    Some(match negated {
        Some(at) => (at..range.end, !on),
        None => (range, on),
    })
}

#[cfg(test)]
mod tests {
    use super::super::words::tokenize;
    use super::*;

    fn said(intent: &str, name: &str) -> Option<bool> {
        said_switch(&tokenize(intent), name).map(|said| said.value)
    }

    #[test]
    fn booleans_are_said_in_words() {
        for (intent, name, expected) in [
            ("read a.csv without header", "header", Some(false)),
            ("read a.csv without a header", "header", Some(false)),
            ("read a.csv with headers", "header", Some(true)),
            ("read a.csv with header", "noHeader", Some(false)),
            ("read a.csv, no header", "has_header", Some(false)),
            ("find x case-insensitive", "ignoreCase", Some(true)),
            ("find x case-sensitive", "ignoreCase", Some(false)),
            ("find x case-insensitively", "caseSensitive", Some(false)),
            ("find x, ignoring case", "ignoreCase", Some(true)),
            ("find x, ignoring the case", "caseInsensitive", Some(true)),
            ("find x regardless of case", "ignoreCase", Some(true)),
            ("find x, not case-sensitive", "ignoreCase", Some(true)),
            ("delete the folder recursively", "recursive", Some(true)),
            ("delete the folder non-recursively", "recursive", Some(false)),
            ("delete the folder, not recursively", "recursive", Some(false)),
            ("list the files including hidden files", "includeHidden", Some(true)),
            ("list the files excluding hidden files", "includeHidden", Some(false)),
            ("list the files without hidden ones", "showHidden", Some(false)),
            ("list the files with hidden ones", "excludeHidden", Some(false)),
            ("list the files with cache disabled", "useCache", Some(false)),
        ] {
            assert_eq!(said(intent, name), expected, "{intent} / {name}");
        }
    }

    #[test]
    fn what_is_not_said_or_said_twice_is_open() {
        for (intent, name) in [
            ("what is the header of a.csv", "header"),
            ("read a.csv", "header"),
            ("with header for a.csv and without header for b.csv", "header"),
            ("in any case read it", "ignoreCase"),
            ("append the line to a.txt", "append"),
            ("list the hidden files", "includeHidden"),
            ("read it", "is"),
        ] {
            assert_eq!(said(intent, name), None, "{intent} / {name}");
        }
    }
}
