//! Requests that rule each other out: `in stock` and `out of stock`, `with` and `without`, `oldest` and `newest`.
//!
//! A sentence affirms or denies each of its words, and a word may be one of two opposites. Two requests contradict each
//! other where one affirms what the other denies, counting an opposite as a denial: `not active`, `inactive` and `not
//! deactivated` are compared by how often the meaning is turned. Units of one dimension exclude each other, and so do
//! asking whether something is done and doing it. In doubt there is no contradiction: a paraphrase that is taken for the
//! opposite could not be used.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::LazyLock;

use crate::fold::fold;
use crate::kinds::{self, WordKind};
use crate::units::unit_named;
use crate::vocabulary as table;
use crate::words::{IntentToken, IntentWord, WordFunction, family};

/// What one request says, and what the other says instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opposition {
    /// The words of the first request.
    pub one: String,
    /// The words of the other request.
    pub other: String,
}

/// The tokens of a request, of which some are values that may differ.
#[derive(Debug, Clone, Copy)]
pub struct PolarText<'t> {
    tokens: &'t [IntentToken],
    values: &'t BTreeSet<usize>,
}

impl<'t> PolarText<'t> {
    /// A request with these tokens, of which `values` are the indices of those that fill a parameter.
    pub fn new(tokens: &'t [IntentToken], values: &'t BTreeSet<usize>) -> PolarText<'t> {
        PolarText { tokens, values }
    }

    /// The word at `at`, unless it is a value.
    fn word(&self, at: usize) -> Option<&'t IntentWord> {
        match self.tokens.get(at)? {
            IntentToken::Word(word) if !self.values.contains(&at) => Some(word),
            IntentToken::Word(_) | IntentToken::Literal(_) => None,
        }
    }

    fn words(&self) -> impl Iterator<Item = (usize, &'t IntentWord)> {
        (0..self.tokens.len()).filter_map(|at| Some((at, self.word(at)?)))
    }
}

/// Where two requests contradict each other; `None` where they do not, or it is not certain.
pub fn opposition(one: PolarText<'_>, other: PolarText<'_>) -> Option<Opposition> {
    let (mine, theirs) = (PolarSentence::of(one), PolarSentence::of(other));
    turned_word(&mine, &theirs)
        .or_else(|| lone_negation(&mine, &theirs))
        .or_else(|| lone_negation(&theirs, &mine).map(Opposition::swapped))
        .or_else(|| other_unit(one, other))
        .or_else(|| asked_and_done(one, other))
        .or_else(|| asked_and_done(other, one).map(Opposition::swapped))
        .or_else(|| other_direction(one, other))
}

impl Opposition {
    fn swapped(self) -> Opposition {
        Opposition { one: self.other, other: self.one }
    }
}

/// A word that a sentence affirms or denies.
#[derive(Debug, Clone)]
struct PolarWord {
    /// The word as written, with what denies it.
    shown: String,
    /// The form that its inflected forms share, and that of its synonyms.
    families: [String; 2],
    /// The axes it is an end of, each with which end.
    ends: Vec<(usize, AxisEnd)>,
    denied: bool,
    /// Whether it is compared by its ends alone: `on` is said for many reasons.
    is_particle: bool,
}

/// An end of an axis of opposites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AxisEnd {
    Left,
    Right,
}

#[derive(Debug, Default)]
struct PolarSentence {
    words: Vec<PolarWord>,
    /// What is denied, in the words of the sentence.
    denials: Vec<Denial>,
    /// Whether it says something negative in another way, so that a negation may be said by that.
    has_negative_word: bool,
    /// The words that deny what they are said of.
    lacks: Vec<String>,
}

#[derive(Debug)]
struct Denial {
    text: String,
    /// The word that is denied, by index in `words`; `None` where a value is.
    word: Option<usize>,
}

/// How the meanings of two words relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Same,
    Opposite,
}

impl PolarSentence {
    fn of(text: PolarText<'_>) -> PolarSentence {
        let mut sentence = PolarSentence::default();
        // The words that deny what follows, since the last word that took them.
        let mut pending: Vec<String> = Vec::new();
        let mut at = 0;
        while at < text.tokens.len() {
            if let Some(end) = denying_phrase(text, at) {
                pending.push(phrase_text(text, at..end));
                at = end;
                continue;
            }
            match text.word(at) {
                None => sentence.deny_value(&mut pending),
                Some(word) if is_negator(text, at) => pending.push(word.raw.clone()),
                Some(word) => sentence.add(text, at, word, &mut pending),
            }
            at += 1;
        }
        // `which of them do not`
        if pending.len() % 2 == 1 {
            sentence.denials.push(Denial { text: pending.join(" "), word: None });
        }
        sentence
    }

    fn deny_value(&mut self, pending: &mut Vec<String>) {
        if pending.len() % 2 == 1 {
            self.denials.push(Denial { text: pending.join(" "), word: None });
        }
        pending.clear();
    }

    fn add(&mut self, text: PolarText<'_>, at: usize, word: &IntentWord, pending: &mut Vec<String>) {
        let folded = fold(&word.raw);
        let particle = is_particle(text, at, &folded);
        let ends = match word.function {
            WordFunction::Role(_) if !particle => Vec::new(),
            _ => ends_of(word, &folded),
        };
        // `are done`: a verb that adds nothing may still be one of two opposites.
        let is_end = word.function == WordFunction::Light && !ends.is_empty();
        let is_content = word.function == WordFunction::Content || is_end;
        if !is_content && ends.is_empty() {
            return;
        }
        self.has_negative_word |= NEGATIVE_WORDS.contains(&folded.as_str()) || is_negative_form(&folded);
        if LACKING.contains(&folded.as_str()) && !self.words.is_empty() {
            self.lacks.push(folded.clone());
        }
        // `does not contain the word`, `without the word`: what a verb that says little denies is its object.
        let is_transparent =
            TRANSPARENT.contains(&word.concept.as_str()) || TRANSPARENT.contains(&folded.as_str());
        let denied = is_content && !is_transparent && pending.len() % 2 == 1;
        let mut shown = word.raw.clone();
        if denied {
            shown = format!("{} {shown}", pending.join(" "));
            self.denials.push(Denial { text: shown.clone(), word: Some(self.words.len()) });
        }
        self.words.push(PolarWord {
            shown,
            families: [family(&folded).into_owned(), family(&word.concept).into_owned()],
            ends,
            denied,
            is_particle: !is_content,
        });
        if is_content && !is_transparent {
            pending.clear();
        }
    }
}

/// Words of which one sentence affirms what the other denies, where neither says it in another word too.
fn turned_word(mine: &PolarSentence, theirs: &PolarSentence) -> Option<Opposition> {
    // `rows without a price`, `rows with an empty price`: one may deny by another word what the other negates.
    let denies_otherwise = mine.lacks != theirs.lacks;
    let (mine, theirs) = without_shared(&mine.words, &theirs.words);
    let agrees = |word: &PolarWord, others: &[&PolarWord]| {
        others.iter().any(|other| relation(word, other).is_some_and(|it| !is_turned(it, word, other)))
    };
    for word in mine.iter().filter(|word| !agrees(word, &theirs)) {
        for other in theirs.iter().filter(|other| !agrees(other, &mine)) {
            let is_negation = word.denied != other.denied;
            if relation(word, other).is_some_and(|it| is_turned(it, word, other))
                && !(is_negation && denies_otherwise)
            {
                return Some(Opposition { one: word.shown.clone(), other: other.shown.clone() });
            }
        }
    }
    None
}

/// The words of both without those that both say in the same way.
fn without_shared<'w>(
    mine: &'w [PolarWord],
    theirs: &'w [PolarWord],
) -> (Vec<&'w PolarWord>, Vec<&'w PolarWord>) {
    let mut left: Vec<&PolarWord> = theirs.iter().collect();
    let mut only_mine = Vec::new();
    for word in mine {
        let same = |other: &&PolarWord| word.denied == other.denied && word.families[0] == other.families[0];
        match left.iter().position(same) {
            Some(at) => drop(left.remove(at)),
            None => only_mine.push(word),
        }
    }
    (only_mine, left)
}

fn is_turned(relation: Relation, one: &PolarWord, other: &PolarWord) -> bool {
    (relation == Relation::Opposite) != (one.denied != other.denied)
}

fn relation(one: &PolarWord, other: &PolarWord) -> Option<Relation> {
    let same = !one.is_particle
        && !other.is_particle
        && one.families.iter().any(|mine| mine.len() > 1 && other.families.contains(mine));
    if same {
        return Some(Relation::Same);
    }
    let mut opposite = None;
    for (axis, end) in &one.ends {
        match other.ends.iter().find(|(theirs, _)| theirs == axis) {
            // `open` and `activate` are no synonyms, but whoever says either does not say the opposite.
            Some((_, theirs)) if theirs == end => return Some(Relation::Same),
            Some(_) => opposite = Some(Relation::Opposite),
            None => {}
        }
    }
    let derived =
        || one.families.iter().zip(&other.families).any(|(mine, theirs)| is_opposite_form(mine, theirs));
    opposite.or_else(|| derived().then_some(Relation::Opposite))
}

/// A denial of which the other sentence says nothing, while that denies nothing else and says nothing negative at all.
fn lone_negation(mine: &PolarSentence, theirs: &PolarSentence) -> Option<Opposition> {
    if theirs.has_negative_word || !unshared(theirs, mine).is_empty() {
        return None;
    }
    let is_answered = |denial: &&&Denial| {
        let word = denial.word.map(|at| &mine.words[at]);
        word.is_some_and(|word| theirs.words.iter().any(|other| relation(word, other).is_some()))
    };
    let denials = unshared(mine, theirs);
    let denial = denials.iter().find(|denial| !is_answered(denial)).map(|denial| &denial.text);
    let lack = mine.lacks.iter().find(|word| !theirs.lacks.contains(word));
    denial.or(lack).map(|said| Opposition { one: said.clone(), other: String::new() })
}

/// The denials that the other sentence does not have: of another word, or of more values.
fn unshared<'s>(mine: &'s PolarSentence, theirs: &PolarSentence) -> Vec<&'s Denial> {
    let mut values = theirs.denials.iter().filter(|denial| denial.word.is_none()).count();
    let denies = |word: &PolarWord| {
        theirs.words.iter().any(|other| other.denied && relation(word, other) == Some(Relation::Same))
    };
    let mut is_unshared = |denial: &&Denial| match denial.word {
        Some(at) => !denies(&mine.words[at]),
        None if values > 0 => {
            values -= 1;
            false
        }
        None => true,
    };
    mine.denials.iter().filter(|denial| is_unshared(denial)).collect()
}

/// Units of one dimension that only one of the requests speaks of: `in days`, `in months`. A unit beside a number that is
/// a value belongs to that.
fn other_unit(one: PolarText<'_>, other: PolarText<'_>) -> Option<Opposition> {
    let (mine, theirs) = (units(one), units(other));
    let only = |from: &[SaidUnit], others: &[SaidUnit]| -> Vec<SaidUnit> {
        from.iter().filter(|unit| others.iter().all(|other| other.name != unit.name)).cloned().collect()
    };
    let (only_mine, only_theirs) = (only(&mine, &theirs), only(&theirs, &mine));
    only_mine.iter().find_map(|unit| {
        let other = only_theirs.iter().find(|other| other.dimension == unit.dimension)?;
        Some(Opposition { one: unit.raw.clone(), other: other.raw.clone() })
    })
}

#[derive(Debug, Clone)]
struct SaidUnit {
    raw: String,
    name: String,
    dimension: String,
}

fn units(text: PolarText<'_>) -> Vec<SaidUnit> {
    let of_value = |at: usize| {
        let before = at.checked_sub(1);
        before.is_some_and(|before| {
            text.values.contains(&before) && matches!(text.tokens[before], IntentToken::Literal(_))
        })
    };
    let said = |(at, word): (usize, &IntentWord)| {
        let folded = fold(&word.raw);
        // Shorter words are mostly something else, and so is `second`.
        if word.function != WordFunction::Content || of_value(at) || folded.len() < 3 || folded == "second" {
            return None;
        }
        let temperature = ["celsius", "fahrenheit", "kelvin"].contains(&folded.as_str());
        match unit_named(&folded) {
            Some(unit) => Some(SaidUnit {
                raw: word.raw.clone(),
                name: unit.name().to_owned(),
                dimension: format!("{:?}", unit.dimension),
            }),
            None if temperature || kinds::word_kind(&folded) == Some(WordKind::Currency) => {
                let dimension = if temperature { "Temperature" } else { "Money" };
                Some(SaidUnit { raw: word.raw.clone(), name: folded, dimension: dimension.to_owned() })
            }
            None => None,
        }
    };
    text.words().filter_map(said).collect()
}

/// One request does what the other asks about: `clean the tree`, `is the tree clean`.
fn asked_and_done(order: PolarText<'_>, question: PolarText<'_>) -> Option<Opposition> {
    let (at, verb) = order.words().find(|(_, word)| word.function == WordFunction::Content)?;
    let states = |text: PolarText<'_>, until: usize| {
        text.words().any(|(at, word)| at < until && word.function == WordFunction::Stating)
    };
    let is_question = |word: &IntentWord| {
        word.function == WordFunction::Ask || ["who", "whose", "that"].contains(&fold(&word.raw).as_str())
    };
    if states(order, order.tokens.len())
        || (0..at).filter_map(|before| order.word(before)).any(is_question)
        || (0..at).any(|before| order.word(before).is_none())
        || !has_object(order, at)
    {
        return None;
    }
    let wanted = [family(&verb.concept), family(&fold(&verb.raw)).into_owned().into()];
    let is_predicate = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| question.word(before));
        // `is there a list`, `what is the count of`: a noun.
        let determined =
            before.is_some_and(|word| matches!(word.function, WordFunction::Nothing | WordFunction::Role(_)));
        let qualifies = question.word(at + 1).is_some_and(|next| next.function == WordFunction::Content);
        !determined && !qualifies && states(question, at)
    };
    let mut said = question.words().filter(|(_, word)| word.function == WordFunction::Content);
    let (_, found) = said.find(|(at, word)| {
        let forms = [family(&word.concept), family(&fold(&word.raw)).into_owned().into()];
        forms.iter().any(|form| form.len() > 2 && wanted.contains(form)) && is_predicate(*at)
    })?;
    // `how many words are counted`: what is asked for is a number either way.
    (!SHOWING.contains(&verb.concept.as_str()))
        .then(|| Opposition { one: verb.raw.clone(), other: format!("is {}", found.raw) })
}

/// Whether a verb takes an object right after the word: `clean the tree`, unlike `clean trees`.
fn has_object(text: PolarText<'_>, at: usize) -> bool {
    match text.word(at + 1) {
        Some(next) => {
            next.function == WordFunction::Nothing || ["all", "my", "our"].contains(&next.concept.as_str())
        }
        None => at + 1 < text.tokens.len(),
    }
}

/// The only value of its class goes the other way: `mail from Ann`, `mail to Ann`.
fn other_direction(one: PolarText<'_>, other: PolarText<'_>) -> Option<Opposition> {
    let directed = |text: PolarText<'_>| -> Vec<(usize, u16)> {
        (1..text.tokens.len())
            .filter(|at| text.word(*at).is_none())
            .filter_map(|at| match text.word(at - 1)?.function {
                WordFunction::Role(role) => Some((at, role)),
                _ => None,
            })
            .collect()
    };
    let (mine, theirs) = (directed(one), directed(other));
    let shown =
        |text: PolarText<'_>, at: usize| text.word(at).map_or_else(String::new, |word| word.raw.clone());
    let class = |text: PolarText<'_>, at: usize| match &text.tokens[at] {
        IntentToken::Literal(literal) => Some(literal.class),
        IntentToken::Word(_) => None,
    };
    let count =
        |text: PolarText<'_>, wanted| (0..text.tokens.len()).filter(|at| class(text, *at) == wanted).count();
    let opposed = |was: u16, is: u16| {
        (was == table::FROM && is == table::TO) || (was == table::TO && is == table::FROM)
    };
    mine.iter().find_map(|(at, was)| {
        let wanted = class(one, *at).filter(|_| count(one, class(one, *at)) == 1)?;
        let (now, _) =
            theirs.iter().find(|(now, is)| class(other, *now) == Some(wanted) && opposed(*was, *is))?;
        (count(other, Some(wanted)) == 1)
            .then(|| Opposition { one: shown(one, at - 1), other: shown(other, now - 1) })
    })
}

/// Whether the word at `at` denies what follows it.
fn is_negator(text: PolarText<'_>, at: usize) -> bool {
    let Some(word) = text.word(at) else { return false };
    let folded = fold(&word.raw);
    match folded.as_str() {
        // `ne … pas` is one negation, and `ne … que` is none.
        "ne" | "n" => false,
        // `where the answer is no`: a value.
        "no" | "non" if text.word(at + 1).is_none() => false,
        // `instead` says that something is replaced, which it need not deny; `no 5` is a number.
        "instead" => false,
        other => {
            NEGATORS.contains(&other)
                || (word.function == WordFunction::Negation && table::NEGATION.contains(&other))
        }
    }
}

/// The end of a phrase that denies the noun after it: `out of stock`, which has no article. `out of the table` says where
/// something comes from.
fn denying_phrase(text: PolarText<'_>, at: usize) -> Option<usize> {
    let said = |at: usize| text.word(at).map(|word| fold(&word.raw)).unwrap_or_default();
    let two = (said(at), said(at + 1));
    let is_content = |at: usize| text.word(at).is_some_and(|word| word.function == WordFunction::Content);
    match (two.0.as_str(), two.1.as_str()) {
        ("out", "of") if is_content(at + 2) => Some(at + 2),
        ("free", "of" | "from") | ("other", "than") | ("apart" | "aside", "from") => Some(at + 2),
        ("all" | "everybody" | "everyone" | "everything" | "any", "but") => Some(at + 2),
        ("no", "longer") => Some(at + 2),
        _ => None,
    }
}

fn phrase_text(text: PolarText<'_>, range: Range<usize>) -> String {
    let words: Vec<&str> = range.filter_map(|at| text.word(at)).map(|word| word.raw.as_str()).collect();
    words.join(" ")
}

/// Whether a word that is also a preposition stands alone: `which lights are on`.
fn is_particle(text: PolarText<'_>, at: usize, folded: &str) -> bool {
    if !["on", "off", "up", "down", "in", "out"].contains(&folded) {
        return false;
    }
    match text.tokens.get(at + 1) {
        None => true,
        Some(IntentToken::Literal(_)) => false,
        Some(IntentToken::Word(next)) => {
            matches!(next.function, WordFunction::Role(_) | WordFunction::Joining)
        }
    }
}

type AxisEnds = HashMap<String, Vec<(usize, AxisEnd)>>;

/// The axes by the families of their words.
static AXES: LazyLock<AxisEnds> = LazyLock::new(|| {
    let mut axes: AxisEnds = HashMap::new();
    let lines = include_str!("opposites.txt").lines().filter(|line| !line.starts_with('#'));
    for (axis, (left, right)) in lines.filter_map(|line| line.split_once('|')).enumerate() {
        for (words, end) in [(left, AxisEnd::Left), (right, AxisEnd::Right)] {
            for word in words.split_whitespace() {
                let ends = axes.entry(singular_family(word)).or_default();
                if !ends.contains(&(axis, end)) {
                    ends.push((axis, end));
                }
            }
        }
    }
    axes
});

/// The axes that a word is an end of: as it is said, else by its concept.
fn ends_of(word: &IntentWord, folded: &str) -> Vec<(usize, AxisEnd)> {
    let particle = |end| vec![(usize::MAX, end)];
    match folded {
        "on" => return particle(AxisEnd::Left),
        "off" => return particle(AxisEnd::Right),
        "up" => return vec![(usize::MAX - 1, AxisEnd::Left)],
        "down" => return vec![(usize::MAX - 1, AxisEnd::Right)],
        "in" => return vec![(usize::MAX - 2, AxisEnd::Left)],
        "out" => return vec![(usize::MAX - 2, AxisEnd::Right)],
        _ => {}
    }
    let of = |word: &str| AXES.get(&singular_family(word)).cloned();
    of(folded).or_else(|| of(&word.concept)).unwrap_or_default()
}

/// The family of a word, whether it is a plural or not.
fn singular_family(word: &str) -> String {
    let singular = word.strip_suffix('s').filter(|rest| rest.len() > 3 && !rest.ends_with(['s', 'u']));
    family(singular.unwrap_or(word)).into_owned()
}

/// Whether one word is the other with a prefix or ending that turns its meaning: `paid` and `unpaid`, `encode` and
/// `decode`, `stress` and `stressless`.
fn is_opposite_form(one: &str, other: &str) -> bool {
    let turned = |a: &str, b: &str| {
        PREFIXES.iter().any(|(plain, turning)| {
            let rest = |word: &str, prefix: &str| word.strip_prefix(prefix).map(str::to_owned);
            rest(a, plain).is_some_and(|stem| stem.len() >= SHORTEST_STEM && rest(b, turning) == Some(stem))
        }) || a.len() >= SHORTEST_STEM && b.strip_suffix("les").is_some_and(|stem| stem == a)
    };
    turned(one, other) || turned(other, one)
}

/// Whether a word looks like the negative of another one: `unpaid`, `homeless`.
fn is_negative_form(folded: &str) -> bool {
    let rest = |prefix: &str| folded.strip_prefix(prefix).is_some_and(|rest| rest.len() > SHORTEST_STEM);
    rest("un") || rest("non") || rest("dis") || folded.ends_with("less") || folded.ends_with("free")
}

/// In bytes: shorter stems are equal by chance.
const SHORTEST_STEM: usize = 3;

/// Prefixes of which the second turns the meaning that the first gives; the empty one is the word itself.
const PREFIXES: &[(&str, &str)] = &[
    ("", "un"),
    ("", "in"),
    ("", "im"),
    ("", "ir"),
    ("", "il"),
    ("", "dis"),
    ("", "non"),
    ("", "de"),
    ("", "des"),
    ("", "mis"),
    ("in", "ex"),
    ("im", "ex"),
    ("in", "de"),
    ("en", "de"),
    ("en", "dis"),
    ("com", "decom"),
    ("up", "down"),
    ("in", "out"),
    ("over", "under"),
    ("pre", "post"),
    ("max", "min"),
    ("pro", "anti"),
    ("for", "back"),
    ("after", "before"),
];

/// Words that deny what follows them, beside those that negate a whole request.
const NEGATORS: &[&str] = &[
    "none",
    "neither",
    "exclude",
    "excludes",
    "excluding",
    "excluded",
    "omit",
    "omits",
    "omitting",
    "ignore",
    "ignores",
    "ignoring",
    "skip",
    "skips",
    "lack",
    "lacks",
    "lacking",
    "miss",
    "hiding",
    "forget",
    "forgets",
    "aucun",
    "aucune",
    "hors",
    "excepte",
    "exclus",
    "oublie",
    "minus",
    "outside",
    "against",
];

/// Words that deny what they are said of, wherever that stands: `the price is missing`, `a missing price`.
const LACKING: &[&str] = &["missing", "absent", "blank", "empty", "lacking"];

/// Words that say something negative by themselves, so that another request may say the same with a negation.
const NEGATIVE_WORDS: &[&str] = &[
    "missing",
    "empty",
    "blank",
    "absent",
    "lost",
    "other",
    "others",
    "else",
    "remaining",
    "rest",
    "left",
    "only",
    "but",
    "free",
    "zero",
    "alone",
    "single",
    "unique",
    "distinct",
    "instead",
    "different",
    "except",
    "avoid",
    "prevent",
    "remain",
    "open",
    "pending",
    "vide",
    "manquant",
    "autre",
    "autres",
    "seulement",
    "manque",
    "still",
];

/// Verbs whose object is what a negation before them denies.
const TRANSPARENT: &[&str] = &[
    "contain", "include", "have", "hold", "match", "appear", "exist", "show", "use", "mention", "carry",
    "list", "yet", "give", "any", "get", "count", "return", "print", "take",
];

/// Verbs that ask for a result and change nothing, so that a question for the result asks for the same.
const SHOWING: &[&str] =
    &["count", "sort", "list", "sum", "average", "calculate", "search", "name", "compare", "need", "cost"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::tokenize;

    fn said(one: &str, other: &str) -> Option<String> {
        let (mine, theirs, none) = (tokenize(one), tokenize(other), BTreeSet::new());
        let found = opposition(PolarText::new(&mine, &none), PolarText::new(&theirs, &none));
        found.map(|Opposition { one, other }| format!("{one} / {other}"))
    }

    #[test]
    fn what_is_turned_once_is_opposed_and_what_is_turned_twice_is_not() {
        for (one, other, expected) in [
            ("active users", "inactive users", Some("active / inactive")),
            ("inactive users", "users that are not active", None),
            ("active users", "users that are not inactive", None),
            ("paid bills", "bills that are not paid", Some("paid / not paid")),
            ("items in stock", "items out of stock", Some("stock / out of stock")),
            ("names out of the table", "names in the table", None),
            ("which lights are on", "which lights are off", Some("on / off")),
            ("lights on floor two", "lights that are off on floor two", None),
            ("the top 3 cheapest", "the 3 cheapest", None),
            ("the top 3", "the 3 cheapest", Some("top / cheapest")),
            ("rows without a price", "rows with an empty price", None),
            ("rows without a price", "rows", Some("without price / ")),
        ] {
            assert_eq!(said(one, other).as_deref(), expected, "{one} / {other}");
        }
    }

    #[test]
    fn every_axis_has_two_ends() {
        let lines = include_str!("opposites.txt").lines().filter(|line| !line.starts_with('#'));
        for line in lines {
            assert_eq!(line.split('|').filter(|end| !end.trim().is_empty()).count(), 2, "{line}");
        }
    }
}
