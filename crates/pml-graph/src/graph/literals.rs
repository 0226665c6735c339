//! The values that a request gives by itself: quoted texts, numbers, dates, addresses, names.
//!
//! They are found by their look alone, so that whoever fills in arguments knows which of them the
//! request has already answered. Nothing is interpreted: a literal is a place in the text and a look.

use std::ops::Range;

use super::fields::{self, Input, Kind};

/// What a value in a request looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Between quotes or brackets.
    Quoted,
    /// A number, perhaps an amount of money or a share.
    Number,
    /// A date or a time of day.
    Date,
    /// An address of the web.
    Url,
    /// An address of mail.
    Email,
    /// A place in a file system.
    Path,
    /// A number to call.
    Phone,
    /// A time zone, such as `Europe/Paris`.
    Zone,
    /// A word written like a name.
    Proper,
}

/// A value that a request gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Literal {
    /// Where it is in the text, in bytes.
    pub at: Range<usize>,
    /// What it looks like.
    pub look: Look,
}

/// Every value in `text`, in order.
pub fn literals(text: &str) -> Vec<Literal> {
    let mut found: Vec<Literal> = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let next = literal_at(text, at, c);
        match next {
            Some((end, look)) => {
                found.push(Literal { at: at..end, look });
                at = end;
            }
            None if is_word(c) => at = word_end(text, at),
            None => at += c.len_utf8(),
        }
    }
    join_names(text, found)
}

/// The value that starts at `at`, which is not within a word.
fn literal_at(text: &str, at: usize, c: char) -> Option<(usize, Look)> {
    if let Some(end) = quoted(text, at, c) {
        return Some((end, quoted_look(&text[at + c.len_utf8()..end])));
    }
    if is_word(c) || c == '/' || c == '+' {
        let end = chunk_end(text, at);
        let chunk = &text[at..end];
        if let Some(look) = chunk_look(chunk) {
            return Some((end, look));
        }
    }
    if c.is_ascii_digit() || (c == '+' && text[at + 1..].starts_with(|c: char| c.is_ascii_digit())) {
        return Some(number(text, at));
    }
    (c.is_uppercase() && !starts_sentence(text, at) && !is_plain(&text[at..word_end(text, at)]))
        .then(|| (word_end(text, at), Look::Proper))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word_end(text: &str, at: usize) -> usize {
    text[at..].find(|c| !is_word(c)).map_or(text.len(), |length| at + length)
}

/// To the next space, without the punctuation before it.
fn chunk_end(text: &str, at: usize) -> usize {
    let end = text[at..].find(char::is_whitespace).map_or(text.len(), |length| at + length);
    at + text[at..end].trim_end_matches([',', '.', ';', ':', '!', '?', ')', ']', '}', '"', '\'']).len()
}

/// What time zones of the IANA database begin with.
const AREAS: [&str; 11] = [
    "Africa",
    "America",
    "Antarctica",
    "Arctic",
    "Asia",
    "Atlantic",
    "Australia",
    "Europe",
    "Indian",
    "Pacific",
    "Etc",
];

fn is_zone(chunk: &str) -> bool {
    chunk.split_once('/').is_some_and(|(area, place)| AREAS.contains(&area) && !place.is_empty())
        || matches!(chunk, "UTC" | "GMT")
}

fn chunk_look(chunk: &str) -> Option<Look> {
    if is_zone(chunk) {
        return Some(Look::Zone);
    }
    if chunk.contains("://") || chunk.starts_with("www.") {
        return Some(Look::Url);
    }
    if chunk.starts_with('/') && chunk.len() > 2 {
        return Some(Look::Path);
    }
    let (name, host) = chunk.split_once('@')?;
    (!name.is_empty() && host.contains('.')).then_some(Look::Email)
}

/// The end of what is between quotes or brackets from `at`.
fn quoted(text: &str, at: usize, open: char) -> Option<usize> {
    let close = match open {
        '"' => '"',
        '\'' => '\'',
        '“' => '”',
        '«' => '»',
        '[' => ']',
        '{' => '}',
        _ => return None,
    };
    let start = at + open.len_utf8();
    for (offset, c) in text[start..].char_indices() {
        let end = start + offset + c.len_utf8();
        // An apostrophe within a word closes nothing.
        let within = c == '\'' && text[end..].starts_with(char::is_alphanumeric);
        if c == close && !within {
            return (offset > 0).then_some(end);
        }
    }
    None
}

/// What is between quotes may still show what it is: an address, a date, a number to call.
fn quoted_look(rest: &str) -> Look {
    let inner = rest.trim_end_matches(['\'', '"', '”', '»', ']', '}']);
    let look = match inner.chars().next() {
        Some(c) if c.is_ascii_digit() || c == '+' => Some(number(inner, 0)),
        Some(_) => chunk_look(inner).map(|look| (inner.len(), look)),
        None => None,
    };
    match look {
        Some((end, look)) if end == inner.len() && look != Look::Number => look,
        _ => Look::Quoted,
    }
}

/// The number, date or number to call that starts at `at`.
fn number(text: &str, at: usize) -> (usize, Look) {
    let numeric = |c: char| c.is_ascii_digit() || matches!(c, '-' | '/' | ':' | '+' | '.' | ',');
    let end = text[at..].find(|c| !numeric(c)).map_or(text.len(), |length| at + length);
    let run = text[at..end].trim_end_matches(['-', '/', ':', '+', '.', ',']);
    let end = at + run.len();
    let digits = run.bytes().filter(u8::is_ascii_digit).count();
    let groups: Vec<&str> = run.split(['-', '/', ':']).collect();
    let dated = run.contains(':') || (groups.len() == 3 && groups.iter().any(|group| group.len() == 4));
    if dated && groups[0].len() != 3 {
        return (date_end(text, end), Look::Date);
    }
    if let Some(end) = month_after(text, end) {
        return (end, Look::Date);
    }
    if run.starts_with('+') || digits >= 9 || (run.contains('-') && digits >= 7) {
        return (end, Look::Phone);
    }
    // A dash that follows a number begins something else: `2000-pound`, `100-200`.
    let plain = run.find(['-', '/']).map_or(end, |length| at + length);
    (plain, Look::Number)
}

/// Past a time of day that follows a date, and `am` or `pm`.
fn date_end(text: &str, end: usize) -> usize {
    let rest = text[end..].strip_prefix([' ', 'T']);
    let time = rest.map_or("", |rest| {
        &rest[..rest.find(|c: char| !(c.is_ascii_digit() || c == ':')).unwrap_or(rest.len())]
    });
    if time.contains(':') { end + 1 + time.len() } else { end }
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The end of a date such as `1st of January, 2023` whose day ends at `end`.
fn month_after(text: &str, end: usize) -> Option<usize> {
    let rest = &text[end..];
    let suffix = ["st", "nd", "rd", "th"].into_iter().find(|suffix| rest.starts_with(suffix));
    let mut at = end + suffix.map_or(0, str::len) + 1;
    if text.get(at..)?.starts_with("of ") {
        at += 3;
    }
    let month = text.get(at..word_end(text, at.min(text.len())))?;
    is_month(month).then(|| year_end(text, at + month.len()))
}

fn is_month(word: &str) -> bool {
    let lower = word.to_lowercase();
    lower.len() >= 3 && MONTHS.iter().any(|month| lower.starts_with(month)) && word.len() <= 9
}

/// Past the day and year that follow a month: numbers, with at most a comma and a space before each.
fn year_end(text: &str, from: usize) -> usize {
    let mut end = from;
    for _ in 0..2 {
        let rest = &text[end..];
        let number = rest.trim_start_matches([' ', ',']);
        let gap = rest.len() - number.len();
        if gap > 2 || !number.starts_with(|c: char| c.is_ascii_digit()) {
            break;
        }
        end = word_end(text, end + gap);
    }
    end
}

fn starts_sentence(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end();
    before.is_empty() || before.ends_with(['.', '!', '?', ':', '\n', '"'])
}

/// Words written in capitals that are no names.
fn is_plain(word: &str) -> bool {
    matches!(word, "I" | "SMS" | "API" | "ID" | "IDs" | "URL" | "JSON" | "AM" | "PM")
}

/// Puts names of several words, and months with their days, together.
fn join_names(text: &str, found: Vec<Literal>) -> Vec<Literal> {
    let mut joined: Vec<Literal> = Vec::new();
    for literal in found {
        if let Some(last) = joined.last_mut() {
            if literal.at.start < last.at.end {
                continue;
            }
            let between = &text[last.at.end..literal.at.start];
            if last.look == Look::Proper && literal.look == Look::Proper && between == " " {
                last.at.end = literal.at.end;
                continue;
            }
            let month = last.look == Look::Proper && is_month(&text[last.at.clone()]);
            if month && literal.look == Look::Number && between == " " {
                *last = Literal { at: last.at.start..year_end(text, last.at.end), look: Look::Date };
                continue;
            }
        }
        joined.push(literal);
    }
    joined
}

/// How likely a value of this look is meant for the parameter, from 0 to 1, by looks alone.
pub(super) fn suits(look: Look, input: &Input) -> f32 {
    let has = |words: &[&str]| input.words.iter().any(|word| words.contains(&word.as_str()));
    let dated = has(&["date", "time", "day", "birthdat", "timestamp", "year", "datetim"]);
    let number = input.kind == Kind::Number;
    match look {
        _ if input.kind == Kind::Boolean => 0.0,
        Look::Number if number => 1.0,
        Look::Number => 0.3,
        Look::Date if dated => 1.0,
        _ if number => 0.0,
        Look::Email if has(&["email", "mail"]) => 1.0,
        Look::Url if has(&["url", "uri", "link", "websit"]) => 1.0,
        Look::Path if has(&["path", "file"]) => 1.0,
        Look::Zone if has(&["timezon", "zone", "tz"]) => 1.0,
        Look::Zone => 0.0,
        Look::Phone if has(&["phone", "number", "mobil"]) => 1.0,
        Look::Path => 0.3,
        Look::Date | Look::Email | Look::Url | Look::Phone => 0.2,
        Look::Quoted | Look::Proper if dated || has(&["phone", "email", "url"]) => 0.1,
        Look::Quoted | Look::Proper => 0.6,
    }
}

/// What share of the parameter's words stand next to the value: `height of 1.7`, `5 pounds`.
pub(super) fn named_nearby(text: &str, at: &Range<usize>, input: &Input) -> f32 {
    let before = fields::words(&text[floor(text, at.start.saturating_sub(45))..at.start]);
    let after = fields::words(&text[at.end..floor(text, (at.end + 25).min(text.len()))]);
    let before = &before[before.len().saturating_sub(4)..];
    // A preposition starts something new: in `the sentence in French`, French is not the sentence.
    let parts = |word: &String| {
        matches!(word.as_str(), "in" | "into" | "from" | "with" | "by" | "using" | "and" | "to")
            && !input.words.contains(word)
    };
    let before = before.rsplit(parts).next().unwrap_or_default();
    let after = after.split(parts).next().unwrap_or_default();
    let near = |word: &&String| before.contains(word) || after.iter().take(2).any(|other| other == *word);
    #[expect(clippy::cast_precision_loss, reason = "names have few words")]
    let share = input.words.iter().filter(near).count() as f32 / input.words.len().max(1) as f32;
    share
}

/// Whether a preposition stands right before the value, so that it is not what the verb is about; in a
/// row of values, what stands before the first.
pub(super) fn follows_preposition(
    text: &str,
    at: &Range<usize>,
    before: Option<(&Range<usize>, bool)>,
) -> bool {
    if let Some((last, aside)) = before
        && matches!(text[last.end..at.start].trim(), "," | "and" | ", and" | "or")
    {
        return aside;
    }
    let before = text[floor(text, at.start.saturating_sub(30))..at.start].to_lowercase();
    let word = before.split(|c: char| !c.is_alphanumeric()).rfind(|word| !word.is_empty());
    matches!(
        word.unwrap_or_default(),
        "to" | "into" | "from" | "with" | "using" | "in" | "at" | "by" | "on" | "as" | "of" | "between"
    )
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
