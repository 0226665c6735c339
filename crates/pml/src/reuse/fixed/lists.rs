//! Word lists for comparing an intent with a program. All words are folded.

/// Words for a single thing, where a number could stand.
pub(super) const ONE: &[&str] =
    &["one", "single", "seul", "seule", "unique", "half", "dozen", "douzaine", "couple", "both"];

/// Words for a position in a sequence. `last` and the like are opposites of these.
pub(super) const PLACES: &[&str] =
    &["first", "second", "sixth", "seventh", "eighth", "ninth", "tenth", "last", "deuxieme", "seconde"];

/// Words for fields of data.
pub(super) const FIELDS: &[&str] =
    &["column", "field", "key", "property", "attribute", "champ", "propriete", "attribut"];

/// Words that occur in any request, in addition to those of the vocabulary.
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

/// Abbreviations that differ between English and French.
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
