//! Finds the literals of an intent: what stands for itself and would be another value another time.
//!
//! Reads text and nothing else: which parameter a literal belongs to is decided elsewhere. What is
//! recognised first wins, so the kinds stand in the order from the most to the least certain.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::words::fold;
use super::{dates, kinds};

/// What kind of thing a literal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Text in quotation marks.
    Quoted,
    /// An address with its scheme.
    Url,
    /// A host name or network address without a scheme.
    Host,
    /// An electronic mail address.
    Email,
    /// A time zone, such as `Europe/Paris`.
    Zone,
    /// A date, a time of day, or words for one (`yesterday`).
    Date,
    /// A key, a hash, a number with a `#`.
    Id,
    /// A version, such as `v1.2.3`.
    Version,
    /// A channel, such as `#general`.
    Channel,
    /// A person by handle, such as `@bob`.
    Handle,
    /// A file, a folder, a glob, a repository.
    Path,
    /// A number with its unit, if one is written to it.
    Number,
    /// A place in a row: `3rd`.
    Ordinal,
    /// Capitalised words in the middle of a sentence.
    Name,
}

/// A literal found in an intent.
#[derive(Debug, Clone, PartialEq)]
pub struct Literal {
    /// What kind of thing it is.
    pub class: Class,
    /// As it was written, without the quotation marks.
    pub text: String,
    /// What it stands for: a number, a date as `2026-11-16` where the text says all of it, else the text.
    pub value: Value,
    /// Where it stands, with its quotation marks.
    pub span: Range<usize>,
}

impl Literal {
    /// The literal without the sign that marks its class: `general` for `#general`.
    pub(super) fn bare(&self) -> &str {
        match self.class {
            Class::Channel | Class::Id => self.text.trim_start_matches('#'),
            Class::Handle => self.text.trim_start_matches('@'),
            _ => &self.text,
        }
    }

    /// What is written to a number: `%`, `€`, `MB`.
    pub(super) fn unit(&self) -> String {
        match self.class {
            Class::Number if !self.text.starts_with(char::is_alphabetic) => self
                .text
                .chars()
                .filter(|c| !c.is_ascii_digit() && !" ,.+-\u{a0}\u{202f}".contains(*c))
                .collect(),
            _ => String::new(),
        }
    }

    /// Whether both say the same, however it is spelled.
    pub(super) fn same(&self, other: &Literal) -> bool {
        match (self.class, other.class) {
            (Class::Number, Class::Number) => self.value == other.value && self.unit() == other.unit(),
            (Class::Date, Class::Date) => self.value == other.value || fold(&self.text) == fold(&other.text),
            (Class::Path, Class::Path) => plain_path(&self.text) == plain_path(&other.text),
            (Class::Quoted | Class::Url | Class::Version | Class::Id, _) => self.text == other.text,
            (Class::Name, Class::Name) => fold(&self.text) == fold(&other.text),
            (mine, theirs) => mine == theirs && self.text.to_lowercase() == other.text.to_lowercase(),
        }
    }
}

fn plain_path(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}

/// The literals of `intent`, in the order in which they stand.
pub fn literals(intent: &str) -> Vec<Literal> {
    let mut found: Vec<Literal> = Vec::new();
    for (class, pattern) in PATTERNS.iter() {
        for captures in pattern.captures_iter(intent) {
            let whole = captures.get(0).expect("a match has a whole");
            let inner = (1..captures.len()).find_map(|group| captures.get(group));
            if let Some(literal) =
                read(*class, intent, whole.range(), inner.map_or(whole.as_str(), |m| m.as_str()))
            {
                add(&mut found, literal);
            }
        }
    }
    for literal in names(intent) {
        add(&mut found, literal);
    }
    found
}

/// Keeps `literal` unless something more certain stands there.
fn add(found: &mut Vec<Literal>, literal: Literal) {
    let at = found.partition_point(|other| other.span.start < literal.span.start);
    let after = found.get(at).is_none_or(|next| literal.span.end <= next.span.start);
    let before = at == 0 || found[at - 1].span.end <= literal.span.start;
    if before && after {
        found.insert(at, literal);
    }
}

const MONTHS: &str = "january|february|march|april|may|june|july|august|september|october|november|december|\
    jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec|janvier|février|fevrier|mars|avril|mai|juin|juillet|août|aout|\
    septembre|octobre|novembre|décembre|decembre";
const DAYS: &str = "monday|tuesday|wednesday|thursday|friday|saturday|sunday|lundi|mardi|mercredi|jeudi|vendredi|\
    samedi|dimanche";

/// The letters, by the blocks that have them and hardly anything else: each class of Unicode's own takes a hundred kilobytes
/// in every pattern that has it.
const LETTERS: &str = r"A-Za-z\u{aa}\u{b5}\u{ba}\u{c0}-\u{d6}\u{d8}-\u{f6}\u{f8}-\u{1fff}\u{2c00}-\u{2dff}\u{3040}-\u{d7ff}\u{f900}-\u{fdff}\u{fe70}-\u{fefc}\u{ff21}-\u{ffdc}\u{10000}-\u{1efff}\u{20000}-\u{3ffff}";

/// A pattern in which letters and digits, inside of a class, are those that are likely.
fn regex(pattern: &str) -> Regex {
    let pattern = pattern
        .replace(r"\w", r"\p{L}\p{N}_")
        .replace(r"\d", "[0-9]")
        .replace(r"\p{L}", LETTERS)
        .replace(r"\p{N}", "0-9");
    Regex::new(&pattern).expect("the patterns are constant and tested")
}

static PATTERNS: LazyLock<Vec<(Class, Regex)>> = LazyLock::new(|| {
    let relative = format!(
        r"(?i)\b(?:(?:the )?day (?:before yesterday|after tomorrow)|yesterday|today|tonight|tomorrow|avant-hier|hier|\
aujourd['’]hui|après-demain|demain|ce (?:soir|matin|mois|week-end)|cette (?:semaine|année|nuit)|\
(?:this|last|next|past|previous|coming|current) (?:weekend|week|month|year|quarter|night|morning|afternoon|evening|hour|day|{DAYS})|\
(?:la |le |l['’])?(?:semaine|mois|année|an|trimestre|week-end|nuit|{DAYS}) (?:derni[eè]re?|prochaine?|pass[ée]e?|pr[ée]c[ée]dente?|en cours)|\
\d+ (?:minutes?|hours?|days?|weeks?|months?|years?) ago|il y a \d+ (?:minutes?|heures?|jours?|semaines?|mois|ans?)|{DAYS}|noon|midnight|midi|minuit)\b"
    )
    .replace("\\\n", "");
    let month_day = format!(
        r"(?i)\b(?:(?:{MONTHS})\.? \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}}\b)?|\d{{1,2}}(?:st|nd|rd|th|er)? (?:of )?(?:{MONTHS})\b(?:,? \d{{4}}\b)?|(?:{MONTHS}) \d{{4}}\b)"
    );
    let number_word = kinds::number_pattern();
    [
        (Class::Quoted, r#""([^"\n]+)"|“([^”\n]+)”|«\s*([^»\n]+?)\s*»|`([^`\n]+)`|‘([^’\n]+)’"#),
        (Class::Quoted, r"(?:^|[\s(\[:])('[^'\n]+')"),
        (Class::Url, r#"(?i)\b(?:[a-z][a-z0-9+.-]*://|www\.)[^\s"'<>«»“”`]+"#),
        (Class::Email, r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
        (
            Class::Zone,
            r"\b(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Europe|Indian|Pacific|Etc)/[A-Za-z_0-9+-]+(?:/[A-Za-z_]+)?|\b(?:UTC|GMT)(?:[+-]\d{1,2}(?::?\d{2})?)?\b|\b(?:CES?T|E[SD]T|P[SD]T|BST|JST)\b",
        ),
        (Class::Id, r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
        (
            Class::Date,
            r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?|\b\d{1,2}[/.]\d{1,2}[/.]\d{4}\b|\b\d{4}/\d{2}/\d{2}\b|\b\d{4}-(?:W\d{2}|\d{2})\b|\bQ[1-4](?: \d{4})?\b",
        ),
        (Class::Date, &month_day),
        (Class::Date, &relative),
        (
            Class::Date,
            r"(?i)\b(?:january|february|april|june|july|september|october|november|december|janvier|f[ée]vrier|avril|juin|juillet|ao[ûu]t|septembre|octobre|novembre|d[ée]cembre)\b|\bM(?:arch|ay)\b|\bAugust\b",
        ),
        (Class::Date, r"(?i)\b\d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]m)?\b|\b\d{1,2} ?[ap]m\b|\b\d{1,2}h(?:\d{2})?\b"),
        (Class::Host, r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"),
        (Class::Version, r"\bv\d+(?:\.\d+)*(?:-[\w.]+)?\b|\b\d+\.\d+\.\d+(?:-[\w.]+)?\b"),
        (Class::Id, r"\b[A-Z][A-Z0-9]*-\d+\b|#\d+\b|\b[0-9a-f]{7,64}\b"),
        (Class::Channel, r"#[\p{L}][\p{L}\p{N}_-]*"),
        (Class::Handle, r"@[\p{L}\p{N}_][\p{L}\p{N}_.-]*(?:/[\w-]+)?"),
        (Class::Path, r#"\b[A-Za-z]:\\[^\s"'«»]*"#),
        (Class::Path, r#"(?:^|[\s(\[='’])((?:~|\.{1,2})?/[^\s"'«»,;()]*)"#),
        (Class::Path, r"[\p{L}\p{N}_.*@+~-]+(?:/[\p{L}\p{N}_.*@+-]+)+/?|[\p{L}\p{N}_.-]+/|[\w./-]*\*[\w.*/-]+"),
        (Class::Path, r"[\p{L}\p{N}_-][\p{L}\p{N}_.-]*\.(?:[a-z][a-z0-9]{0,7}|[A-Z][A-Z0-9]{0,7})\b"),
        (Class::Path, r"(?:^|[\s(\['’])(\.[a-z][\w.-]+)"),
        (Class::Ordinal, r"(?i)\b\d+(?:st|nd|rd|th|ère|ème|ième|er|e)\b|\b(?:third|fourth|fifth|troisième|quatrième|cinquième)\b"),
        (
            Class::Number,
            r"[-+]?(?:[$€£]\s?)?\d{1,3}(?:[, \u{a0}\u{202f}]\d{3})+(?:\.\d+)?\b(?:\s?[%€$£])?|[-+]?(?:[$€£]\s?)?\d+(?:[.,]\d+)?(?:\s?[%€$£]|[\p{L}]{1,3}\b)?",
        ),
        (Class::Number, &number_word),
    ]
    .map(|(class, pattern)| (class, regex(pattern)))
    .into()
});

/// What a match of `class` at `span` is, if it is one after all. `text` is the part without quotes.
fn read(class: Class, intent: &str, span: Range<usize>, text: &str) -> Option<Literal> {
    // What was taken along in front of the literal, to see where it begins, is no part of it.
    let lead = intent[span.clone()].find(text)?;
    let quoted = class == Class::Quoted && !text.starts_with('\'');
    let mut span = if quoted { span } else { span.start + lead..span.start + lead + text.len() };
    let mut text = text;
    match class {
        Class::Quoted => return quoted_text(text, &span, intent),
        Class::Url | Class::Path | Class::Handle | Class::Email | Class::Version => {
            text = text.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}', '\'']);
            span.end = span.start + text.len();
        }
        _ => {}
    }
    let (before, after) = (intent[..span.start].chars().next_back(), intent[span.end..].chars().next());
    let joined = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if text.is_empty() || joined(before) || joined(after) || is_part_of_path(class, intent, &span) {
        return None;
    }
    let class = classify(class, text, before, after)?;
    Some(Literal { class, value: value(class, text), text: text.to_owned(), span })
}

/// Whether what looks like a date, a number or the like is a part of the name of a file: `notes/monday.txt`.
fn is_part_of_path(class: Class, intent: &str, span: &Range<usize>) -> bool {
    match class {
        Class::Date | Class::Host | Class::Version | Class::Id | Class::Ordinal | Class::Number => {}
        _ => return false,
    }
    let ends = |c: char| c.is_whitespace() || "\"'’`«»“”()[]{},;".contains(c);
    let start = intent[..span.start]
        .rfind(ends)
        .map_or(0, |at| at + intent[at..].chars().next().map_or(1, char::len_utf8));
    let end = intent[span.end..].find(ends).map_or(intent.len(), |at| span.end + at);
    let word = intent[start..end].trim_end_matches(['.', ':', '!', '?']);
    let rest = word.len() > span.len();
    let (beyond, before) = (intent.get(span.end..start + word.len()), intent.get(start..span.start));
    let named =
        |part: Option<&str>| part.is_some_and(|part| part.contains(['/', '\\']) || FILE_END.is_match(part));
    rest && (named(beyond) || before.is_some_and(|part| part.contains(['/', '\\'])))
}

/// The ending of the name of a file, after whatever stands before it.
static FILE_END: LazyLock<Regex> = LazyLock::new(|| regex(r"^[\p{L}\p{N}_.-]*\.[A-Za-z][A-Za-z0-9]{0,7}$"));

/// A quoted text is what it would be without quotes, where that is more than words.
fn quoted_text(text: &str, span: &Range<usize>, intent: &str) -> Option<Literal> {
    let inner = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')).unwrap_or(text);
    if inner.trim().is_empty() || intent[span.end..].starts_with(char::is_alphanumeric) {
        return None;
    }
    let plain = |class| !matches!(class, Class::Quoted | Class::Number | Class::Ordinal | Class::Name);
    let inside = literals(inner).into_iter().find(|l| l.span == (0..inner.len()) && plain(l.class));
    let (class, value) =
        inside.map_or((Class::Quoted, Value::from(inner)), |literal| (literal.class, literal.value));
    Some(Literal { class, text: inner.to_owned(), value, span: span.clone() })
}

/// Slashes and dots that make no path.
const NO_PATHS: &[&str] = &[
    "and/or",
    "et/ou",
    "n/a",
    "w/",
    "yes/no",
    "oui/non",
    "read/write",
    "input/output",
    "e.g",
    "i.e",
    "p.ex",
    "c.-à-d",
];
/// Endings that are those of hosts more often than those of files.
const HOSTS: &[&str] = &[
    "com", "org", "net", "io", "dev", "fr", "eu", "co", "app", "gov", "edu", "uk", "de", "info", "be", "ch",
    "ca",
];

fn classify(class: Class, text: &str, before: Option<char>, after: Option<char>) -> Option<Class> {
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == '/' || c == '.');
    match class {
        Class::Path if NO_PATHS.contains(&text.to_lowercase().as_str()) || digits(text) => None,
        Class::Path if !text.contains(['/', '*', '\\']) => {
            let ending = text.rsplit('.').next().unwrap_or_default();
            Some(if HOSTS.contains(&ending) { Class::Host } else { Class::Path })
        }
        // A run of letters from a to f, or of digits, is a word or a number.
        Class::Id if !text.contains(['-', '#']) => (text.contains(|c: char| c.is_ascii_digit())
            && text.contains(|c: char| c.is_ascii_lowercase()))
        .then_some(class),
        // `two-factor` is no number, and neither is the end of `a-5`.
        Class::Number if text.starts_with(char::is_alphabetic) => {
            (after != Some('-') && before != Some('-')).then_some(class)
        }
        Class::Channel | Class::Handle => (before != Some('/')).then_some(class),
        _ => Some(class),
    }
}

fn value(class: Class, text: &str) -> Value {
    match class {
        Class::Number => number(text).unwrap_or_else(|| Value::from(text)),
        Class::Ordinal => {
            number(text.trim_end_matches(char::is_alphabetic)).unwrap_or_else(|| Value::from(text))
        }
        Class::Id if text.starts_with('#') => number(&text[1..]).unwrap_or_else(|| Value::from(text)),
        Class::Date => dates::read(text).day.map_or_else(|| Value::from(text), Value::from),
        _ => Value::from(text),
    }
}

/// The number that `text` says, in digits or in words, without its unit.
pub(super) fn number(text: &str) -> Option<Value> {
    if text.starts_with(char::is_alphabetic) {
        return kinds::number(&fold(text)).map(Value::from);
    }
    let mut digits: String = text.chars().filter(|c| c.is_ascii_digit() || ",.-".contains(*c)).collect();
    // A comma before three digits sets thousands apart; before others it begins the fraction.
    let thousands =
        digits.rsplit(',').next().is_some_and(|last| last.split('.').next().unwrap_or(last).len() == 3);
    digits = if thousands { digits.replace(',', "") } else { digits.replace(',', ".") };
    // Whether a point before three digits begins the fraction depends on who wrote it.
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    if fraction.len() == 3 && whole.trim_start_matches('-') != "0" && !text.contains(',') {
        return None;
    }
    match digits.parse::<i64>() {
        Ok(whole) => Some(Value::from(whole)),
        Err(_) => digits.parse::<f64>().ok().and_then(serde_json::Number::from_f64).map(Value::Number),
    }
}

static CAPITALISED: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\p{Lu}[\p{L}\p{N}&_]*(?:[-’']\p{Lu}[\p{L}\p{N}]*)*(?: \p{Lu}[\p{L}\p{N}&_]*(?:-\p{Lu}[\p{L}\p{N}]*)*)*",
    )
});

/// Capitalised words in the middle of a sentence. Formats, languages and the like are words: they are
/// written with and without capitals.
fn names(intent: &str) -> Vec<Literal> {
    let mut found = Vec::new();
    for place in CAPITALISED.find_iter(intent) {
        let mut span = place.range();
        if begins_sentence(&intent[..span.start]) {
            // The first word is capitalised whatever it is; those after it are not.
            let Some(space) = intent[span.clone()].find(' ') else { continue };
            span.start += space + 1;
        }
        let text = &intent[span.clone()];
        let joined = intent[..span.start].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if !joined && text != "I" && kinds::kind(&fold(text)).is_none() {
            found.push(Literal { class: Class::Name, text: text.to_owned(), value: Value::from(text), span });
        }
    }
    found
}

fn begins_sentence(before: &str) -> bool {
    let before = before.trim_end_matches([' ', '\t', '"', '«', '“', '(', '-', '•']);
    before.is_empty() || before.ends_with(['.', '!', '?', ':', '\n', '…'])
}
