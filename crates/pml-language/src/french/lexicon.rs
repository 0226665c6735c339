//! The French lexicon: words and phrases with their English.
//!
//! It is parsed once from the lists beside this file: one entry per line, `french=english`. A slash separates two
//! meanings; an empty right side means that the word is left out. Words are looked up as written, else without accents,
//! else by their forms; verbs are separate because they have most forms.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::sync::OnceLock;

use super::forms::{self, Conjugation, WordHasher, WordMap, split_elision};
use crate::fold::fold;

/// Part of speech, as far as word order depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartOfSpeech {
    /// Function words: pronouns, prepositions, adverbs, numbers.
    Small,
    /// Places, months, abbreviations: the only entries that are translated when written with a capital.
    Name,
    Noun,
    Adjective,
    Verb,
}

/// A French word or phrase with its English.
#[derive(Debug, Clone, Copy)]
pub(super) struct LexiconEntry {
    pub(super) kind: PartOfSpeech,
    /// French side, in folded form.
    pub(super) french: &'static str,
    /// Meanings separated by slashes; may be empty.
    pub(super) english: &'static str,
}

/// Senses of a word in a text.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WordSenses {
    /// Entry of the word itself, or of its singular or masculine.
    pub(super) plain: Option<LexiconEntry>,
    /// Whether `plain` is listed exactly as written.
    pub(super) is_exact: bool,
    /// Whether the word is the plural of `plain`.
    pub(super) is_plural: bool,
    pub(super) adjective: Option<LexiconEntry>,
    /// A noun that looks like a function word.
    pub(super) noun: Option<LexiconEntry>,
    pub(super) verb: Option<LexiconEntry>,
    /// Whether the verb form is a past participle.
    pub(super) is_participle: bool,
}

struct LexiconPhrase {
    words: Vec<&'static str>,
    entry: LexiconEntry,
}

/// All entries.
pub(super) struct Lexicon {
    words: WordMap<&'static str, LexiconEntry>,
    adjectives: WordMap<&'static str, LexiconEntry>,
    /// Nouns that look like function words.
    hidden_nouns: WordMap<&'static str, LexiconEntry>,
    verbs: WordMap<&'static str, LexiconEntry>,
    /// Phrases by their first word.
    phrases: WordMap<&'static str, Vec<LexiconPhrase>>,
    conjugation: Conjugation,
    /// Words of the English side, in lower case.
    english: HashSet<Box<str>, BuildHasherDefault<WordHasher>>,
}

/// The lists, in order of precedence.
const LISTS: [(PartOfSpeech, &str); 5] = [
    (PartOfSpeech::Small, include_str!("small.txt")),
    (PartOfSpeech::Name, include_str!("names.txt")),
    (PartOfSpeech::Noun, include_str!("nouns.txt")),
    (PartOfSpeech::Adjective, include_str!("adjectives.txt")),
    (PartOfSpeech::Verb, include_str!("verbs.txt")),
];

/// French words that English spells alike although no entry translates to them.
const ALSO_ENGLISH: &str = include_str!("also_english.txt");

/// Articles, which are skipped in phrases.
pub(super) const ARTICLES: [&str; 4] = ["le", "la", "les", "l"];

/// The lexicon, parsed on first use.
pub(super) fn lexicon() -> &'static Lexicon {
    static LEXICON: OnceLock<Lexicon> = OnceLock::new();
    LEXICON.get_or_init(Lexicon::read)
}

impl Lexicon {
    fn read() -> Lexicon {
        let mut lexicon = Lexicon {
            words: WordMap::default(),
            adjectives: WordMap::default(),
            hidden_nouns: WordMap::default(),
            verbs: WordMap::default(),
            phrases: WordMap::default(),
            conjugation: Conjugation::new(),
            english: ALSO_ENGLISH.lines().map(Box::from).collect(),
        };
        // Leaked on purpose: kept for the life of the program, like the lists they come from.
        let folded: &'static str = Box::leak(all_folded().into_boxed_str());
        let mut accented = Vec::new();
        for ((kind, written, english), french) in entries().zip(folded.lines()) {
            lexicon.english.extend(english.split([' ', '/', '-']).map(|word| word.to_lowercase().into()));
            let entry = LexiconEntry { kind, french, english };
            if written.contains(' ') || split_elision(written).is_some() {
                lexicon.add_phrase(entry);
            } else {
                lexicon.add_word(written, entry);
                accented.push((written, entry));
            }
        }
        // Entries without accents come last: `marché` must not replace `marche`, nor `trié` a form of `trier`.
        for (written, entry) in accented.into_iter().filter(|(_, entry)| entry.kind != PartOfSpeech::Verb) {
            let of_verb =
                written.ends_with('é') && lexicon.verbs.contains_key(&*format!("{}r", entry.french));
            if !of_verb {
                lexicon.words.entry(entry.french).or_insert(entry);
            }
        }
        lexicon
    }

    fn add_word(&mut self, written: &'static str, entry: LexiconEntry) {
        if entry.kind == PartOfSpeech::Verb {
            self.verbs.entry(entry.french).or_insert(entry);
            return;
        }
        if entry.kind == PartOfSpeech::Adjective {
            self.adjectives.entry(entry.french).or_insert(entry);
        }
        let first = *self.words.entry(written).or_insert(entry);
        if first.kind == PartOfSpeech::Small && entry.kind == PartOfSpeech::Noun {
            self.hidden_nouns.insert(written, entry);
        }
    }

    fn add_phrase(&mut self, entry: LexiconEntry) {
        let words = entry.french.split([' ', '\'']).map(expand_contraction);
        // Articles are optional in names of things; "de la base" is not "de base".
        let loose = entry.kind != PartOfSpeech::Small;
        let is_article = |word: &&str| ARTICLES.contains(word);
        // `le plus de` is not `plus de`.
        let words: Vec<&str> = words.filter(|word| !loose || !is_article(word)).collect();
        if let Some(first) = words.first() {
            self.phrases.entry(first).or_default().push(LexiconPhrase { words, entry });
        }
    }

    /// Senses of `lower` (in lower case), whose folded form is `folded`.
    pub(super) fn senses(&self, lower: &str, folded: &str) -> WordSenses {
        let listed = self.words.get(lower).or_else(|| self.words.get(folded));
        let verb = self.verbs.get(folded).map(|verb| (*verb, false));
        let verb = verb
            .or_else(|| self.conjugation.find_verb(folded, |infinitive| self.verbs.get(infinitive).copied()));
        let nominal =
            |word: &str| self.words.get(word).filter(|entry| entry.kind != PartOfSpeech::Small).copied();
        let small = listed.is_some_and(|entry| entry.kind == PartOfSpeech::Small);
        let as_written = self.words.get(lower).copied().or_else(|| forms::find_singular(lower, nominal));
        // In `créer` the `é` belongs to the stem.
        let ends: &[&str] = match verb {
            Some((verb, _)) if verb.french.ends_with("eer") => &["éé", "éés", "éée", "éées"],
            _ => &["é", "és", "ée", "ées"],
        };
        let accented = ends.iter().any(|end| lower.ends_with(end));
        // "embauchés" is a form of "embaucher", not the plural of "embauche".
        let forced = accented && verb.is_some();
        let listed_adjective = |word: &str| match forced {
            // "fermés" is a form of "fermer", not of the adjective "ferme".
            true => self.words.get(word).filter(|entry| entry.kind == PartOfSpeech::Adjective).copied(),
            false => self.adjectives.get(word).copied(),
        };
        let adjective = || {
            let word = if forced { lower } else { folded };
            forms::find_singular(word, listed_adjective)
                .or_else(|| forms::find_masculine(word, listed_adjective))
        };
        let unaccented =
            || listed.copied().or_else(|| forms::find_singular(folded, nominal)).filter(|_| !forced);
        let plain = as_written.or_else(unaccented);
        let plural = listed.is_none() && plain.is_some();
        let plain =
            if verb.is_some() { plain } else { plain.or_else(|| forms::find_masculine(folded, nominal)) };
        WordSenses {
            plain: plain.or_else(|| if verb.is_some() { None } else { self.adverb(folded) }),
            is_exact: listed.is_some(),
            is_plural: plural,
            adjective: if small { None } else { adjective() },
            noun: self.hidden_nouns.get(lower).copied(),
            verb: verb.map(|(entry, _)| entry),
            is_participle: accented
                || verb.is_some_and(|(verb, participle)| participle && !verb.french.ends_with("eer")),
        }
    }

    /// Adverbs by their adjective: `rapidement` from `rapide`.
    fn adverb(&self, folded: &str) -> Option<LexiconEntry> {
        let adjective = |word: &str| self.adjectives.get(word).copied();
        let stem = folded.strip_suffix("ment")?;
        let entry = adjective(stem).or_else(|| forms::find_masculine(stem, adjective));
        entry.map(|entry| LexiconEntry { kind: PartOfSpeech::Small, ..entry })
    }

    /// The longest phrase that starts with one of `firsts` at `from`, and its end. `place_after(place, word, loose)`
    /// returns the end of a word that matches `word` at `place`; if `loose`, articles may stand before it.
    pub(super) fn longest_phrase(
        &self,
        firsts: &[&str],
        from: usize,
        place_after: impl Fn(usize, &str, bool) -> Option<usize>,
    ) -> Option<(LexiconEntry, usize)> {
        let lists = firsts.iter().filter_map(|first| self.phrases.get(first));
        let found = lists.flatten().filter_map(|phrase| {
            let loose = |place| place > from && phrase.entry.kind != PartOfSpeech::Small;
            let words = phrase.words.iter();
            let end =
                words.into_iter().try_fold(from, |place, word| place_after(place, word, loose(place)))?;
            Some((phrase, end))
        });
        found.max_by_key(|(phrase, _)| phrase.words.len()).map(|(phrase, end)| (phrase.entry, end))
    }

    /// Whether the word also occurs in English, so that it says nothing about the language.
    pub(super) fn is_english(&self, folded: &str) -> bool {
        let known = |word: &str| self.english.contains(word);
        known(folded) || ["s", "d", "es", "ed"].iter().any(|end| folded.strip_suffix(end).is_some_and(known))
    }
}

/// Base form of contractions for comparison: `du` and `des` are `de`, `aux` is `à`.
pub(super) fn expand_contraction(folded: &str) -> &str {
    match folded {
        "du" | "des" | "d" => "de",
        "au" | "aux" => "a",
        other => other,
    }
}

/// French sides of all entries in folded form, one per line.
fn all_folded() -> String {
    let mut folded = String::new();
    for (_, written, _) in entries() {
        folded.push_str(&fold(written));
        folded.push('\n');
    }
    folded
}

fn entries() -> impl Iterator<Item = (PartOfSpeech, &'static str, &'static str)> {
    LISTS.into_iter().flat_map(|(kind, list)| {
        list.lines()
            .filter_map(move |line| line.split_once('='))
            .map(move |(french, english)| (kind, french, english))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_an_entry_and_no_entry_comes_twice() {
        for (kind, list) in LISTS {
            let lines: Vec<&str> = list.lines().collect();
            assert!(lines.iter().all(|line| line.split('=').count() == 2), "{kind:?}");
            let keys: HashSet<&str> = lines.iter().filter_map(|line| Some(line.split_once('=')?.0)).collect();
            assert_eq!(keys.len(), lines.len(), "{kind:?}");
        }
    }
}
