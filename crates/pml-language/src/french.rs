//! Glosses French requests in English, so that they match tools described in English.
//!
//! `gloss` works word by word and phrase by phrase, and puts adjectives before their nouns. It is no translation, but
//! it suffices for ranking, which compares words and vectors. Unknown words stay as they are, because names and
//! technical terms are the same in both languages. It uses only the word lists beside it and takes microseconds.

mod forms;
mod language;
mod lexicon;
mod scan;

use std::borrow::Cow;

use lexicon::{ARTICLES, LexiconEntry, PartOfSpeech, expand_contraction, lexicon};
use scan::{FrenchPiece, FrenchWord};

/// The English gloss of `text`; `None` if it is not French, or contains only courtesies.
///
/// Sentences stay sentences, so a gloss splits into the same parts as the request.
pub fn gloss(text: &str) -> Option<String> {
    gloss_with_meanings(text).map(|gloss| gloss.replace(BETWEEN_MEANINGS, " "))
}

/// What stands between the meanings of one word in [`gloss_with_meanings`].
pub const BETWEEN_MEANINGS: char = '·';

/// As [`gloss`], with [`BETWEEN_MEANINGS`] between the meanings of a word that has several.
pub fn gloss_with_meanings(text: &str) -> Option<String> {
    let pieces = scan::scan_pieces(text);
    if !language::is_french(&pieces) {
        return None;
    }
    let gloss = joined(&nouns_last(terms(&pieces)));
    gloss.contains(char::is_alphanumeric).then_some(gloss)
}

/// Whether most of `text` is French.
pub(crate) fn is_french(text: &str) -> bool {
    language::is_french(&scan::scan_pieces(text))
}

/// A term of the gloss.
#[derive(Debug)]
struct GlossTerm<'a> {
    english: Cow<'a, str>,
    role: TermRole,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TermRole {
    Noun,
    /// An adjective or past participle.
    Adjective,
    /// A name or an unlisted word, which after a noun qualifies it: "code Python".
    Name,
    /// "Most" or "least", which belongs to the adjective after it.
    Degree,
    /// "De" without an article, which joins two nouns: "bouton de connexion".
    Of,
    Verb,
    Other,
    Mark,
}

fn terms<'a>(pieces: &[FrenchPiece<'a>]) -> Vec<GlossTerm<'a>> {
    let shouted = scan::is_all_capitals(pieces);
    let mut terms = Vec::with_capacity(pieces.len());
    let mut at = 0;
    while let Some(piece) = pieces.get(at) {
        let (term, next) = match piece {
            FrenchPiece::Mark(mark) => {
                (GlossTerm { english: Cow::Borrowed(*mark), role: TermRole::Mark }, at + 1)
            }
            FrenchPiece::Kept(kept) => {
                let role =
                    if kept.chars().all(char::is_alphabetic) { TermRole::Name } else { TermRole::Other };
                (GlossTerm { english: Cow::Borrowed(*kept), role }, at + 1)
            }
            FrenchPiece::Word(word) => match phrase(pieces, at) {
                Some((entry, end)) => {
                    let around = WordContext { pieces, at, terms: &terms, shouted };
                    (phrase_term(entry, &around), end)
                }
                None => (one_word(word, &WordContext { pieces, at, terms: &terms, shouted }), at + 1),
            },
        };
        match terms.last_mut() {
            _ if term.english.is_empty() => {}
            // "les villes les plus peuplées" are "the most populated cities".
            Some(GlossTerm { english, role: role @ TermRole::Degree })
                if term.role == TermRole::Adjective =>
            {
                *english = Cow::Owned(format!("{english} {}", term.english));
                *role = TermRole::Adjective;
            }
            Some(_) | None => terms.push(term),
        }
        at = next;
    }
    terms
}

fn phrase_term<'a>(entry: LexiconEntry, around: &WordContext<'_, '_>) -> GlossTerm<'a> {
    // "traduis-le en français": what is converted to has that preposition.
    match entry.english.strip_prefix("in ") {
        Some(form) if entry.french.starts_with("en ") && around.converts() => {
            GlossTerm { english: Cow::Owned(format!("to {form}")), role: TermRole::Other }
        }
        Some(_) | None => term_of(entry, false),
    }
}

/// The longest phrase that starts at `at`, and its end.
fn phrase(pieces: &[FrenchPiece<'_>], at: usize) -> Option<(LexiconEntry, usize)> {
    let Some(FrenchPiece::Word(first)) = pieces.get(at) else { return None };
    let lemmas = lemmas(first);
    lexicon().longest_phrase(&lemmas, at, |from, wanted, loose| {
        let mut place = from;
        loop {
            let Some(FrenchPiece::Word(word)) = pieces.get(place) else { return None };
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

/// Forms under which a word of a phrase may be listed.
fn lemmas<'w>(word: &'w FrenchWord<'_>) -> [&'w str; 4] {
    let folded = expand_contraction(&word.folded);
    let plain = word.senses.plain.map_or("", |entry| entry.french);
    let verb = word.senses.verb.map_or("", |entry| entry.french);
    // "élevées" as in "plus élevé".
    let masculine = folded.trim_end_matches('s').strip_suffix('e').filter(|_| word.senses.is_participle);
    let masculine = masculine.unwrap_or("");
    // Without duplicates: phrases are looked up under each of them.
    [
        folded,
        if plain == folded { "" } else { plain },
        if verb == folded || verb == plain { "" } else { verb },
        if masculine == folded || masculine == plain { "" } else { masculine },
    ]
}

struct WordContext<'s, 'a> {
    pieces: &'s [FrenchPiece<'a>],
    at: usize,
    terms: &'s [GlossTerm<'a>],
    shouted: bool,
}

impl WordContext<'_, '_> {
    fn word(&self, at: usize) -> Option<&FrenchWord<'_>> {
        match self.pieces.get(at)? {
            FrenchPiece::Word(word) => Some(word),
            FrenchPiece::Kept(_) | FrenchPiece::Mark(_) => None,
        }
    }

    fn before(&self) -> Option<&FrenchWord<'_>> {
        self.word(self.at.checked_sub(1)?)
    }

    fn follows_noun(&self) -> bool {
        let adjacent = self.before().is_some_and(|word| !ARTICLES.contains(&word.folded.as_str()));
        let role = self.terms.last().map(|term| term.role);
        adjacent && matches!(role, Some(TermRole::Noun | TermRole::Adjective | TermRole::Name))
    }

    /// Whether a request may begin here: at the start of the text, after a punctuation mark, or after "and".
    fn begins(&self) -> bool {
        !self.is_counted()
            && self.before().is_none_or(|word| {
                matches!(word.folded.as_str(), "et" | "puis" | "ensuite" | "ou" | "alors" | "mais" | "donc")
            })
    }

    /// Whether a number with an article stands before: "les 3 livres".
    fn is_counted(&self) -> bool {
        let Some(at) = self.at.checked_sub(1) else { return false };
        let determiner = |word: &FrenchWord<'_>| {
            ["les", "des", "ces", "mes", "ses", "nos", "vos", "leurs"].contains(&word.folded.as_str())
        };
        matches!(self.pieces[at], FrenchPiece::Kept(_))
            && at.checked_sub(1).and_then(|at| self.word(at)).is_some_and(determiner)
    }

    /// Whether only a verb fits here: an imperative before its object, or a verb beside its subject.
    fn needs_verb(&self) -> bool {
        let near = |at: Option<&FrenchWord<'_>>, list: &[&str]| {
            at.is_some_and(|word| list.contains(&word.folded.as_str()))
        };
        let next = self.word(self.at + 1);
        near(self.before(), &SUBJECTS)
            || near(next, &INVERTED)
            || self.is_inverted_verb()
            || self.is_imperative()
            || (self.begins() && near(next, &OBJECT_STARTS))
    }

    /// Whether a time of day stands at `at`: "14h", "9 heures".
    fn is_time(&self, at: usize) -> bool {
        let Some(FrenchPiece::Kept(kept)) = self.pieces.get(at) else { return false };
        let hours = || self.word(at + 1).is_some_and(|word| word.folded.starts_with("heure"));
        kept.starts_with(|c: char| c.is_ascii_digit()) && (kept.contains(['h', ':']) || hours())
    }

    /// Whether a request begins with what could only be a plural noun without an article: "arrondis 3.14159". Verbs in
    /// "er" are left out, because requests do begin with plurals that look like one: "factures impayées".
    fn is_imperative(&self) -> bool {
        let verb = |word: &FrenchWord<'_>| word.senses.verb.is_some_and(|verb| !verb.french.ends_with("er"));
        self.begins() && self.word(self.at).is_some_and(|word| word.senses.is_plural && verb(word))
    }

    /// Whether "plus" or "moins" says which of several: an article stands before it, with or without a number, and an
    /// adjective after it.
    fn is_superlative(&self) -> bool {
        let article =
            |at: usize| self.word(at).is_some_and(|word| matches!(word.folded.as_str(), "le" | "la" | "les"));
        let is_determined = self.at.checked_sub(1).is_some_and(article) || self.is_counted();
        let senses = self.word(self.at + 1).map(|next| next.senses);
        is_determined && senses.is_some_and(|senses| senses.adjective.is_some() || senses.is_participle)
    }

    /// Whether the verb of a question stands here, before its subject: "à quelle heure ferme la boutique".
    fn is_inverted_verb(&self) -> bool {
        let asks = |word: &FrenchWord<'_>| {
            matches!(
                word.folded.as_str(),
                "quel" | "quelle" | "quels" | "quelles" | "combien" | "quand" | "ou"
            )
        };
        let begins = (0..2).filter_map(|at| self.word(at)).any(asks);
        let after_noun = self.terms.last().is_some_and(|term| term.role == TermRole::Noun);
        let article = self
            .word(self.at + 1)
            .is_some_and(|next| matches!(next.folded.as_str(), "le" | "la" | "les" | "l"));
        // "la note la plus haute" is a noun.
        let compares =
            self.word(self.at + 2).is_some_and(|next| matches!(next.folded.as_str(), "plus" | "moins"));
        begins && after_noun && article && !compares
    }

    /// Whether a word is the name of the folder or branch before it: "la branche main" has nothing to do with hands.
    fn is_bare_name(&self, word: &FrenchWord<'_>) -> bool {
        let is_noun =
            word.senses.plain.map_or(word.senses.verb.is_none(), |entry| entry.kind == PartOfSpeech::Noun);
        let named = |before: &FrenchWord<'_>| NAMED_NOUNS.contains(&before.folded.as_str());
        // "une branche git" is a branch of a kind.
        let article = self.at.checked_sub(2).and_then(|at| self.word(at));
        let is_one =
            article.is_some_and(|word| matches!(word.folded.as_str(), "le" | "la" | "du" | "au" | "l"));
        is_noun
            && is_one
            && word.senses.adjective.is_none()
            && word.written.is_ascii()
            && self.before().is_some_and(named)
    }

    /// Whether a verb after "combien de" and a noun says what has so many: "combien de lignes compte a.txt".
    fn says_amount(&self) -> bool {
        let counts = |term: &GlossTerm<'_>| term.english.starts_with("how many");
        let after_noun = self.terms.last().is_some_and(|term| term.role == TermRole::Noun);
        after_noun && self.terms.len() <= 3 && self.terms.first().is_some_and(counts)
    }

    /// Whether the sentence so far contains a verb of conversion, so that "en" means "to".
    fn converts(&self) -> bool {
        let sentence = self.terms.iter().rev().take_while(|term| term.role != TermRole::Mark);
        sentence.take(8).any(|term| ["convert", "translate", "change"].contains(&&*term.english))
    }

    /// Whether "de" introduces an origin in space or time: a place, a date after "du", an hour. "De 300 euros" is an
    /// amount.
    fn is_departure(&self, of: &FrenchWord<'_>) -> bool {
        let next = self.at + 1;
        let amount = matches!(self.pieces.get(next), Some(FrenchPiece::Kept(_)));
        self.is_name(next) && (!amount || of.folded == "du" || self.is_time(next))
    }

    fn is_name(&self, at: usize) -> bool {
        match self.pieces.get(at) {
            Some(FrenchPiece::Word(word)) => is_place(word) || word.is_capitalised_name(),
            Some(FrenchPiece::Kept(_)) => true,
            Some(FrenchPiece::Mark(_)) | None => false,
        }
    }
}

/// Nouns whose name follows them without an article.
const NAMED_NOUNS: [&str; 3] = ["dossier", "repertoire", "branche"];

/// Words that follow an imperative, which often looks like a noun: "ferme les volets".
const OBJECT_STARTS: [&str; 28] = [
    "le", "la", "les", "l", "un", "une", "mon", "ma", "mes", "ce", "cet", "cette", "ces", "moi", "nous",
    "tous", "toutes", "tout", "combien", "chaque", "lui", "si", "son", "sa", "ses", "notre", "nos", "leur",
];

/// Words that follow an inverted verb: "compte-t-elle".
const INVERTED: [&str; 8] = ["tu", "t", "il", "elle", "on", "ils", "elles", "moi"];

/// Subjects, which precede a verb: "il porte".
const SUBJECTS: [&str; 17] =
    ["je", "j", "tu", "il", "elle", "on", "ils", "elles", "qui", "me", "m", "te", "se", "s", "ne", "n", "y"];

/// Words before a past participle.
const AUXILIARIES: [&str; 10] =
    ["ete", "est", "sont", "etait", "etaient", "ont", "avons", "avez", "avait", "avaient"];

fn is_place(word: &FrenchWord<'_>) -> bool {
    word.senses.plain.is_some_and(|entry| entry.kind == PartOfSpeech::Name)
}

fn one_word<'a>(word: &FrenchWord<'a>, around: &WordContext<'_, 'a>) -> GlossTerm<'a> {
    let after_article =
        || around.before().is_some_and(|before| DETERMINERS.contains(&before.folded.as_str()));
    let named = word.is_capitalised_name() && !around.shouted;
    if named
        && !is_place(word)
        && !(word.senses.is_exact && after_article() && !is_capital(around.word(around.at + 1)))
    {
        return GlossTerm { english: Cow::Borrowed(word.written), role: TermRole::Name };
    }
    if around.is_bare_name(word) {
        return GlossTerm { english: Cow::Borrowed(word.written), role: TermRole::Other };
    }
    if let Some(term) = small_word(word, around) {
        return term;
    }
    match sense(word, around) {
        Some((entry, true)) if around.word(around.at + 1).is_some_and(|next| next.folded == "par") => {
            GlossTerm { role: TermRole::Verb, ..term_of(entry, true) }
        }
        Some((entry, _)) if entry.kind == PartOfSpeech::Noun && word.senses.is_plural => GlossTerm {
            english: Cow::Owned(each_meaning(entry, forms::english_plural)),
            role: TermRole::Noun,
        },
        Some((entry, participle)) => term_of(entry, participle),
        None => GlossTerm { english: cognate(word), role: TermRole::Name },
    }
}

/// After these words a capital letter does not mark a person's name.
const DETERMINERS: [&str; 12] = ["le", "la", "les", "l", "un", "une", "du", "des", "au", "mon", "ma", "mes"];

fn is_capital(word: Option<&FrenchWord<'_>>) -> bool {
    word.is_some_and(FrenchWord::is_capitalised_name)
}

/// Words after which a noun stands, even if it looks like a function word: "le son", "l'est".
fn takes_noun(folded: &str) -> bool {
    matches!(folded, "le" | "l" | "du" | "au")
}

/// The sense that fits the position of the word, and whether it is a participle.
fn sense(word: &FrenchWord<'_>, around: &WordContext<'_, '_>) -> Option<(LexiconEntry, bool)> {
    let senses = word.senses;
    let verb = senses.verb.map(|entry| (entry, senses.is_participle));
    if word.folded == "suis" && around.begins() {
        // "Suis mon colis": no request begins with "am".
        return verb;
    }
    if let Some(small) = senses.plain.filter(|entry| entry.kind == PartOfSpeech::Small) {
        let noun = senses.noun.filter(|_| around.before().is_some_and(|before| takes_noun(&before.folded)));
        return Some((noun.unwrap_or(small), false));
    }
    if around.needs_verb() && !senses.is_participle && verb.is_some() {
        return verb;
    }
    if senses.is_participle
        && around.before().is_some_and(|before| AUXILIARIES.contains(&before.folded.as_str()))
    {
        // "ont été prises" has nothing to do with plugs.
        return verb.or_else(|| senses.plain.map(|entry| (entry, false)));
    }
    if around.follows_noun() && senses.adjective.is_some() {
        return senses.adjective.map(|entry| (entry, false));
    }
    senses.plain.map(|entry| (entry, false)).or(verb)
}

/// Function words whose meaning depends on their context.
fn small_word<'a>(word: &FrenchWord<'_>, around: &WordContext<'_, '_>) -> Option<GlossTerm<'a>> {
    let next = around.word(around.at + 1);
    let verb_follows = next.is_some_and(|next| next.senses.plain.is_none() && next.senses.verb.is_some());
    let role_before = around.terms.last().map(|term| term.role);
    let after_noun = matches!(role_before, Some(TermRole::Noun | TermRole::Adjective | TermRole::Name));
    let follows_kept =
        around.at.checked_sub(1).is_some_and(|at| matches!(around.pieces[at], FrenchPiece::Kept(_)));
    let other = |english| Some(GlossTerm { english: Cow::Borrowed(english), role: TermRole::Other });
    match expand_contraction(&word.folded) {
        "a" if around.is_time(around.at + 1) => other("at"),
        "depuis" if around.is_name(around.at + 1) => other("from"),
        "en" if around.converts() => other("to"),
        "ete" if around.before().is_some_and(|before| has_been(&before.folded)) => other("been"),
        "plus" | "moins" if around.is_superlative() => {
            let english = if word.folded == "plus" { "most" } else { "least" };
            Some(GlossTerm { english: Cow::Borrowed(english), role: TermRole::Degree })
        }
        "dure" | "durent" if around.says_amount() => other("last"),
        "qui" if after_noun || follows_kept => other("that"),
        "compte" | "comptent" | "comporte" | "comportent" if around.says_amount() => other("contain"),
        "pour" if verb_follows => other("to"),
        "de" if verb_follows => other(""),
        "de" if around.is_departure(word) && leads_to(around, around.at + 2) => other("from"),
        "de" if !after_noun && !matches!(word.folded.as_str(), "de" | "d") => other(""),
        "de" if after_noun && is_noun(next) && matches!(word.folded.as_str(), "de" | "d") => {
            Some(GlossTerm { english: Cow::Borrowed("of"), role: TermRole::Of })
        }
        "a" if next.is_some_and(is_place) && !comes_from(around) => other("in"),
        "a" if word.written == "a" => None,
        "a" if verb_follows => other("to"),
        _ => None,
    }
}

/// Whether "été" after this word is "been" and not "summer".
fn has_been(folded: &str) -> bool {
    matches!(
        folded,
        "a" | "ai" | "as" | "avons" | "avez" | "ont" | "avait" | "aura" | "pas" | "deja" | "jamais"
    )
}

fn is_noun(word: Option<&FrenchWord<'_>>) -> bool {
    word.and_then(|word| word.senses.plain).is_some_and(|entry| entry.kind == PartOfSpeech::Noun)
}

/// Whether "à" or "vers" stands at `at` or soon after.
fn leads_to(around: &WordContext<'_, '_>, at: usize) -> bool {
    (at..at + 3)
        .filter_map(|at| around.word(at))
        .any(|word| matches!(expand_contraction(&word.folded), "a" | "vers" | "jusqu"))
}

fn comes_from(around: &WordContext<'_, '_>) -> bool {
    around.terms.iter().rev().take(4).any(|term| term.english == "from")
}

fn term_of<'a>(entry: LexiconEntry, participle: bool) -> GlossTerm<'a> {
    let role = match entry.kind {
        PartOfSpeech::Small if is_superlative(entry) => TermRole::Adjective,
        PartOfSpeech::Small => TermRole::Other,
        PartOfSpeech::Name | PartOfSpeech::Noun => TermRole::Noun,
        PartOfSpeech::Adjective => TermRole::Adjective,
        PartOfSpeech::Verb if participle => TermRole::Adjective,
        PartOfSpeech::Verb => TermRole::Verb,
    };
    let english = if participle {
        Cow::Owned(each_meaning(entry, forms::english_participle))
    } else if entry.english.contains('/') {
        Cow::Owned(entry.english.replace('/', MEANINGS))
    } else {
        Cow::Borrowed(entry.english)
    };
    GlossTerm { english, role }
}

/// Whether a phrase says which of several: "le mot le plus fréquent", "the most frequent word".
fn is_superlative(entry: LexiconEntry) -> bool {
    let compares = entry.french.starts_with("plus ") || entry.french.starts_with("moins ");
    let most = ["most ", "least ", "best "].iter().any(|start| entry.english.starts_with(start));
    compares && (most || entry.english.ends_with("est"))
}

fn each_meaning(entry: LexiconEntry, bent: impl Fn(&str) -> String) -> String {
    let meanings: Vec<String> = entry.english.split('/').map(bent).collect();
    meanings.join(MEANINGS)
}

const MEANINGS: &str = "·";

/// An unknown word in its likely English spelling: `ergonomique` as `ergonomic`.
fn cognate<'a>(word: &FrenchWord<'a>) -> Cow<'a, str> {
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

/// Endings that correspond in French and English.
#[rustfmt::skip]
const COGNATES: &[(&str, &str)] = &[
    ("ologie", "ology"), ("ographie", "ography"), ("onomie", "onomy"), ("ometrie", "ometry"),
    ("ique", "ic"), ("ite", "ity"), ("isme", "ism"), ("iste", "ist"), ("ateur", "ator"), ("atrice", "ator"),
    ("cteur", "ctor"), ("ionnel", "ional"), ("ionnelle", "ional"), ("iel", "ial"), ("ielle", "ial"),
    ("uelle", "ual"), ("ieux", "ious"), ("ieuse", "ious"), ("ienne", "ian"), ("iser", "ize"),
    ("ifier", "ify"), ("atif", "ative"), ("itif", "itive"), ("ctif", "ctive"), ("oire", "ory"),
];

/// Maximum number of nouns reordered in a chain: longer ones are unreadable, and the cost would grow.
const LONGEST_CHAIN: usize = 4;

/// Moves modifiers before their noun: adjectives, the last one first, then names, as in "dépôt GitHub privé". Of two
/// nouns joined by "de" the second comes first.
fn nouns_last(terms: Vec<GlossTerm<'_>>) -> Vec<GlossTerm<'_>> {
    let mut out: Vec<GlossTerm<'_>> = Vec::with_capacity(terms.len());
    let mut terms = terms.into_iter().peekable();
    // Start and length of the current chain of nouns joined by "de".
    let mut start = None;
    let mut joined = 0;
    while let Some(term) = terms.next() {
        if term.role != TermRole::Noun {
            start = None;
            out.push(term);
            continue;
        }
        let (mut adjectives, mut names) = (Vec::new(), Vec::new());
        while let Some(more) = terms.next_if(|next| matches!(next.role, TermRole::Adjective | TermRole::Name))
        {
            if more.role == TermRole::Name { names.push(more) } else { adjectives.push(more) }
        }
        let thing: Vec<_> = adjectives.into_iter().rev().chain(names).chain([term]).collect();
        let at = start.unwrap_or(out.len());
        out.splice(at..at, thing);
        joined = if start.is_some() { joined + 1 } else { 1 };
        start = terms.next_if(|next| next.role == TermRole::Of && joined < LONGEST_CHAIN).map(|_| at);
    }
    out
}

/// The terms as text, without the punctuation of an omitted courtesy.
fn joined(terms: &[GlossTerm<'_>]) -> String {
    let mut gloss = String::new();
    for term in terms {
        let opens_line = gloss.is_empty() || gloss.ends_with('\n');
        let tight = term.role == TermRole::Mark && !term.english.starts_with(['-', '–', '—', '•', '*', '(']);
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
