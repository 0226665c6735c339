//! French requests in English words, so that they find tools that are described in English.
//!
//! `gloss` goes word by word and phrase by phrase, and puts adjectives before their nouns; it is no
//! translation, but it is what ranking needs, which looks at words and at vectors of them. What it does
//! not know it leaves as it is, for names and technical terms are the same in both languages. It uses
//! nothing but the lists beside it, so it costs microseconds.

mod forms;
mod language;
mod lexicon;
mod scan;

use std::borrow::Cow;

use lexicon::{ARTICLES, Entry, Kind, bare, lexicon};
use scan::{Piece, Word};

/// The English gloss of `text`; `None` if it is not French, or says nothing but courtesies.
///
/// Sentences stay sentences, so a gloss falls into the same parts as the request.
pub fn gloss(text: &str) -> Option<String> {
    let pieces = scan::pieces(text);
    if !language::is_french(&pieces) {
        return None;
    }
    let gloss = joined(&nouns_last(terms(&pieces)));
    gloss.contains(char::is_alphanumeric).then_some(gloss)
}

/// A piece of the gloss.
#[derive(Debug)]
struct Term<'a> {
    english: Cow<'a, str>,
    role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Noun,
    /// Also past participles.
    Adjective,
    /// A name or a word that is not listed, which after a noun says which one: "code Python".
    Name,
    /// "De" without an article, which makes one thing of two nouns: "bouton de connexion".
    Of,
    Verb,
    Other,
    Mark,
}

fn terms<'a>(pieces: &[Piece<'a>]) -> Vec<Term<'a>> {
    let shouted = scan::is_shouted(pieces);
    let mut terms = Vec::with_capacity(pieces.len());
    let mut at = 0;
    while let Some(piece) = pieces.get(at) {
        let (term, next) = match piece {
            Piece::Mark(mark) => (Term { english: Cow::Borrowed(*mark), role: Role::Mark }, at + 1),
            Piece::Kept(kept) => {
                let role = if kept.chars().all(char::is_alphabetic) { Role::Name } else { Role::Other };
                (Term { english: Cow::Borrowed(*kept), role }, at + 1)
            }
            Piece::Word(word) => match phrase(pieces, at) {
                Some((entry, end)) => (term_of(entry, false), end),
                None => (one_word(word, &Surroundings { pieces, at, terms: &terms, shouted }), at + 1),
            },
        };
        if !term.english.is_empty() {
            terms.push(term);
        }
        at = next;
    }
    terms
}

/// The longest phrase that starts at `at`, and where it ends.
fn phrase(pieces: &[Piece<'_>], at: usize) -> Option<(Entry, usize)> {
    let Some(Piece::Word(first)) = pieces.get(at) else { return None };
    let lemmas = lemmas(first);
    lexicon().phrase(&lemmas, at, |from, wanted, loose| {
        let mut place = from;
        loop {
            let Some(Piece::Word(word)) = pieces.get(place) else { return None };
            if self::lemmas(word).contains(&wanted) {
                return Some(place + 1);
            }
            if !loose || !ARTICLES.contains(&word.folded.as_str()) {
                return None;
            }
            place += 1;
        }
    })
}

/// What a word of a phrase may be listed as.
fn lemmas<'w>(word: &'w Word<'_>) -> [&'w str; 3] {
    let folded = bare(&word.folded);
    let plain = word.senses.plain.map_or("", |entry| entry.french);
    let verb = word.senses.verb.map_or("", |entry| entry.french);
    // Each once: phrases are looked for under all of them.
    [
        folded,
        if plain == folded { "" } else { plain },
        if verb == folded || verb == plain { "" } else { verb },
    ]
}

struct Surroundings<'s, 'a> {
    pieces: &'s [Piece<'a>],
    at: usize,
    terms: &'s [Term<'a>],
    shouted: bool,
}

impl Surroundings<'_, '_> {
    fn word(&self, at: usize) -> Option<&Word<'_>> {
        match self.pieces.get(at)? {
            Piece::Word(word) => Some(word),
            Piece::Kept(_) | Piece::Mark(_) => None,
        }
    }

    fn before(&self) -> Option<&Word<'_>> {
        self.word(self.at.checked_sub(1)?)
    }

    fn follows_noun(&self) -> bool {
        let adjacent = self.before().is_some_and(|word| !ARTICLES.contains(&word.folded.as_str()));
        let role = self.terms.last().map(|term| term.role);
        adjacent && matches!(role, Some(Role::Noun | Role::Adjective | Role::Name))
    }

    /// Whether a request may begin here: with the text, after a mark, or after "and".
    fn begins(&self) -> bool {
        self.before().is_none_or(|word| {
            matches!(word.folded.as_str(), "et" | "puis" | "ensuite" | "ou" | "alors" | "mais" | "donc")
        })
    }

    /// Whether only a verb can stand here: an imperative before its object, or a verb by its subject.
    fn needs_verb(&self) -> bool {
        let near = |at: Option<&Word<'_>>, list: &[&str]| {
            at.is_some_and(|word| list.contains(&word.folded.as_str()))
        };
        let next = self.word(self.at + 1);
        near(self.before(), &SUBJECTS)
            || near(next, &INVERTED)
            || (self.begins() && near(next, &OBJECT_STARTS))
    }

    /// Whether an hour stands there: "14h", "9 heures".
    fn is_time(&self, at: usize) -> bool {
        let Some(Piece::Kept(kept)) = self.pieces.get(at) else { return false };
        let hours = || self.word(at + 1).is_some_and(|word| word.folded.starts_with("heure"));
        kept.starts_with(|c: char| c.is_ascii_digit()) && (kept.contains(['h', ':']) || hours())
    }

    /// Whether the sentence so far makes one thing into another, so that "en" means "to".
    fn converts(&self) -> bool {
        let sentence = self.terms.iter().rev().take_while(|term| term.role != Role::Mark);
        sentence.take(8).any(|term| ["convert", "translate", "change"].contains(&&*term.english))
    }

    /// Whether what follows "de" can be where or when something starts: a place, a date after "du", an
    /// hour; but "de 300 euros" is an amount.
    fn is_departure(&self, of: &Word<'_>) -> bool {
        let next = self.at + 1;
        let amount = matches!(self.pieces.get(next), Some(Piece::Kept(_)));
        self.is_name(next) && (!amount || of.folded == "du" || self.is_time(next))
    }

    fn is_name(&self, at: usize) -> bool {
        match self.pieces.get(at) {
            Some(Piece::Word(word)) => is_place(word) || word.has_telling_capital(),
            Some(Piece::Kept(_)) => true,
            Some(Piece::Mark(_)) | None => false,
        }
    }
}

/// What follows an imperative, which often looks like a noun: "ferme les volets".
const OBJECT_STARTS: [&str; 28] = [
    "le", "la", "les", "l", "un", "une", "mon", "ma", "mes", "ce", "cet", "cette", "ces", "moi", "nous",
    "tous", "toutes", "tout", "combien", "chaque", "lui", "si", "son", "sa", "ses", "notre", "nos", "leur",
];

/// Before these stands a verb: "compte-t-elle".
const INVERTED: [&str; 8] = ["tu", "t", "il", "elle", "on", "ils", "elles", "moi"];

/// After these stands a verb: "il porte".
const SUBJECTS: [&str; 17] =
    ["je", "j", "tu", "il", "elle", "on", "ils", "elles", "qui", "me", "m", "te", "se", "s", "ne", "n", "y"];

fn is_place(word: &Word<'_>) -> bool {
    word.senses.plain.is_some_and(|entry| entry.kind == Kind::Name)
}

fn one_word<'a>(word: &Word<'a>, around: &Surroundings<'_, 'a>) -> Term<'a> {
    let after_article =
        || around.before().is_some_and(|before| DETERMINERS.contains(&before.folded.as_str()));
    let named = word.has_telling_capital() && !around.shouted;
    if named
        && !is_place(word)
        && !(word.senses.exact && after_article() && !is_capital(around.word(around.at + 1)))
    {
        return Term { english: Cow::Borrowed(word.written), role: Role::Name };
    }
    if let Some(term) = small_word(word, around) {
        return term;
    }
    match sense(word, around) {
        Some((entry, true)) if around.word(around.at + 1).is_some_and(|next| next.folded == "par") => {
            Term { role: Role::Verb, ..term_of(entry, true) }
        }
        Some((entry, _)) if entry.kind == Kind::Noun && word.senses.plural => {
            Term { english: Cow::Owned(each_meaning(entry, forms::english_plural)), role: Role::Noun }
        }
        Some((entry, participle)) => term_of(entry, participle),
        None => Term { english: cognate(word), role: Role::Name },
    }
}

/// After these a capital does not make a person's name.
const DETERMINERS: [&str; 12] = ["le", "la", "les", "l", "un", "une", "du", "des", "au", "mon", "ma", "mes"];

fn is_capital(word: Option<&Word<'_>>) -> bool {
    word.is_some_and(Word::has_telling_capital)
}

/// After these stands a noun, even if it looks like a small word: "le son", "l'est".
fn takes_noun(folded: &str) -> bool {
    matches!(folded, "le" | "l" | "du" | "au")
}

/// The meaning that fits the place of the word, and whether it is a participle.
fn sense(word: &Word<'_>, around: &Surroundings<'_, '_>) -> Option<(Entry, bool)> {
    let senses = word.senses;
    let verb = senses.verb.map(|entry| (entry, senses.participle));
    if word.folded == "suis" && around.begins() {
        // "Suis mon colis": nobody begins a request with "am".
        return verb;
    }
    if let Some(small) = senses.plain.filter(|entry| entry.kind == Kind::Small) {
        let noun = senses.noun.filter(|_| around.before().is_some_and(|before| takes_noun(&before.folded)));
        return Some((noun.unwrap_or(small), false));
    }
    if around.needs_verb() && !senses.participle && verb.is_some() {
        return verb;
    }
    if around.follows_noun() && senses.adjective.is_some() {
        return senses.adjective.map(|entry| (entry, false));
    }
    senses.plain.map(|entry| (entry, false)).or(verb)
}

/// Small words that mean what stands around them.
fn small_word<'a>(word: &Word<'_>, around: &Surroundings<'_, '_>) -> Option<Term<'a>> {
    let next = around.word(around.at + 1);
    let verb_follows = next.is_some_and(|next| next.senses.plain.is_none() && next.senses.verb.is_some());
    let role_before = around.terms.last().map(|term| term.role);
    let after_noun = matches!(role_before, Some(Role::Noun | Role::Adjective | Role::Name));
    let other = |english| Some(Term { english: Cow::Borrowed(english), role: Role::Other });
    match bare(&word.folded) {
        "a" if around.is_time(around.at + 1) => other("at"),
        "depuis" if around.is_name(around.at + 1) => other("from"),
        "en" if around.converts() => other("to"),
        "ete" if around.before().is_some_and(|before| has_been(&before.folded)) => other("been"),
        "qui" if after_noun => other("that"),
        "pour" if verb_follows => other("to"),
        "de" if verb_follows => other(""),
        "de" if around.is_departure(word) && leads_to(around, around.at + 2) => other("from"),
        "de" if !after_noun && !matches!(word.folded.as_str(), "de" | "d") => other(""),
        "de" if after_noun && is_noun(next) && matches!(word.folded.as_str(), "de" | "d") => {
            Some(Term { english: Cow::Borrowed("of"), role: Role::Of })
        }
        "a" if next.is_some_and(is_place) && !comes_from(around) => other("in"),
        "a" if word.written == "a" => None,
        "a" if verb_follows => other("to"),
        _ => None,
    }
}

/// Whether "été" after this is no summer.
fn has_been(folded: &str) -> bool {
    matches!(
        folded,
        "a" | "ai" | "as" | "avons" | "avez" | "ont" | "avait" | "aura" | "pas" | "deja" | "jamais"
    )
}

fn is_noun(word: Option<&Word<'_>>) -> bool {
    word.and_then(|word| word.senses.plain).is_some_and(|entry| entry.kind == Kind::Noun)
}

/// Whether "à" or "vers" stands at `at` or soon after.
fn leads_to(around: &Surroundings<'_, '_>, at: usize) -> bool {
    (at..at + 3)
        .filter_map(|at| around.word(at))
        .any(|word| matches!(bare(&word.folded), "a" | "vers" | "jusqu"))
}

fn comes_from(around: &Surroundings<'_, '_>) -> bool {
    around.terms.iter().rev().take(4).any(|term| term.english == "from")
}

fn term_of<'a>(entry: Entry, participle: bool) -> Term<'a> {
    let role = match entry.kind {
        Kind::Small => Role::Other,
        Kind::Name | Kind::Noun => Role::Noun,
        Kind::Adjective => Role::Adjective,
        Kind::Verb if participle => Role::Adjective,
        Kind::Verb => Role::Verb,
    };
    let english = if participle {
        Cow::Owned(each_meaning(entry, forms::english_participle))
    } else if entry.english.contains('/') {
        Cow::Owned(entry.english.replace('/', " "))
    } else {
        Cow::Borrowed(entry.english)
    };
    Term { english, role }
}

fn each_meaning(entry: Entry, bent: impl Fn(&str) -> String) -> String {
    let meanings: Vec<String> = entry.english.split('/').map(bent).collect();
    meanings.join(" ")
}

/// An unknown word as English would most likely write it: `ergonomique` as `ergonomic`.
fn cognate<'a>(word: &Word<'a>) -> Cow<'a, str> {
    if word.folded.len() < 6 {
        return if word.written.is_ascii() {
            Cow::Borrowed(word.written)
        } else {
            Cow::Owned(word.folded.clone())
        };
    }
    let (stem, plural) = match word.folded.strip_suffix('s') {
        Some(stem) => (stem, "s"),
        None => (word.folded.as_str(), ""),
    };
    let changed = COGNATES.iter().find_map(|(french, english)| Some((stem.strip_suffix(french)?, english)));
    match changed {
        Some((stem, english)) => Cow::Owned(format!("{stem}{english}")),
        None if word.written.is_ascii() => Cow::Borrowed(word.written),
        None => Cow::Owned(format!("{stem}{plural}")),
    }
}

/// Endings that French and English share but write differently.
#[rustfmt::skip]
const COGNATES: &[(&str, &str)] = &[
    ("ologie", "ology"), ("ographie", "ography"), ("onomie", "onomy"), ("ometrie", "ometry"),
    ("ique", "ic"), ("ite", "ity"), ("isme", "ism"), ("iste", "ist"), ("ateur", "ator"), ("atrice", "ator"),
    ("cteur", "ctor"), ("ionnel", "ional"), ("ionnelle", "ional"), ("iel", "ial"), ("ielle", "ial"),
    ("uelle", "ual"), ("ieux", "ious"), ("ieuse", "ious"), ("ienne", "ian"), ("iser", "ize"),
    ("ifier", "ify"), ("atif", "ative"), ("itif", "itive"), ("ctif", "ctive"), ("oire", "ory"),
];

/// More nouns than this are not put before one another: nobody could read them, and time would grow.
const LONGEST_CHAIN: usize = 4;

/// Puts what follows a noun and tells more about it before it: adjectives, the last one first, then
/// names, as in "dépôt GitHub privé"; and of two nouns that make one thing the second first.
fn nouns_last(terms: Vec<Term<'_>>) -> Vec<Term<'_>> {
    let mut out: Vec<Term<'_>> = Vec::with_capacity(terms.len());
    let mut terms = terms.into_iter().peekable();
    // Where the things joined by "de" start, and how many they are.
    let mut start = None;
    let mut joined = 0;
    while let Some(term) = terms.next() {
        if term.role != Role::Noun {
            start = None;
            out.push(term);
            continue;
        }
        let (mut adjectives, mut names) = (Vec::new(), Vec::new());
        while let Some(more) = terms.next_if(|next| matches!(next.role, Role::Adjective | Role::Name)) {
            if more.role == Role::Name { names.push(more) } else { adjectives.push(more) }
        }
        let thing: Vec<_> = adjectives.into_iter().rev().chain(names).chain([term]).collect();
        let at = start.unwrap_or(out.len());
        out.splice(at..at, thing);
        joined = if start.is_some() { joined + 1 } else { 1 };
        start = terms.next_if(|next| next.role == Role::Of && joined < LONGEST_CHAIN).map(|_| at);
    }
    out
}

/// The terms as text, without the marks of a courtesy that is left out.
fn joined(terms: &[Term<'_>]) -> String {
    let mut gloss = String::new();
    for term in terms {
        let opens_line = gloss.is_empty() || gloss.ends_with('\n');
        let tight = term.role == Role::Mark && !term.english.starts_with(['-', '–', '—', '•', '*', '(']);
        if opens_line && tight {
            continue;
        }
        if !opens_line && !tight && !gloss.ends_with('(') {
            gloss.push(' ');
        }
        gloss.push_str(&term.english);
    }
    gloss
}
