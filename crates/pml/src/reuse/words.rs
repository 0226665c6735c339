//! An intent as a row of words and literals, each word with what it means to a tool.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use super::literals::{Class, Literal, literals};
use super::vocabulary as table;

/// What a word does in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Nothing.
    Void,
    /// States something, or asks whether it is so.
    Stating,
    /// Asks for the answer to be shown.
    Ask,
    /// Adds nothing a tool would act on.
    Light,
    /// Turns the request around.
    Negation,
    /// Joins two parts.
    Joining,
    /// Says how the next word is related: bits of [`table::ROLES`].
    Role(u16),
    /// Says what is wanted.
    Content,
}

/// A word of an intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// As written.
    pub(super) raw: String,
    /// What it stands for, the same for words that mean the same.
    pub(super) concept: String,
    /// What it does.
    pub(super) part: Part,
    /// Where it stands.
    pub(super) span: Range<usize>,
}

/// A piece of an intent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A word.
    Word(Word),
    /// A literal.
    Literal(Literal),
}

impl Token {
    /// Where it stands.
    pub(super) fn span(&self) -> &Range<usize> {
        match self {
            Token::Word(word) => &word.span,
            Token::Literal(literal) => &literal.span,
        }
    }

    /// The word, where it says what is wanted.
    pub(super) fn content(&self) -> Option<&Word> {
        match self {
            Token::Word(word) if word.part == Part::Content => Some(word),
            Token::Word(_) | Token::Literal(_) => None,
        }
    }
}

/// Words that belong together, and what they mean.
type Phrase = (&'static [&'static str], &'static str);

/// `intent` in pieces.
pub(super) fn tokens(intent: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut from = 0;
    for literal in literals(intent) {
        words(intent, from..literal.span.start, &mut found);
        from = literal.span.end;
        found.push(Token::Literal(literal));
    }
    words(intent, from..intent.len(), &mut found);
    nouns_of_literals(&mut found);
    found
}

/// The words in `range` of `intent`.
fn words(intent: &str, range: Range<usize>, found: &mut Vec<Token>) {
    let mut plain: Vec<(Range<usize>, String)> = Vec::new();
    let mut rest = range.start;
    while let Some(start) = intent[rest..range.end].find(is_letter).map(|at| rest + at) {
        let end = intent[start..range.end].find(|c| !is_letter(c)).map_or(range.end, |at| start + at);
        plain.push((start..end, fold(&intent[start..end])));
        rest = end;
    }
    contractions(&mut plain);
    let mut at = 0;
    while at < plain.len() {
        at += word(intent, &plain[at..], found);
    }
}

/// `don't` is read as `do not`.
fn contractions(plain: &mut [(Range<usize>, String)]) {
    for at in 1..plain.len() {
        let stem = plain[at - 1].1.clone();
        if plain[at].1 == "t" && stem.ends_with('n') && stem.len() > 2 {
            "not".clone_into(&mut plain[at].1);
            "do".clone_into(&mut plain[at - 1].1);
        }
    }
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || matches!(c, '\u{300}'..='\u{36f}')
}

/// Puts the first word or phrase of `plain` into `found`; gives how many words it took.
fn word(intent: &str, plain: &[(Range<usize>, String)], found: &mut Vec<Token>) -> usize {
    let mut push = |span: Range<usize>, concept: &str, part| {
        let raw = intent[span.clone()].to_owned();
        found.push(Token::Word(Word { raw, concept: concept.to_owned(), part, span }));
    };
    let says = |phrase: &[&str]| {
        phrase.len() <= plain.len() && phrase.iter().zip(plain).all(|(word, (_, folded))| word == folded)
    };
    let longest =
        phrases(&plain[0].1).iter().filter(|(phrase, _)| says(phrase)).max_by_key(|(phrase, _)| phrase.len());
    if let Some((phrase, meaning)) = longest {
        let span = plain[0].0.start..plain[phrase.len() - 1].0.end;
        for concept in meaning.split_whitespace() {
            push(span.clone(), concept, if concept == "?" { Part::Ask } else { Part::Content });
        }
        return phrase.len();
    }
    let (span, folded) = plain[0].clone();
    let (part, concept) = meaning(&intent[span.clone()], &folded);
    push(span, &concept, part);
    1
}

/// The phrases that begin with a word.
fn phrases(first: &str) -> &'static [Phrase] {
    static BY_WORD: LazyLock<HashMap<&str, Vec<Phrase>>> = LazyLock::new(|| {
        let mut by_word: HashMap<&str, Vec<Phrase>> = HashMap::new();
        for phrase in table::PHRASES {
            by_word.entry(phrase.0[0]).or_default().push(*phrase);
        }
        by_word
    });
    BY_WORD.get(first).map_or(&[], Vec::as_slice)
}

/// What a word does and stands for.
fn meaning(raw: &str, folded: &str) -> (Part, String) {
    let among = |words: &[&str]| words.contains(&folded);
    let role = table::ROLES.iter().find(|(word, _)| *word == folded);
    if let Some((_, role)) = role.filter(|_| folded != "a" || raw != folded && raw != "A") {
        return (Part::Role(*role), folded.to_owned());
    }
    let part = match folded {
        _ if among(table::VOID) => Part::Void,
        _ if among(table::STATING) => Part::Stating,
        _ if among(table::NEGATION) => Part::Negation,
        _ if among(table::JOINING) => Part::Joining,
        _ if among(table::LIGHT) => Part::Light,
        _ if among(table::ASK) || table::ASK.contains(&stem(folded).as_str()) => Part::Ask,
        _ => return (Part::Content, concept(raw)),
    };
    let name = if part == Part::Joining { "and" } else { folded };
    (part, name.to_owned())
}

/// What a folded word does in a request.
pub(super) fn part_of(folded: &str) -> Part {
    meaning(folded, folded).0
}

/// What a word stands for: the name of its group, else its stem. `fermé` is not `ferme`: what has been done
/// is marked, so that it is no request to do it.
pub(super) fn concept(word: &str) -> String {
    let lower = word.to_lowercase();
    let done = ["é", "ée", "és", "ées"].iter().find_map(|end| lower.strip_suffix(end));
    match done.filter(|stem| stem.len() > 2) {
        Some(stem) => format!("{}~", named(&fold(&format!("{stem}e")))),
        None => named(&fold(word)),
    }
}

/// Whether a word is one of those that tools are asked with.
pub(super) fn known(word: &str) -> bool {
    let concept = concept(word);
    table::GROUPS.iter().any(|group| group[0] == concept.trim_end_matches('~'))
}

/// The name of the group of a folded word, else its stem.
fn named(folded: &str) -> String {
    static NAMES: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
        let named = |group: &&'static [&'static str]| {
            let name = group[0];
            group.iter().map(move |word| (*word, name)).collect::<Vec<_>>()
        };
        table::GROUPS.iter().flat_map(named).collect()
    });
    let stem = stem(folded);
    NAMES.get(folded).or_else(|| NAMES.get(stem.as_str())).map_or(stem, |name| (*name).to_owned())
}

/// The word without the endings of plurals and of French verbs.
fn stem(folded: &str) -> String {
    let cut = |end: &str| folded.strip_suffix(end).filter(|rest| rest.len() > 2);
    if folded.len() < 4 || folded.ends_with("ss") || folded.ends_with("us") || folded.ends_with("is") {
        return folded.to_owned();
    }
    if let Some(rest) = cut("ies").filter(|rest| rest.len() > 3) {
        return format!("{rest}y");
    }
    if ["xes", "ches", "shes", "sses"].iter().any(|end| folded.ends_with(end)) {
        return folded[..folded.len() - 2].to_owned();
    }
    if folded.ends_with("er") || folded.ends_with("ez") {
        return folded[..folded.len() - 1].to_owned();
    }
    cut("s").unwrap_or(folded).to_owned()
}

/// A noun before a literal that says no more than the literal shows is light: `the file named a.txt`.
fn nouns_of_literals(found: &mut [Token]) {
    let mut next = None;
    for token in found.iter_mut().rev() {
        match token {
            Token::Literal(literal) => next = Some(literal.class),
            Token::Word(word) => match word.part {
                Part::Void | Part::Light => {}
                Part::Content if next.is_some_and(|class| shown_by(class, &word.concept)) => {
                    word.part = Part::Light;
                    next = None;
                }
                Part::Stating
                | Part::Ask
                | Part::Negation
                | Part::Joining
                | Part::Role(_)
                | Part::Content => next = None,
            },
        }
    }
}

/// Whether `noun` says what can be seen of a literal of `class`.
pub(super) fn shown_by(class: Class, noun: &str) -> bool {
    match class {
        Class::Path => table::FILE_NOUNS.contains(&noun),
        Class::Url | Class::Host => table::ADDRESS_NOUNS.contains(&noun),
        Class::Email | Class::Handle => table::PERSON_NOUNS.contains(&noun),
        Class::Channel => noun == "channel",
        Class::Version => noun == "version",
        Class::Name => noun == "city",
        Class::Quoted | Class::Zone | Class::Date | Class::Id | Class::Number | Class::Ordinal => false,
    }
}

/// `text` in lower case and without the accents of European languages.
pub(super) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars().flat_map(char::to_lowercase) {
        match c {
            'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' => folded.push('a'),
            'ç' => folded.push('c'),
            'è' | 'é' | 'ê' | 'ë' => folded.push('e'),
            'ì' | 'í' | 'î' | 'ï' => folded.push('i'),
            'ñ' => folded.push('n'),
            'ò' | 'ó' | 'ô' | 'õ' | 'ö' => folded.push('o'),
            'ù' | 'ú' | 'û' | 'ü' => folded.push('u'),
            'ý' | 'ÿ' => folded.push('y'),
            'œ' => folded.push_str("oe"),
            'æ' => folded.push_str("ae"),
            'ß' => folded.push_str("ss"),
            '’' => folded.push('\''),
            '\u{300}'..='\u{36f}' => {}
            other => folded.push(other),
        }
    }
    folded
}
