//! Tokenizes an intent into words and literals, each word with its function and its concept.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use crate::fold::fold;
use crate::literals::{IntentLiteral, LiteralClass, literals};
use crate::vocabulary as table;

/// The function of a word in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordFunction {
    /// No function.
    Nothing,
    /// States something, or asks whether it is so.
    Stating,
    /// Asks to show the result.
    Ask,
    /// Adds nothing that a tool would act on.
    Light,
    /// Negates the request.
    Negation,
    /// Joins two parts of a request.
    Joining,
    /// Relates the next word to the sentence: bits of [`table::ROLES`].
    Role(u16),
    /// Names what is requested.
    Content,
}

/// A word of an intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentWord {
    /// The word as written.
    pub raw: String,
    /// The concept, equal for synonyms: the name of the group, else the stem.
    pub concept: String,
    /// The function in the request.
    pub function: WordFunction,
    /// The byte range in the intent.
    pub span: Range<usize>,
}

/// A token of an intent.
#[derive(Debug, Clone, PartialEq)]
pub enum IntentToken {
    /// A word.
    Word(IntentWord),
    /// A literal.
    Literal(IntentLiteral),
}

impl IntentToken {
    /// The byte range in the intent.
    pub fn span(&self) -> &Range<usize> {
        match self {
            IntentToken::Word(word) => &word.span,
            IntentToken::Literal(literal) => &literal.span,
        }
    }

    /// The word, where it is a content word.
    pub fn content_word(&self) -> Option<&IntentWord> {
        match self {
            IntentToken::Word(word) if word.function == WordFunction::Content => Some(word),
            IntentToken::Word(_) | IntentToken::Literal(_) => None,
        }
    }
}

/// The words of a phrase, and the concepts they are read as.
type PhraseMeaning = (&'static [&'static str], &'static str);

/// The tokens of `intent`.
pub fn tokenize(intent: &str) -> Vec<IntentToken> {
    let mut found = Vec::new();
    let mut from = 0;
    for literal in literals(intent) {
        words(intent, from..literal.span.start, &mut found);
        from = literal.span.end;
        found.push(IntentToken::Literal(literal));
    }
    words(intent, from..intent.len(), &mut found);
    nouns_of_literals(&mut found);
    verbs_of_statements(&mut found);
    found
}

/// The words in `range` of `intent`.
fn words(intent: &str, range: Range<usize>, found: &mut Vec<IntentToken>) {
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

/// Reads `don't` as `do not`.
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

/// Adds the first word or phrase of `plain` to `found`; returns the number of words it took.
fn word(intent: &str, plain: &[(Range<usize>, String)], found: &mut Vec<IntentToken>) -> usize {
    // `the phone number of Ann` is no count.
    let noun = found.last().and_then(IntentToken::content_word);
    let is_compound =
        plain[0].1 == "number" && noun.is_some_and(|noun| table::NUMBERED.contains(&noun.concept.as_str()));
    let mut push = |span: Range<usize>, concept: &str, part| {
        let raw = intent[span.clone()].to_owned();
        found.push(IntentToken::Word(IntentWord { raw, concept: concept.to_owned(), function: part, span }));
    };
    let says = |phrase: &[&str]| {
        phrase.len() <= plain.len() && phrase.iter().zip(plain).all(|(word, (_, folded))| word == folded)
    };
    if let Some((phrase, role)) = table::ROLE_PHRASES.iter().find(|(phrase, _)| says(phrase)) {
        push(plain[0].0.start..plain[phrase.len() - 1].0.end, phrase[0], WordFunction::Role(*role));
        return phrase.len();
    }
    let longest = phrases(&plain[0].1)
        .iter()
        .filter(|(phrase, _)| says(phrase) && !is_compound)
        .max_by_key(|(phrase, _)| phrase.len());
    if let Some((phrase, meaning)) = longest {
        let span = plain[0].0.start..plain[phrase.len() - 1].0.end;
        for concept in meaning.split_whitespace() {
            push(
                span.clone(),
                concept,
                if concept == "?" { WordFunction::Ask } else { WordFunction::Content },
            );
        }
        return phrase.len();
    }
    let (span, folded) = plain[0].clone();
    let (part, concept) = meaning(&intent[span.clone()], &folded);
    push(span, &concept, part);
    1
}

/// The phrases that begin with a word.
fn phrases(first: &str) -> &'static [PhraseMeaning] {
    static BY_WORD: LazyLock<HashMap<&str, Vec<PhraseMeaning>>> = LazyLock::new(|| {
        let mut by_word: HashMap<&str, Vec<PhraseMeaning>> = HashMap::new();
        for phrase in table::PHRASES {
            by_word.entry(phrase.0[0]).or_default().push(*phrase);
        }
        by_word
    });
    BY_WORD.get(first).map_or(&[], Vec::as_slice)
}

/// The function and the concept of a word.
fn meaning(raw: &str, folded: &str) -> (WordFunction, String) {
    let among = |words: &[&str]| words.contains(&folded);
    let role = table::ROLES.iter().find(|(word, _)| *word == folded);
    if let Some((_, role)) = role.filter(|_| folded != "a" || raw != folded && raw != "A") {
        return (WordFunction::Role(*role), folded.to_owned());
    }
    let part = match folded {
        _ if among(table::VOID) => WordFunction::Nothing,
        _ if among(table::STATING) => WordFunction::Stating,
        _ if among(table::NEGATION) => WordFunction::Negation,
        _ if among(table::JOINING) => WordFunction::Joining,
        _ if among(table::LIGHT) => WordFunction::Light,
        _ if among(table::ASK) || table::ASK.contains(&stem(folded).as_str()) => WordFunction::Ask,
        _ => return (WordFunction::Content, concept(raw)),
    };
    let name = if part == WordFunction::Joining { "and" } else { folded };
    (part, name.to_owned())
}

/// The function of a folded word in a request.
pub fn function_of(folded: &str) -> WordFunction {
    meaning(folded, folded).0
}

/// The concept of a word: the name of its group, else its stem. `fermé` is not `ferme`: a participle is marked, so
/// that it is no request to do it.
pub fn concept(word: &str) -> String {
    let lower = word.to_lowercase();
    let done = ["é", "ée", "és", "ées"].iter().find_map(|end| lower.strip_suffix(end));
    match done.filter(|stem| stem.len() > 2) {
        Some(stem) => format!("{}~", named(&fold(&format!("{stem}e")))),
        None => named(&fold(word)),
    }
}

/// Whether the concept of a word names a group of the vocabulary.
pub fn is_known_word(word: &str) -> bool {
    let concept = concept(word);
    table::GROUPS.iter().any(|group| group[0] == concept.trim_end_matches('~'))
}

/// The name of the group of a folded word, else its stem. A participle of a known verb has the mark of one: `answered`.
fn named(folded: &str) -> String {
    static NAMES: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
        let named = |group: &&'static [&'static str]| {
            let name = group[0];
            group.iter().map(move |word| (*word, name)).collect::<Vec<_>>()
        };
        table::GROUPS.iter().flat_map(named).collect()
    });
    let stem = stem(folded);
    if let Some(name) = NAMES.get(folded).or_else(|| NAMES.get(stem.as_str())) {
        return (*name).to_owned();
    }
    let verb = |base: &str| NAMES.get(base).map(|name| format!("{name}~"));
    let done = folded.strip_suffix("ied").and_then(|rest| verb(&format!("{rest}y")));
    let done = done.or_else(|| folded.strip_suffix('d').filter(|rest| rest.ends_with('e')).and_then(verb));
    done.or_else(|| folded.strip_suffix("ed").and_then(verb)).unwrap_or(stem)
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
    if let Some(rest) = cut("rs").filter(|rest| rest.ends_with('e')) {
        return rest.to_owned();
    }
    cut("s").unwrap_or(folded).to_owned()
}

/// The part of a concept that its inflected forms and its spellings share: `use`, `used` and `using`, `litre` and
/// `liter`. Words of another meaning may share it too, so it is for words that stand at the same place.
pub fn family(concept: &str) -> Cow<'_, str> {
    let word = concept.trim_end_matches('~');
    let has_vowel = |rest: &&str| rest.chars().count() > 2 && rest.contains(['a', 'e', 'i', 'o', 'u', 'y']);
    let rest =
        word.strip_suffix("ing").filter(has_vowel).or_else(|| word.strip_suffix("ed").filter(has_vowel));
    let rest = rest.unwrap_or(word);
    if let Some(american) = american(rest) {
        return american.into();
    }
    let rest = rest.strip_suffix('e').filter(|rest| rest.len() > 1).unwrap_or(rest);
    let mut ends = rest.chars().rev();
    match (ends.next(), ends.next()) {
        (Some(last), Some(before)) if last == before && last.is_ascii_alphabetic() && rest.len() > 3 => {
            rest[..rest.len() - 1].into()
        }
        _ => rest.into(),
    }
}

/// The American spelling of a word that is written otherwise in British English: `colour`, `litre`, `organise`. Words in
/// `er` have lost their last letter.
fn american(word: &str) -> Option<String> {
    let end = |british: &str, american: &str, least: usize| {
        let rest = word.strip_suffix(british).filter(|rest| rest.len() >= least)?;
        Some(format!("{rest}{american}"))
    };
    end("our", "or", 3)
        .or_else(|| end("tre", "t", 2))
        .or_else(|| end("ise", "iz", 4))
        .or_else(|| end("is", "iz", 5))
}

/// Marks verbs that add nothing to a statement as light: `the commits that Karl made`.
fn verbs_of_statements(found: &mut [IntentToken]) {
    let mut stated = false;
    let mut begun = false;
    for token in found.iter_mut() {
        let IntentToken::Word(word) = token else {
            begun = true;
            continue;
        };
        let folded = fold(&word.raw);
        match word.function {
            WordFunction::Joining => (stated, begun) = (false, false),
            WordFunction::Content if stated && table::EMPTY_VERBS.contains(&folded.as_str()) => {
                word.function = WordFunction::Light;
            }
            // `lines containing a word` are lines that contain it.
            WordFunction::Content if begun && folded == "containing" => word.function = WordFunction::Light,
            // `how many lines does it contain`, and in another order in other languages.
            WordFunction::Content if folded == "how many" => (stated, begun) = (true, true),
            // `can you do it` is an order.
            _ if table::STATEMENT_STARTS.contains(&folded.as_str()) => stated |= begun || folded != "do",
            WordFunction::Content => begun = true,
            _ => {}
        }
    }
}

/// Marks nouns that repeat what the literal after them shows as light: `the file named a.txt`.
fn nouns_of_literals(found: &mut [IntentToken]) {
    let mut next = None;
    for token in found.iter_mut().rev() {
        match token {
            IntentToken::Literal(literal) => next = Some(literal.class),
            IntentToken::Word(word) => match word.function {
                WordFunction::Nothing | WordFunction::Light => {}
                WordFunction::Content if next.is_some_and(|class| shown_by(class, &word.concept)) => {
                    word.function = WordFunction::Light;
                    next = None;
                }
                WordFunction::Stating
                | WordFunction::Ask
                | WordFunction::Negation
                | WordFunction::Joining
                | WordFunction::Role(_)
                | WordFunction::Content => next = None,
            },
        }
    }
}

/// Whether `noun` repeats what a literal of `class` shows by itself.
pub fn shown_by(class: LiteralClass, noun: &str) -> bool {
    match class {
        LiteralClass::Path => table::FILE_NOUNS.contains(&noun),
        LiteralClass::Url | LiteralClass::Host => table::ADDRESS_NOUNS.contains(&noun),
        LiteralClass::Email | LiteralClass::Handle => table::PERSON_NOUNS.contains(&noun),
        LiteralClass::Channel => noun == "channel",
        LiteralClass::Version => noun == "version",
        LiteralClass::Name => noun == "city",
        LiteralClass::Quoted
        | LiteralClass::Zone
        | LiteralClass::Date
        | LiteralClass::Id
        | LiteralClass::Phone
        | LiteralClass::Number
        | LiteralClass::Ordinal => false,
    }
}
