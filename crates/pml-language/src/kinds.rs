//! Kinds of words (a word may replace another of its kind), and numbers in words. All words are folded.

/// The kind of a folded word; `None` where it has no known kind.
pub fn word_kind(folded: &str) -> Option<WordKind> {
    KINDS.iter().find(|(_, words)| words.contains(&folded)).map(|(kind, _)| *kind)
}

/// The number that folded words spell: `three`, `twenty-five`, `quatre-vingt-dix`, `two hundred`.
pub fn parse_number_words(folded: &str) -> Option<i64> {
    let words: Vec<&str> =
        folded.split(['-', ' ']).filter(|word| !matches!(*word, "" | "and" | "et")).collect();
    let value = |word: &str| NUMBERS.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
    if let [word] = words.as_slice() {
        return value(word);
    }
    let within = |word: &str| WITHIN.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
    let (mut total, mut group) = (0, 0);
    for word in &words {
        match value(word).or_else(|| within(word))? {
            1_000 => (total, group) = (total + group.max(1) * 1_000, 0),
            100 => group = group.max(1) * 100,
            // `quatre-vingt`: four twenties are eighty.
            20 if group % 100 == 4 => group += 76,
            number => group += number,
        }
    }
    (!words.is_empty()).then_some(total + group)
}

/// A regex for numbers in words.
pub fn number_pattern() -> String {
    let names =
        |list: &[(&'static str, i64)]| list.iter().map(|(word, _)| *word).collect::<Vec<_>>().join("|");
    let (alone, within) = (names(NUMBERS), names(WITHIN));
    format!(
        r"(?i)\b(?:{alone})(?:-(?:et-)?(?:{alone}|{within})| et (?:un|une|onze)| (?:hundred|thousand|cents?|mille)(?: and (?:{alone}))?)*\b"
    )
}

/// Words by kind: a word may replace another of the same kind.
const KINDS: &[(WordKind, &[&str])] = &[
    (
        WordKind::Language,
        &[
            "english",
            "french",
            "german",
            "spanish",
            "italian",
            "portuguese",
            "dutch",
            "chinese",
            "japanese",
            "korean",
            "arabic",
            "russian",
            "polish",
            "swedish",
            "greek",
            "turkish",
        ],
    ),
    (
        WordKind::Langue,
        &[
            "anglais",
            "francais",
            "allemand",
            "espagnol",
            "italien",
            "portugais",
            "neerlandais",
            "chinois",
            "japonais",
            "coreen",
            "arabe",
            "russe",
            "polonais",
            "suedois",
            "grec",
            "turc",
        ],
    ),
    (
        WordKind::Format,
        &[
            "json", "csv", "yaml", "xml", "pdf", "html", "markdown", "toml", "txt", "png", "jpeg", "jpg",
            "webp", "gif", "svg", "parquet", "tsv", "xlsx", "docx", "mp3", "mp4", "wav", "zip", "api", "url",
            "http", "https", "sql", "id", "ids", "urls",
        ],
    ),
    (WordKind::Unit, &["celsius", "fahrenheit", "kelvin", "kilometers", "miles", "metric", "imperial"]),
    (
        WordKind::Currency,
        &["usd", "eur", "gbp", "jpy", "chf", "cad", "aud", "cny", "inr", "sek", "nok", "dkk"],
    ),
    (
        WordKind::Code,
        &["python", "rust", "javascript", "typescript", "java", "ruby", "php", "kotlin", "swift", "bash"],
    ),
];

/// The kind of a word in [`KINDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordKind {
    /// A human language, by its English name.
    Language,
    /// A human language, by its French name.
    Langue,
    /// A data format, or a technical abbreviation.
    Format,
    /// A unit of measurement.
    Unit,
    /// A currency.
    Currency,
    /// A programming language.
    Code,
}

/// Numbers in words. `one`, `un` and `neuf` are left out: alone they mostly mean something else.
const NUMBERS: &[(&str, i64)] = &[
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("thirteen", 13),
    ("fourteen", 14),
    ("fifteen", 15),
    ("sixteen", 16),
    ("seventeen", 17),
    ("eighteen", 18),
    ("nineteen", 19),
    ("twenty", 20),
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("seventy", 70),
    ("eighty", 80),
    ("ninety", 90),
    ("hundred", 100),
    ("thousand", 1_000),
    ("deux", 2),
    ("trois", 3),
    ("quatre", 4),
    ("cinq", 5),
    ("sept", 7),
    ("huit", 8),
    ("dix", 10),
    ("onze", 11),
    ("douze", 12),
    ("treize", 13),
    ("quatorze", 14),
    ("quinze", 15),
    ("seize", 16),
    ("vingt", 20),
    ("vingts", 20),
    ("trente", 30),
    ("quarante", 40),
    ("cinquante", 50),
    ("soixante", 60),
    ("cent", 100),
    ("cents", 100),
    ("mille", 1_000),
];

/// Words that are numbers only within longer ones: `twenty-one`, `dix-neuf`.
const WITHIN: &[(&str, i64)] = &[("one", 1), ("un", 1), ("une", 1), ("neuf", 9)];
