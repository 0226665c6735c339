//! Reads dates as they are written in intents, without a clock: what depends on today stays a text.

use std::sync::LazyLock;

use regex::Regex;

use super::words::fold;

/// How a date is written. Two dates of different shapes are not put in each other's place as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// `2026-11-16`.
    Day,
    /// `2026-11-16T09:00`.
    Instant,
    /// `16/11/2026`: which of the two is the day is for its writer to know.
    Slashed,
    /// With the name of a month, in English or in French.
    Month { french: bool, day: bool, year: bool },
    /// A time of day, and the sign it is written with: `:`, `m` for `am` and `pm`, or `h`.
    Clock(char),
    /// It depends on today: a day or a longer time, in English or in French.
    Relative { french: bool, day: bool },
}

/// A date as far as its text tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Read {
    /// How it is written.
    pub(super) shape: Shape,
    /// `2026-11-16`, where the text says year, month and day, and no more.
    pub(super) day: Option<String>,
}

/// What `text`, found as a date, says.
pub(super) fn read(text: &str) -> Read {
    let folded = fold(text);
    if let Some(day) = iso(&folded) {
        return day;
    }
    if let Some(found) = SLASHED.captures(&folded) {
        return Read { shape: Shape::Slashed, day: slashed(&found[1], &found[2], &found[3]) };
    }
    if CLOCK.is_match(&folded) {
        let sign = if folded.ends_with('m') {
            'm'
        } else {
            folded.chars().find(|c| ":h".contains(*c)).unwrap_or(':')
        };
        return Read { shape: Shape::Clock(sign), day: None };
    }
    named_month(&folded).unwrap_or_else(|| Read { shape: relative(&folded), day: None })
}

static ISO: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d{4})[-/](\d{2})[-/](\d{2})(.*)$"));
static SLASHED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d{1,2})[/.](\d{1,2})[/.](\d{4})$"));
static CLOCK: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d{1,2}:|\d{1,2} ?[ap]m|\d{1,2}h)"));
static WINDOW: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b(last|past|next|latest) \S+ (minute|hour|day|week|month|year)|\b\S+ (derni|proch)\S+ (minute|heure|jour|semaine|mois|an)|\bsince|\bdepuis",
    )
});

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the patterns are constant and tested")
}

/// Whether `intent` counts back or forth from now, so that a date made of it is another one tomorrow.
pub(super) fn moves(intent: &str) -> bool {
    let relative = |literal: &super::Literal| {
        literal.class == super::Class::Date && matches!(read(&literal.text).shape, Shape::Relative { .. })
    };
    WINDOW.is_match(&fold(intent)) || super::literals(intent).iter().any(relative)
}

fn relative(folded: &str) -> Shape {
    const DAYS: [&str; 9] =
        ["day", "tomorrow", "tonight", "hier", "demain", "aujourd'hui", "di", "soir", "matin"];
    const SPANS: [&str; 9] =
        ["week", "month", "year", "quarter", "ago", "night", "semaine", "mois", "il y a"];
    const FRENCH: [&str; 14] = [
        "hier", "demain", "aujourd", "dernier", "prochain", "passe", "preced", "en cours", "ce ", "cette ",
        "il y a", "midi", "minuit", "di",
    ];
    let among = |words: &[&str]| words.iter().any(|word| folded.contains(word));
    Shape::Relative { french: among(&FRENCH), day: among(&DAYS) && !among(&SPANS) }
}

fn iso(folded: &str) -> Option<Read> {
    let found = ISO.captures(folded)?;
    let day = format!("{}-{}-{}", &found[1], &found[2], &found[3]);
    Some(match &found[4] {
        "" => Read { shape: Shape::Day, day: Some(day) },
        _ => Read { shape: Shape::Instant, day: None },
    })
}

/// Only where no reader could take the month for the day.
fn slashed(first: &str, second: &str, year: &str) -> Option<String> {
    let (first, second): (u8, u8) = (first.parse().ok()?, second.parse().ok()?);
    match (first, second) {
        (13..=31, 1..=12) => Some(format!("{year}-{second:02}-{first:02}")),
        (1..=12, 13..=31) => Some(format!("{year}-{first:02}-{second:02}")),
        _ => None,
    }
}

fn named_month(folded: &str) -> Option<Read> {
    let mut numbers = folded.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let (month, french) = folded.split(|c: char| !c.is_alphabetic()).find_map(month)?;
    let (mut day, mut year) = (None, None);
    for digits in numbers.by_ref() {
        if digits.len() == 4 { year = Some(digits) } else { day = digits.parse::<u8>().ok() }
    }
    let shape = Shape::Month { french, day: day.is_some(), year: year.is_some() };
    let whole = year.zip(day).filter(|(_, day)| (1..=31).contains(day));
    Some(Read { shape, day: whole.map(|(year, day)| format!("{year}-{month:02}-{day:02}")) })
}

/// The number of a month, and whether its name is French.
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
