//! Words of which one may stand where another of the same kind stood, and numbers in words. Folded.

/// What a word names, where it is one of a known kind.
pub(super) fn kind(folded: &str) -> Option<Kind> {
    KINDS.iter().find(|(_, words)| words.contains(&folded)).map(|(kind, _)| *kind)
}

/// The number a folded word says.
pub(super) fn number(folded: &str) -> Option<i64> {
    NUMBERS.iter().find(|(word, _)| *word == folded).map(|(_, number)| *number)
}

/// Words of one kind: one may stand where another of the same kind stood.
const KINDS: &[(Kind, &[&str])] = &[
    (
        Kind::Language,
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
        Kind::Langue,
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
        Kind::Format,
        &[
            "json", "csv", "yaml", "xml", "pdf", "html", "markdown", "toml", "txt", "png", "jpeg", "jpg",
            "webp", "gif", "svg", "parquet", "tsv", "xlsx", "docx", "mp3", "mp4", "wav", "zip", "api", "url",
            "http", "https", "sql", "id", "ids", "urls",
        ],
    ),
    (Kind::Unit, &["celsius", "fahrenheit", "kelvin", "kilometers", "miles", "metric", "imperial"]),
    (Kind::Currency, &["usd", "eur", "gbp", "jpy", "chf", "cad", "aud", "cny", "inr", "sek", "nok", "dkk"]),
    (
        Kind::Code,
        &["python", "rust", "javascript", "typescript", "java", "ruby", "php", "kotlin", "swift", "bash"],
    ),
];

/// What a word of [`KINDS`] names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A human language, by its English name.
    Language,
    /// A human language, by its French name.
    Langue,
    /// A format of data, or an abbreviation of the trade.
    Format,
    /// A unit of measurement.
    Unit,
    /// A currency.
    Currency,
    /// A programming language.
    Code,
}

/// Numbers in words. `one`, `un` and `neuf` are left out: they are other words more often.
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
    ("fifteen", 15),
    ("twenty", 20),
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("hundred", 100),
    ("deux", 2),
    ("trois", 3),
    ("quatre", 4),
    ("cinq", 5),
    ("sept", 7),
    ("huit", 8),
    ("dix", 10),
    ("onze", 11),
    ("douze", 12),
    ("quinze", 15),
    ("vingt", 20),
    ("trente", 30),
    ("quarante", 40),
    ("cinquante", 50),
    ("soixante", 60),
    ("cent", 100),
];
