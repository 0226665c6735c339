//! The French lexicon: what single words and phrases mean in English.
//!
//! It is read once from the lists beside this file: one entry a line, `french=english`, where a slash
//! parts two meanings and nothing after the sign means that the word is left out. Words are found as
//! written, else without accents, else by their forms; verbs are apart because they have most forms.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::sync::OnceLock;

use super::forms::{self, Conjugation, WordHasher, WordMap, elision, fold};

/// What a word does in a sentence, as far as its place depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Pronouns, prepositions, adverbs, numbers.
    Small,
    /// Places, months, abbreviations: the only ones that are translated with a capital.
    Name,
    Noun,
    Adjective,
    Verb,
}

/// A French word or phrase and its English.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    /// In folded form.
    pub(super) french: &'static str,
    /// Meanings parted by a slash; may be empty.
    pub(super) english: &'static str,
}

/// What is known about a word found in a text.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Senses {
    /// The word itself, or the one it is the plural or feminine of.
    pub(super) plain: Option<Entry>,
    /// Whether `plain` is listed just as written.
    pub(super) exact: bool,
    /// Whether it is the plural of `plain`.
    pub(super) plural: bool,
    pub(super) adjective: Option<Entry>,
    /// The noun that looks like a small word.
    pub(super) noun: Option<Entry>,
    pub(super) verb: Option<Entry>,
    /// Whether the form of the verb is a past participle.
    pub(super) participle: bool,
}

struct Phrase {
    words: Vec<&'static str>,
    entry: Entry,
}

/// All entries.
pub(super) struct Lexicon {
    words: WordMap<&'static str, Entry>,
    adjectives: WordMap<&'static str, Entry>,
    /// Nouns that look like small words.
    hidden_nouns: WordMap<&'static str, Entry>,
    verbs: WordMap<&'static str, Entry>,
    /// By the first word.
    phrases: WordMap<&'static str, Vec<Phrase>>,
    conjugation: Conjugation,
    /// Words of the English side in lower case.
    english: HashSet<Box<str>, BuildHasherDefault<WordHasher>>,
}

/// The lists in the order in which they win over one another.
const LISTS: [(Kind, &str); 5] = [
    (Kind::Small, include_str!("small.txt")),
    (Kind::Name, include_str!("names.txt")),
    (Kind::Noun, include_str!("nouns.txt")),
    (Kind::Adjective, include_str!("adjectives.txt")),
    (Kind::Verb, include_str!("verbs.txt")),
];

/// French words that English writes alike although no entry of the lists translates to them.
const ALSO_ENGLISH: &str = include_str!("also_english.txt");

/// Words that are skipped in phrases.
pub(super) const ARTICLES: [&str; 4] = ["le", "la", "les", "l"];

/// The lexicon, read on first use.
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
        // Kept for the life of the program, like the lists they come from.
        let folded: &'static str = Box::leak(all_folded().into_boxed_str());
        let mut accented = Vec::new();
        for ((kind, written, english), french) in entries().zip(folded.lines()) {
            lexicon.english.extend(english.split([' ', '/', '-']).map(|word| word.to_lowercase().into()));
            let entry = Entry { kind, french, english };
            if written.contains(' ') || elision(written).is_some() {
                lexicon.add_phrase(entry);
            } else {
                lexicon.add_word(written, entry);
                accented.push((written, entry));
            }
        }
        // Without accents last: `marché` must not take the place of `marche`, nor `trié` that of a form
        // of `trier`.
        for (written, entry) in accented.into_iter().filter(|(_, entry)| entry.kind != Kind::Verb) {
            let of_verb =
                written.ends_with('é') && lexicon.verbs.contains_key(&*format!("{}r", entry.french));
            if !of_verb {
                lexicon.words.entry(entry.french).or_insert(entry);
            }
        }
        lexicon
    }

    fn add_word(&mut self, written: &'static str, entry: Entry) {
        if entry.kind == Kind::Verb {
            self.verbs.entry(entry.french).or_insert(entry);
            return;
        }
        if entry.kind == Kind::Adjective {
            self.adjectives.entry(entry.french).or_insert(entry);
        }
        let first = *self.words.entry(written).or_insert(entry);
        if first.kind == Kind::Small && entry.kind == Kind::Noun {
            self.hidden_nouns.insert(written, entry);
        }
    }

    fn add_phrase(&mut self, entry: Entry) {
        let words = entry.french.split([' ', '\'']).map(bare);
        // In names of things articles come and go; "de la base" is not "de base".
        let loose = entry.kind != Kind::Small;
        let is_article = |word: &&str| ARTICLES.contains(word);
        let words: Vec<&str> =
            words.skip_while(is_article).filter(|word| !loose || !is_article(word)).collect();
        if let Some(first) = words.first() {
            self.phrases.entry(first).or_default().push(Phrase { words, entry });
        }
    }

    /// What `lower` (in lower case) means, whose folded form is `folded`.
    pub(super) fn senses(&self, lower: &str, folded: &str) -> Senses {
        let listed = self.words.get(lower).or_else(|| self.words.get(folded));
        let verb = self.verbs.get(folded).map(|verb| (*verb, false));
        let verb =
            verb.or_else(|| self.conjugation.verb(folded, |infinitive| self.verbs.get(infinitive).copied()));
        let nominal = |word: &str| self.words.get(word).filter(|entry| entry.kind != Kind::Small).copied();
        let small = listed.is_some_and(|entry| entry.kind == Kind::Small);
        let listed_adjective = |word: &str| self.adjectives.get(word).copied();
        let adjective = || {
            forms::singular(folded, listed_adjective).or_else(|| forms::masculine(folded, listed_adjective))
        };
        let as_written = self.words.get(lower).copied().or_else(|| forms::singular(lower, nominal));
        // Of `créer` the `é` belongs to the stem.
        let ends: &[&str] = match verb {
            Some((verb, _)) if verb.french.ends_with("eer") => &["éé", "éés", "éée", "éées"],
            _ => &["é", "és", "ée", "ées"],
        };
        let accented = ends.iter().any(|end| lower.ends_with(end));
        // "embauchés" is a form of "embaucher", not the plural of "embauche".
        let forced = accented && verb.is_some();
        let unaccented = || listed.copied().or_else(|| forms::singular(folded, nominal)).filter(|_| !forced);
        let plain = as_written.or_else(unaccented);
        let plural = listed.is_none() && plain.is_some();
        let plain = if verb.is_some() { plain } else { plain.or_else(|| forms::masculine(folded, nominal)) };
        Senses {
            plain: plain.or_else(|| if verb.is_some() { None } else { self.adverb(folded) }),
            exact: listed.is_some(),
            plural,
            adjective: if small { None } else { adjective() },
            noun: self.hidden_nouns.get(lower).copied(),
            verb: verb.map(|(entry, _)| entry),
            participle: accented
                || verb.is_some_and(|(verb, participle)| participle && !verb.french.ends_with("eer")),
        }
    }

    /// `rapidement` by way of `rapide`.
    fn adverb(&self, folded: &str) -> Option<Entry> {
        let adjective = |word: &str| self.adjectives.get(word).copied();
        let stem = folded.strip_suffix("ment")?;
        let entry = adjective(stem).or_else(|| forms::masculine(stem, adjective));
        entry.map(|entry| Entry { kind: Kind::Small, ..entry })
    }

    /// The longest phrase that starts with one of `firsts` at `from`, and where it ends.
    /// `place_after(place, word, loose)` says where a word that matches `word` at `place` ends; if
    /// `loose`, articles may stand before it.
    pub(super) fn phrase(
        &self,
        firsts: &[&str],
        from: usize,
        place_after: impl Fn(usize, &str, bool) -> Option<usize>,
    ) -> Option<(Entry, usize)> {
        let lists = firsts.iter().filter_map(|first| self.phrases.get(first));
        let found = lists.flatten().filter_map(|phrase| {
            let loose = |place| place > from && phrase.entry.kind != Kind::Small;
            let words = phrase.words.iter();
            let end =
                words.into_iter().try_fold(from, |place, word| place_after(place, word, loose(place)))?;
            Some((phrase, end))
        });
        found.max_by_key(|(phrase, _)| phrase.words.len()).map(|(phrase, end)| (phrase.entry, end))
    }

    /// Whether an English text may hold this word, so that it says nothing about the language.
    pub(super) fn is_english(&self, folded: &str) -> bool {
        let known = |word: &str| self.english.contains(word);
        known(folded) || ["s", "d", "es", "ed"].iter().any(|end| folded.strip_suffix(end).is_some_and(known))
    }
}

/// The word under which contractions are compared: `du` and `des` are `de`, `aux` is `à`.
pub(super) fn bare(folded: &str) -> &str {
    match folded {
        "du" | "des" | "d" => "de",
        "au" | "aux" => "a",
        other => other,
    }
}

/// The French side of all entries in folded form, one a line.
fn all_folded() -> String {
    let mut folded = String::new();
    for (_, written, _) in entries() {
        folded.push_str(&fold(written));
        folded.push('\n');
    }
    folded
}

fn entries() -> impl Iterator<Item = (Kind, &'static str, &'static str)> {
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
