//! Words that are read in a way of their own where an intent is compared with a program. Folded.

/// Words for one thing, where a number may stand.
pub(super) const ONE: &[&str] =
    &["one", "single", "seul", "seule", "unique", "half", "dozen", "douzaine", "couple", "both"];

/// Words for a place in a row. `last` and its like are opposites of these.
pub(super) const PLACES: &[&str] =
    &["first", "second", "sixth", "seventh", "eighth", "ninth", "tenth", "last", "deuxieme", "seconde"];

/// What fields of data are called.
pub(super) const FIELDS: &[&str] =
    &["column", "field", "key", "property", "attribute", "champ", "propriete", "attribut"];

/// Words with which anything is asked for, beside those of the vocabulary.
pub(super) const GENERIC: &[&str] = &[
    "give",
    "tell",
    "find",
    "look",
    "use",
    "make",
    "return",
    "print",
    "output",
    "according",
    "please",
    "say",
    "donne",
    "dis",
    "fais",
    "utilise",
    "selon",
    "indique",
    "result",
    "value",
    "file",
    "data",
    "run",
    "restart",
    "up",
    "execute",
    "start",
    "call",
    "try",
    "repeat",
    "again",
    "same",
    "go",
    "continue",
    "capability",
    "procedure",
    "program",
    "encore",
    "meme",
    "relance",
    "recommence",
];

/// Abbreviations that are written otherwise in the other language.
pub(super) const ACRONYMS: &[(&str, &str)] = &[
    ("vat", "tva"),
    ("gdp", "pib"),
    ("eu", "ue"),
    ("un", "onu"),
    ("nato", "otan"),
    ("hr", "rh"),
    ("it", "dsi"),
    ("ceo", "pdg"),
    ("ai", "ia"),
];
