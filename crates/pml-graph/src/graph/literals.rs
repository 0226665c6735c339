//! Finds the literal values of a request: quoted texts, numbers, dates, addresses, names.
//!
//! Literals are found by their look alone, so that argument binding knows what the request answers itself. Nothing is
//! interpreted: a literal is a range of the text and a look.

use std::ops::Range;

use super::fields::{self, FieldKind, InputField};

/// What a literal looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiteralLook {
    /// Text in quotes or brackets.
    Quoted,
    /// A number, possibly an amount of money or a percentage.
    Number,
    /// A date or a time of day.
    Date,
    /// A web address.
    Url,
    /// An email address.
    Email,
    /// A file path.
    Path,
    /// A phone number.
    Phone,
    /// A time zone, such as `Europe/Paris`.
    Zone,
    /// A capitalised word that looks like a proper name.
    Proper,
}

/// A literal value in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLiteral {
    /// Byte range in the text.
    pub span: Range<usize>,
    /// Kind of literal.
    pub look: LiteralLook,
}

/// Every literal in `text`, in order.
pub fn find_literals(text: &str) -> Vec<RequestLiteral> {
    let mut found: Vec<RequestLiteral> = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let next = literal_at(text, at, c);
        match next {
            Some((end, look)) => {
                found.push(RequestLiteral { span: at..end, look });
                at = end;
            }
            None if is_word(c) => at = word_end(text, at),
            None => at += c.len_utf8(),
        }
    }
    join_names(text, found)
}

/// The literal that starts at `at`, which is not within a word.
fn literal_at(text: &str, at: usize, c: char) -> Option<(usize, LiteralLook)> {
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
        .then(|| (word_end(text, at), LiteralLook::Proper))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word_end(text: &str, at: usize) -> usize {
    text[at..].find(|c| !is_word(c)).map_or(text.len(), |length| at + length)
}

/// End of the chunk up to the next space, without trailing punctuation.
fn chunk_end(text: &str, at: usize) -> usize {
    let end = text[at..].find(char::is_whitespace).map_or(text.len(), |length| at + length);
    at + text[at..end].trim_end_matches([',', '.', ';', ':', '!', '?', ')', ']', '}', '"', '\'']).len()
}

/// First components of time zones in the IANA database.
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

fn chunk_look(chunk: &str) -> Option<LiteralLook> {
    if is_zone(chunk) {
        return Some(LiteralLook::Zone);
    }
    if chunk.contains("://") || chunk.starts_with("www.") {
        return Some(LiteralLook::Url);
    }
    if chunk.starts_with('/') && chunk.len() > 2 {
        return Some(LiteralLook::Path);
    }
    let (name, host) = chunk.split_once('@')?;
    (!name.is_empty() && host.contains('.')).then_some(LiteralLook::Email)
}

/// End of the quoted or bracketed text from `at`.
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

/// Look of quoted text, which may still be an address, a date or a phone number.
fn quoted_look(rest: &str) -> LiteralLook {
    let inner = rest.trim_end_matches(['\'', '"', '”', '»', ']', '}']);
    let look = match inner.chars().next() {
        Some(c) if c.is_ascii_digit() || c == '+' => Some(number(inner, 0)),
        Some(_) => chunk_look(inner).map(|look| (inner.len(), look)),
        None => None,
    };
    match look {
        Some((end, look)) if end == inner.len() && look != LiteralLook::Number => look,
        _ => LiteralLook::Quoted,
    }
}

/// The number, date or phone number that starts at `at`.
fn number(text: &str, at: usize) -> (usize, LiteralLook) {
    let numeric = |c: char| c.is_ascii_digit() || matches!(c, '-' | '/' | ':' | '+' | '.' | ',');
    let end = text[at..].find(|c| !numeric(c)).map_or(text.len(), |length| at + length);
    let run = text[at..end].trim_end_matches(['-', '/', ':', '+', '.', ',']);
    let end = at + run.len();
    let digits = run.bytes().filter(u8::is_ascii_digit).count();
    let groups: Vec<&str> = run.split(['-', '/', ':']).collect();
    let dated = run.contains(':') || (groups.len() == 3 && groups.iter().any(|group| group.len() == 4));
    if dated && groups[0].len() != 3 {
        return (date_end(text, end), LiteralLook::Date);
    }
    if let Some(end) = month_after(text, end) {
        return (end, LiteralLook::Date);
    }
    if run.starts_with('+') || digits >= 9 || (run.contains('-') && digits >= 7) {
        return (end, LiteralLook::Phone);
    }
    // A dash after a number begins something else: `2000-pound`, `100-200`.
    let plain = run.find(['-', '/']).map_or(end, |length| at + length);
    (plain, LiteralLook::Number)
}

/// End of a date including a following time of day and `am` or `pm`.
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

/// End of the day and year that follow a month: numbers, each with at most a comma and a space before it.
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

/// Capitalised words that are not names.
fn is_plain(word: &str) -> bool {
    matches!(word, "I" | "SMS" | "API" | "ID" | "IDs" | "URL" | "JSON" | "AM" | "PM")
}

/// Joins names of several words, and months with their days.
fn join_names(text: &str, found: Vec<RequestLiteral>) -> Vec<RequestLiteral> {
    let mut joined: Vec<RequestLiteral> = Vec::new();
    for literal in found {
        if let Some(last) = joined.last_mut() {
            if literal.span.start < last.span.end {
                continue;
            }
            let between = &text[last.span.end..literal.span.start];
            if last.look == LiteralLook::Proper && literal.look == LiteralLook::Proper && between == " " {
                last.span.end = literal.span.end;
                continue;
            }
            let month = last.look == LiteralLook::Proper && is_month(&text[last.span.clone()]);
            if month && literal.look == LiteralLook::Number && between == " " {
                *last = RequestLiteral {
                    span: last.span.start..year_end(text, last.span.end),
                    look: LiteralLook::Date,
                };
                continue;
            }
        }
        joined.push(literal);
    }
    joined
}

/// Probability from 0 to 1 that a value of this look belongs to the parameter, by looks alone.
pub(super) fn suitability(look: LiteralLook, input: &InputField) -> f32 {
    let has = |words: &[&str]| input.words.iter().any(|word| words.contains(&word.as_str()));
    let dated = has(&["date", "time", "day", "birthdat", "timestamp", "year", "datetim"]);
    let number = input.kind == FieldKind::Number;
    match look {
        _ if input.kind == FieldKind::Boolean => 0.0,
        LiteralLook::Number if number => 1.0,
        LiteralLook::Number => 0.3,
        LiteralLook::Date if dated => 1.0,
        _ if number => 0.0,
        LiteralLook::Email if has(&["email", "mail"]) => 1.0,
        LiteralLook::Url if has(&["url", "uri", "link", "websit"]) => 1.0,
        LiteralLook::Path if has(&["path", "file"]) => 1.0,
        LiteralLook::Zone if has(&["timezon", "zone", "tz"]) => 1.0,
        LiteralLook::Zone => 0.0,
        LiteralLook::Phone if has(&["phone", "number", "mobil"]) => 1.0,
        LiteralLook::Path => 0.3,
        LiteralLook::Date | LiteralLook::Email | LiteralLook::Url | LiteralLook::Phone => 0.2,
        LiteralLook::Quoted | LiteralLook::Proper if dated || has(&["phone", "email", "url"]) => 0.1,
        LiteralLook::Quoted | LiteralLook::Proper => 0.6,
    }
}

/// Share of the parameter's words that stand next to the value: `height of 1.7`, `5 pounds`.
pub(super) fn share_named_nearby(text: &str, at: &Range<usize>, input: &InputField) -> f32 {
    let before = fields::name_words(&text[floor(text, at.start.saturating_sub(45))..at.start]);
    let after = fields::name_words(&text[at.end..floor(text, (at.end + 25).min(text.len()))]);
    let before = &before[before.len().saturating_sub(4)..];
    // A preposition starts a new phrase: in `the sentence in French`, French is not the sentence.
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

/// Whether a preposition stands directly before the value, so that it is not the object of the verb. In a series of
/// values the words before the first one count.
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
