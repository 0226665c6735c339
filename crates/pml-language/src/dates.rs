//! Parses dates in intents without a clock: a date that depends on today stays text.

use std::sync::LazyLock;

use regex::Regex;

use crate::fold::fold;

/// The form in which a date is written. Dates of different forms never replace each other as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateForm {
    /// `2026-11-16`.
    Day,
    /// `2026-11-16T09:00`.
    Instant,
    /// `16/11/2026`: the text alone does not tell which number is the day.
    Slashed,
    /// With the name of a month.
    Month {
        /// Whether the name is French.
        french: bool,
        /// Whether the day is given.
        day: bool,
        /// Whether the year is given.
        year: bool,
    },
    /// A time of day, with the character that marks it: `:`, `m` for `am` and `pm`, or `h`.
    Clock(char),
    /// Relative to today.
    Relative {
        /// Whether the words are French.
        french: bool,
        /// Whether it is a day, not a longer period.
        day: bool,
    },
}

/// A date, as far as its text determines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedDate {
    /// The form in which it is written.
    pub shape: DateForm,
    /// `2026-11-16`; `None` unless the text gives year, month and day and nothing else.
    pub day: Option<String>,
}

/// The day that `text` names, as `2026-11-16`; `None` unless it gives year, month and day and nothing else.
pub fn parse_day(text: &str) -> Option<String> {
    parse_date(text).day
}

/// Parses `text`, which was recognised as a date.
pub fn parse_date(text: &str) -> ParsedDate {
    let folded = fold(text);
    if let Some(day) = iso(&folded) {
        return day;
    }
    if let Some(found) = SLASHED.captures(&folded) {
        return ParsedDate { shape: DateForm::Slashed, day: slashed(&found[1], &found[2], &found[3]) };
    }
    if CLOCK.is_match(&folded) {
        let sign = if folded.ends_with('m') {
            'm'
        } else {
            folded.chars().find(|c| ":h".contains(*c)).unwrap_or(':')
        };
        return ParsedDate { shape: DateForm::Clock(sign), day: None };
    }
    named_month(&folded).unwrap_or_else(|| ParsedDate { shape: relative(&folded), day: None })
}

static ISO: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d{4})[-/](\d{2})[-/](\d{2})(.*)$"));
static SLASHED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d{1,2})[/.](\d{1,2})[/.](\d{4})$"));
static CLOCK: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d{1,2}:|\d{1,2} ?[ap]m|\d{1,2}h)"));
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the patterns are constant and tested")
}

fn relative(folded: &str) -> DateForm {
    const DAYS: [&str; 9] =
        ["day", "tomorrow", "tonight", "hier", "demain", "aujourd'hui", "di", "soir", "matin"];
    const SPANS: [&str; 9] =
        ["week", "month", "year", "quarter", "ago", "night", "semaine", "mois", "il y a"];
    const FRENCH: [&str; 14] = [
        "hier", "demain", "aujourd", "dernier", "prochain", "passe", "preced", "en cours", "ce ", "cette ",
        "il y a", "midi", "minuit", "di",
    ];
    let among = |words: &[&str]| words.iter().any(|word| folded.contains(word));
    DateForm::Relative { french: among(&FRENCH), day: among(&DAYS) && !among(&SPANS) }
}

fn iso(folded: &str) -> Option<ParsedDate> {
    let found = ISO.captures(folded)?;
    let day = format!("{}-{}-{}", &found[1], &found[2], &found[3]);
    Some(match &found[4] {
        "" => ParsedDate { shape: DateForm::Day, day: Some(day) },
        _ => ParsedDate { shape: DateForm::Instant, day: None },
    })
}

/// The day; `None` where the month could be taken for the day.
fn slashed(first: &str, second: &str, year: &str) -> Option<String> {
    let (first, second): (u8, u8) = (first.parse().ok()?, second.parse().ok()?);
    match (first, second) {
        (13..=31, 1..=12) => Some(format!("{year}-{second:02}-{first:02}")),
        (1..=12, 13..=31) => Some(format!("{year}-{first:02}-{second:02}")),
        _ => None,
    }
}

fn named_month(folded: &str) -> Option<ParsedDate> {
    let mut numbers = folded.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let (month, french) = folded.split(|c: char| !c.is_alphabetic()).find_map(month)?;
    let (mut day, mut year) = (None, None);
    for digits in numbers.by_ref() {
        if digits.len() == 4 { year = Some(digits) } else { day = digits.parse::<u8>().ok() }
    }
    let shape = DateForm::Month { french, day: day.is_some(), year: year.is_some() };
    let whole = year.zip(day).filter(|(_, day)| (1..=31).contains(day));
    Some(ParsedDate { shape, day: whole.map(|(year, day)| format!("{year}-{month:02}-{day:02}")) })
}

/// The number of a month (from 1), and whether its name is French.
fn month(word: &str) -> Option<(usize, bool)> {
    const ENGLISH: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    const FRENCH: [&str; 12] = [
        "janvier",
        "fevrier",
        "mars",
        "avril",
        "mai",
        "juin",
        "juillet",
        "aout",
        "septembre",
        "octobre",
        "novembre",
        "decembre",
    ];
    if let Some(at) = FRENCH.iter().position(|name| *name == word) {
        return Some((at + 1, true));
    }
    ENGLISH.iter().position(|name| word.starts_with(name)).map(|at| (at + 1, false))
}
