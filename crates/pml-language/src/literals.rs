//! Finds the literals of an intent: the values that would differ in another intent of the same form.
//!
//! This module reads text only; which parameter a literal belongs to is decided elsewhere. The first class that
//! matches wins, so classes are tried from the most to the least certain.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::fold::fold;
use crate::units::{self, Unit};
use crate::vocabulary as table;
use crate::{dates, kinds};

/// The class of a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LiteralClass {
    /// Text in quotation marks.
    Quoted,
    /// A URL with its scheme.
    Url,
    /// A host name or network address without a scheme.
    Host,
    /// An email address.
    Email,
    /// A time zone, such as `Europe/Paris`.
    Zone,
    /// A date, a time of day, or a word for one (`yesterday`).
    Date,
    /// A key, a hash, a number with a `#`.
    Id,
    /// A phone number.
    Phone,
    /// A version, such as `v1.2.3`.
    Version,
    /// A channel, such as `#general`.
    Channel,
    /// A person by handle, such as `@bob`.
    Handle,
    /// A file, a folder, a glob, a repository.
    Path,
    /// A number, with its unit where one is attached.
    Number,
    /// An ordinal: `3rd`.
    Ordinal,
    /// Capitalised words in the middle of a sentence.
    Name,
}

/// A literal found in an intent.
#[derive(Debug, Clone, PartialEq)]
pub struct IntentLiteral {
    /// The class of the literal.
    pub class: LiteralClass,
    /// The text as written, without quotation marks.
    pub text: String,
    /// The value: a number, a date as `2026-11-16` where the text is a full date, else the text.
    pub value: Value,
    /// The unit of a number, attached to it or in the word after it: `5 %`, `$5`, `5 minutes`.
    pub measured_in: Option<Unit>,
    /// The byte range in the intent, quotation marks included.
    pub span: Range<usize>,
}

impl IntentLiteral {
    /// The literal without the sign that marks its class: `general` for `#general`.
    pub fn bare(&self) -> &str {
        match self.class {
            LiteralClass::Channel | LiteralClass::Id => self.text.trim_start_matches('#'),
            LiteralClass::Handle => self.text.trim_start_matches('@'),
            _ => &self.text,
        }
    }

    /// The unit attached to a number: `%`, `€`, `MB`.
    pub fn unit(&self) -> String {
        match self.class {
            LiteralClass::Number if !self.text.starts_with(char::is_alphabetic) => {
                let written = self.text.chars();
                let unit: String =
                    written.filter(|c| !c.is_ascii_digit() && !" ,.+-\u{a0}\u{202f}".contains(*c)).collect();
                if matches!(unit.as_str(), "percent" | "pourcent") { "%".to_owned() } else { unit }
            }
            _ => String::new(),
        }
    }

    /// Whether both mean the same value, however it is spelled.
    pub fn says_same_as(&self, other: &IntentLiteral) -> bool {
        match (self.class, other.class) {
            (LiteralClass::Number, LiteralClass::Number) => {
                self.value == other.value && self.unit() == other.unit()
            }
            (LiteralClass::Date, LiteralClass::Date) => {
                self.value == other.value || fold(&self.text) == fold(&other.text)
            }
            (LiteralClass::Path, LiteralClass::Path) => plain_path(&self.text) == plain_path(&other.text),
            (LiteralClass::Quoted | LiteralClass::Url | LiteralClass::Version | LiteralClass::Id, _) => {
                self.text == other.text
            }
            (LiteralClass::Name, LiteralClass::Name) => fold(&self.text) == fold(&other.text),
            (mine, theirs) => mine == theirs && self.text.to_lowercase() == other.text.to_lowercase(),
        }
    }
}

fn plain_path(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}

/// The literals of `intent`, in textual order.
pub fn literals(intent: &str) -> Vec<IntentLiteral> {
    let mut found: Vec<IntentLiteral> = Vec::new();
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

/// Adds `literal` unless a more certain one overlaps it.
fn add(found: &mut Vec<IntentLiteral>, literal: IntentLiteral) {
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

/// Letters, by the Unicode blocks that contain little else. Each of Unicode's own classes would take 100 kB in every
/// regex that uses it.
const LETTERS: &str = r"A-Za-z\u{aa}\u{b5}\u{ba}\u{c0}-\u{d6}\u{d8}-\u{f6}\u{f8}-\u{1fff}\u{2c00}-\u{2dff}\u{3040}-\u{d7ff}\u{f900}-\u{fdff}\u{fe70}-\u{fefc}\u{ff21}-\u{ffdc}\u{10000}-\u{1efff}\u{20000}-\u{3ffff}";

/// Compiles a regex whose letter and digit classes are replaced by the likely blocks.
fn regex(pattern: &str) -> Regex {
    let pattern = pattern
        .replace(r"\w", r"\p{L}\p{N}_")
        .replace(r"\d", "[0-9]")
        .replace(r"\p{L}", LETTERS)
        .replace(r"\p{N}", "0-9");
    Regex::new(&pattern).expect("the patterns are constant and tested")
}

static PATTERNS: LazyLock<Vec<(LiteralClass, Regex)>> = LazyLock::new(|| {
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
        (LiteralClass::Quoted, r#""([^"\n]+)"|“([^”\n]+)”|«\s*([^»\n]+?)\s*»|`([^`\n]+)`|‘([^’\n]+)’"#),
        (LiteralClass::Quoted, r"(?:^|[\s(\[:])('(?:[\w]'[\w]|[^'\n])+')"),
        (LiteralClass::Url, r#"(?i)\b(?:[a-z][a-z0-9+.-]*://|www\.)[^\s"'<>«»“”`]+"#),
        (LiteralClass::Email, r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
        (
            LiteralClass::Zone,
            r"\b(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Europe|Indian|Pacific|Etc)/[A-Za-z_0-9+-]+(?:/[A-Za-z_]+)?|\b(?:UTC|GMT)(?:[+-]\d{1,2}(?::?\d{2})?)?\b|\b(?:CES?T|E[SD]T|P[SD]T|BST|JST)\b",
        ),
        (LiteralClass::Id, r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
        (
            LiteralClass::Date,
            r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?|\b\d{1,2}[/.]\d{1,2}[/.]\d{4}\b|\b\d{4}/\d{2}/\d{2}\b|\b\d{4}-(?:W\d{2}|\d{2})\b|\bQ[1-4](?: \d{4})?\b",
        ),
        (LiteralClass::Date, &month_day),
        (LiteralClass::Date, &relative),
        (
            LiteralClass::Date,
            r"(?i)\b(?:january|february|april|june|july|september|october|november|december|janvier|f[ée]vrier|avril|juin|juillet|ao[ûu]t|septembre|octobre|novembre|d[ée]cembre)\b|\bM(?:arch|ay)\b|\bAugust\b",
        ),
        (LiteralClass::Date, r"(?i)\b\d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]m)?\b|\b\d{1,2} ?[ap]m\b|\b\d{1,2}h(?:\d{2})?\b"),
        (LiteralClass::Host, r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"),
        (LiteralClass::Phone, r"\+\d{1,3}[ .-]?(?:\(\d{1,4}\)|\d{1,4})(?:[ .-]?\d{2,4}){2,5}\b|(?:\(\d{3}\) ?|\b\d{3}[-.])\d{3}[-.]\d{4}\b|\b\d{3}-\d{4}\b|\b0\d(?:[ .]\d{2}){4}\b"),
        (LiteralClass::Version, r"\bv\d+(?:\.\d+)*(?:-[\w.]+)?\b|\b\d+\.\d+\.\d+(?:-[\w.]+)?\b"),
        (LiteralClass::Id, r"\b[A-Z][A-Z0-9]*-\d+\b|#\d+\b|\b[0-9a-f]{7,64}\b|\b[a-z]{2,}(?:-[a-z0-9]+)*-\d+\b"),
        (LiteralClass::Channel, r"#[\p{L}][\p{L}\p{N}_-]*"),
        (LiteralClass::Handle, r"@[\p{L}\p{N}_][\p{L}\p{N}_.-]*(?:/[\w-]+)?"),
        (LiteralClass::Path, r#"\b[A-Za-z]:\\[^\s"'«»]*"#),
        (LiteralClass::Path, r#"(?:^|[\s(\[='’])((?:~|\.{1,2})?/[^\s"'«»,;()]*)"#),
        (LiteralClass::Path, r"[\p{L}\p{N}_.*@+~-]+(?:/[\p{L}\p{N}_.*@+-]+)+/?|[\p{L}\p{N}_.-]+/|[\w./-]*\*[\w.*/-]+"),
        (LiteralClass::Path, r"[\p{L}\p{N}_-][\p{L}\p{N}_.-]*\.(?:[a-z][a-z0-9]{0,7}|[A-Z][A-Z0-9]{0,7})\b"),
        (LiteralClass::Path, r"(?:^|[\s(\['’])(\.[a-z][\w.-]+)"),
        (LiteralClass::Ordinal, r"(?i)\b\d+(?:st|nd|rd|th|ère|ème|ième|er|e)\b|\b(?:third|fourth|fifth|troisième|quatrième|cinquième)\b"),
        (
            LiteralClass::Number,
            r"[-+]?(?:[$€£]\s?)?\d{1,3}(?:[, \u{a0}\u{202f}]\d{3})+(?:\.\d+)?\b(?:\s?[%€$£])?|[-+]?(?:[$€£]\s?)?\d+(?:[.,]\d+)?(?:\s?[%€$£]|\s?(?:percent|per cent|pour[ -]?cent)\b|[\p{L}]{1,3}\b)?",
        ),
        (LiteralClass::Number, &number_word),
    ]
    .map(|(class, pattern)| (class, regex(pattern)))
    .into()
});

/// The literal of `class` at `span`; `None` where a closer look rejects the match. `text` is the part without quotes.
fn read(class: LiteralClass, intent: &str, span: Range<usize>, text: &str) -> Option<IntentLiteral> {
    // The regex also matches the character before the literal, to see where it begins; that is no part of the
    // literal.
    let lead = intent[span.clone()].find(text)?;
    let quoted = class == LiteralClass::Quoted && !text.starts_with('\'');
    let mut span = if quoted { span } else { span.start + lead..span.start + lead + text.len() };
    let mut text = text;
    match class {
        LiteralClass::Quoted => return quoted_text(text, &span, intent),
        LiteralClass::Url
        | LiteralClass::Path
        | LiteralClass::Handle
        | LiteralClass::Email
        | LiteralClass::Version => {
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
    let literal =
        IntentLiteral { class, value: value(class, text), text: text.to_owned(), measured_in: None, span };
    let measured_in = match (class, literal.unit().as_str()) {
        (LiteralClass::Number, "") => units::unit_after(&intent[literal.span.end..]),
        (LiteralClass::Number, attached) => units::unit_named(attached),
        _ => None,
    };
    Some(IntentLiteral { measured_in, ..literal })
}

/// Whether an apparent date, number or the like is part of a file name: `notes/monday.txt`.
fn is_part_of_path(class: LiteralClass, intent: &str, span: &Range<usize>) -> bool {
    match class {
        LiteralClass::Date
        | LiteralClass::Host
        | LiteralClass::Version
        | LiteralClass::Id
        | LiteralClass::Phone
        | LiteralClass::Ordinal
        | LiteralClass::Number => {}
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

/// The rest of a file name up to its extension.
static FILE_END: LazyLock<Regex> = LazyLock::new(|| regex(r"^[\p{L}\p{N}_.-]*\.[A-Za-z][A-Za-z0-9]{0,7}$"));

/// The class of a quoted text is that of its content, where that is more than words.
fn quoted_text(text: &str, span: &Range<usize>, intent: &str) -> Option<IntentLiteral> {
    let inner = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')).unwrap_or(text);
    if inner.trim().is_empty() || intent[span.end..].starts_with(char::is_alphanumeric) {
        return None;
    }
    let plain = |class| {
        !matches!(
            class,
            LiteralClass::Quoted | LiteralClass::Number | LiteralClass::Ordinal | LiteralClass::Name
        )
    };
    let inside = literals(inner).into_iter().find(|l| l.span == (0..inner.len()) && plain(l.class));
    let (class, value) =
        inside.map_or((LiteralClass::Quoted, Value::from(inner)), |literal| (literal.class, literal.value));
    Some(IntentLiteral { class, text: inner.to_owned(), value, measured_in: None, span: span.clone() })
}

/// Texts with slashes or dots that are no paths.
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
/// Suffixes that occur in host names more often than in file names.
const HOSTS: &[&str] = &[
    "com", "org", "net", "io", "dev", "fr", "eu", "co", "app", "gov", "edu", "uk", "de", "info", "be", "ch",
    "ca",
];

fn classify(
    class: LiteralClass,
    text: &str,
    before: Option<char>,
    after: Option<char>,
) -> Option<LiteralClass> {
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == '/' || c == '.');
    match class {
        LiteralClass::Path if NO_PATHS.contains(&text.to_lowercase().as_str()) || digits(text) => None,
        LiteralClass::Path if !text.contains(['/', '*', '\\']) => {
            let ending = text.rsplit('.').next().unwrap_or_default();
            Some(if HOSTS.contains(&ending) { LiteralClass::Host } else { LiteralClass::Path })
        }
        // A run of only letters a to f, or only digits, is a word or a number.
        LiteralClass::Id if !text.contains(['-', '#']) => (text.contains(|c: char| c.is_ascii_digit())
            && text.contains(|c: char| c.is_ascii_lowercase()))
        .then_some(class),
        // `two-factor` is no number, and neither is the end of `a-5`.
        LiteralClass::Number if text.starts_with(char::is_alphabetic) => {
            (after != Some('-') && before != Some('-')).then_some(class)
        }
        LiteralClass::Channel | LiteralClass::Handle => (before != Some('/')).then_some(class),
        _ => Some(class),
    }
}

fn value(class: LiteralClass, text: &str) -> Value {
    match class {
        LiteralClass::Number => parse_number(text).unwrap_or_else(|| Value::from(text)),
        LiteralClass::Ordinal => {
            parse_number(text.trim_end_matches(char::is_alphabetic)).unwrap_or_else(|| Value::from(text))
        }
        LiteralClass::Id if text.starts_with('#') => {
            parse_number(&text[1..]).unwrap_or_else(|| Value::from(text))
        }
        LiteralClass::Date => dates::parse_date(text).day.map_or_else(|| Value::from(text), Value::from),
        _ => Value::from(text),
    }
}

/// The number that `text` spells, in digits or in words, without its unit.
pub fn parse_number(text: &str) -> Option<Value> {
    if text.starts_with(char::is_alphabetic) {
        return kinds::parse_number_words(&fold(text)).map(Value::from);
    }
    let mut digits: String = text.chars().filter(|c| c.is_ascii_digit() || ",.-".contains(*c)).collect();
    // A comma before exactly three digits separates thousands; otherwise it begins the fraction.
    let thousands =
        digits.rsplit(',').next().is_some_and(|last| last.split('.').next().unwrap_or(last).len() == 3);
    digits = if thousands { digits.replace(',', "") } else { digits.replace(',', ".") };
    // A point before three digits is ambiguous: it depends on the writer whether it begins the fraction.
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

/// Capitalised words within a sentence. Formats, languages and the like are excluded: they are words that are written
/// with and without capitals.
fn names(intent: &str) -> Vec<IntentLiteral> {
    let mut found = Vec::new();
    for place in CAPITALISED.find_iter(intent) {
        let mut span = place.range();
        if begins_sentence(&intent[..span.start]) && !is_possessor(intent, &span) {
            // The first word of a sentence is always capitalised; the words after it are not.
            let Some(space) = intent[span.clone()].find(' ') else { continue };
            span.start += space + 1;
        }
        let text = &intent[span.clone()];
        let joined = intent[..span.start].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if !joined && text != "I" && kinds::word_kind(&fold(text)).is_none() {
            found.push(IntentLiteral {
                class: LiteralClass::Name,
                text: text.to_owned(),
                value: Value::from(text),
                measured_in: None,
                span,
            });
        }
    }
    found
}

/// Whether a word is a name because it possesses something: `Odile's mark`. What's, it's and the like do not.
fn is_possessor(intent: &str, span: &Range<usize>) -> bool {
    let possesses = intent[span.end..].starts_with("'s ") || intent[span.end..].starts_with("’s ");
    let folded = fold(&intent[span.clone()]);
    let lists = [table::VOID, table::STATING, table::ASK, table::STATEMENT_STARTS, table::JOINING];
    let is_grammar = lists.iter().any(|list| list.contains(&folded.as_str()));
    possesses && !is_grammar && !["how", "here", "when"].contains(&folded.as_str())
}

fn begins_sentence(before: &str) -> bool {
    let before = before.trim_end_matches([' ', '\t', '"', '«', '“', '(', '-', '•']);
    before.is_empty() || before.ends_with(['.', '!', '?', ':', '\n', '…'])
}

/// Whether `intent`, which has these literals, counts from today, so that a date derived from it differs tomorrow.
pub fn depends_on_today<'l>(intent: &str, mut literals: impl Iterator<Item = &'l IntentLiteral>) -> bool {
    let relative = |literal: &IntentLiteral| {
        literal.class == LiteralClass::Date
            && matches!(dates::parse_date(&literal.text).shape, dates::DateForm::Relative { .. })
    };
    WINDOW.is_match(&fold(intent)) || literals.any(relative)
}

static WINDOW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"\b(last|past|next|latest) \S+ (minute|hour|day|week|month|year)|\b\S+ (derni|proch)\S+ (minute|heure|jour|semaine|mois|an)|\bsince|\bdepuis",
    )
    .expect("the pattern is constant and tested")
});
