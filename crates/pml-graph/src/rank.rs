//! Ranks a catalogue for a request.
//!
//! A request may ask for several things, so an item is measured against the whole request and against
//! its best part, and items for parts that nothing answers yet come before more of the same. Ranking
//! never looks at how many results are wanted: a score means the same on every page.

use std::fmt;

use crate::confidence::{self, Signs};
use crate::lexical::{Field, Index};
pub use crate::measure::Dense;
use crate::measure::{Measure, PART_WEIGHT, add_weighted, spread_of};
use crate::past::{Advice, Hint};
use crate::request::{MAX_BYTES, Request, Term};
use crate::tokens;
use crate::vectors::Vectors;

/// What is known about the items.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The words of the items.
    pub lexical: &'a Index,
    /// What the items and the request mean; `None` while no model is there.
    pub dense: Option<Dense<'a>>,
    /// What past requests say.
    pub past: Option<&'a Advice>,
}

impl<'a> Evidence<'a> {
    /// What past requests say of each item.
    fn hints(&self) -> Option<&'a [Hint]> {
        self.past.map(|past| past.hints.as_slice())
    }
}

/// An item and how well it answers the request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// Its position in the catalogue.
    pub item: usize,
    /// From 0 to 1, never rising down the list.
    pub score: f64,
}

/// Why an item was found: the words of the request, as written there, and where they stand in it; or what
/// it means.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// In the tool's name.
    Name(Vec<String>),
    /// In the server's name.
    Server(Vec<String>),
    /// In the description.
    Description(Vec<String>),
    /// In the name or description of a parameter.
    Parameter(Vec<String>),
    /// In what it gives back.
    Output(Vec<String>),
    /// It means what the request or a part of it means; the cosine.
    Meaning(f32),
    /// It served so many requests, and this one is like them.
    Served(u32),
}

/// What an item gains when the best part of the request has every word of its name, in standard
/// deviations.
const NAME_COVERAGE: f32 = 0.8;

/// What it gains when the request has every word of its server's name.
const SERVER_COVERAGE: f32 = 0.48;

/// What a standard deviation of meaning counts in standard deviations of words: this much, and
/// [`MEANING_OF_FEW`] shared by the words of the request, since few words say little by themselves.
const MEANING: f32 = 0.6;
const MEANING_OF_FEW: f32 = 20.0;
const FEW_WORDS: usize = 3;

/// Where all items mean nearly the same, how they differ is noise: this much, at least, counts as a standard deviation of
/// what their meanings come to. Catalogues of different tools have twice as much.
const ALL_ALIKE: f32 = 0.1;

/// How much of what is usual for an item is taken from what it means to a request of one part.
const USUAL: f32 = 0.5;

/// An item without a word of the request is found when it is at least this similar: texts that have
/// nothing to do with each other mostly are less.
const SIMILAR: f32 = 0.15;

/// Beside such, one that is at least this similar is found as well where it stands out among all items, by this many
/// standard deviations: descriptions that are like no request are little like their own.
const FAINT: f32 = 0.05;
const STANDING_OUT: f32 = 1.5;

/// From which cosine on likeness is a reason of its own, and from which on it is a good one.
const ALIKE: f32 = 0.3;
const NEARLY: f32 = 0.5;

/// From which gain on, in standard deviations, an item is found by what past requests say of it alone.
const SPOKEN_FOR: f32 = 0.1;

/// How many of the best items are put in order by the parts they answer.
const RERANKED: usize = 50;

/// What remains of a part's weight each time an item has answered it.
const ANSWERED: f32 = 0.5;

/// What remains of a word's weight each time an item has had it. Only where meaning counts as well: by
/// words alone, an item that has other words of a request is mostly one that is not meant.
const SAID: f32 = 0.9;

/// The items that have anything to do with `request`, best first; equal ones in catalogue order.
///
/// The score of the first item is the probability that it is right, see [`confidence`]; the others'
/// fall from there by how much less they are worth. Scores are absolute: what has little to do with the
/// request has a low one, however much worse the rest may be.
pub fn rank(request: &str, evidence: &Evidence<'_>) -> Vec<Ranked> {
    judged(request, evidence).map(|(ranked, _)| ranked).unwrap_or_default()
}

/// The same for the items that are `eligible` alone. The others keep their place in the statistics of the catalogue, but the
/// score of the first is the probability that it is right given that none of them is.
pub fn rank_among(request: &str, evidence: &Evidence<'_>, eligible: impl Fn(usize) -> bool) -> Vec<Ranked> {
    scored(ordered(request, evidence, eligible)).map(|(ranked, _)| ranked).unwrap_or_default()
}

/// The same with what tells how sure the first item is; `None` where nothing is found.
pub fn judged(request: &str, evidence: &Evidence<'_>) -> Option<(Vec<Ranked>, Signs)> {
    scored(ordered(request, evidence, |_| true))
}

/// Turns what items are worth into scores.
fn scored(found: Option<(Vec<Valued>, Signs)>) -> Option<(Vec<Ranked>, Signs)> {
    let (ranked, signs) = found?;
    let highest = ranked[0].value;
    let sure = signs.probability();
    let mut lowest = f32::INFINITY;
    let scored = ranked.iter().map(|valued| {
        lowest = lowest.min(valued.value);
        Ranked { item: valued.item, score: sure * confidence::behind((highest - lowest) / signs.deviation) }
    });
    Some((scored.collect(), signs))
}

/// The items found, in order, and what tells how sure the first is; `None` where there are none.
pub(crate) fn ordered(
    request: &str,
    evidence: &Evidence<'_>,
    eligible: impl Fn(usize) -> bool,
) -> Option<(Vec<Valued>, Signs)> {
    let request = Request::read(request, evidence.lexical);
    if request.terms.is_empty() {
        return None;
    }
    let fit = Fit::measure(&request, evidence);
    let mut values = fit.values();
    let described = fit.likeness.iter().flatten().copied().fold(0.0, f32::max);
    let spoken_for = past_speaks(&mut values, evidence.hints(), described);
    let (mean, deviation) = spread_of(&values);
    let clear = |item: usize| fit.found[item] || spoken_for[item];
    if !(0..values.len()).any(clear) {
        return None;
    }
    let read = |item: usize| evidence.dense.is_some_and(|dense| dense.items.has(item));
    let faint = |item: usize| fit.likeness.as_ref().is_some_and(|likeness| likeness[item] >= FAINT);
    let stands_out =
        |item: usize| values[item] - mean >= STANDING_OUT * deviation && read(item) && faint(item);
    let found = (0..values.len()).filter(|item| eligible(*item) && (clear(*item) || stands_out(*item)));
    let mut ranked: Vec<Valued> = found.map(|item| Valued { item, value: values[item] }).collect();
    ranked.sort_unstable_by(|a, b| b.value.total_cmp(&a.value).then(a.item.cmp(&b.item)));
    let first = ranked.first()?.item;
    let second = ranked.get(1).map_or(mean, |second| second.value);
    let by_words = &fit.by_words;
    let better_by_words =
        |item: usize| by_words[item] > by_words[first] || (by_words[item] == by_words[first] && item < first);
    let signs = Signs {
        deviation,
        lead: (values[first] - second) / deviation,
        covered: request.answered_by(first, evidence.lexical) as f32,
        likeness: fit.likeness.as_ref().map(|likeness| likeness[first]),
        first_by_words: (0..values.len()).all(|item| !eligible(item) || !better_by_words(item)),
        parts: request.parts,
    };
    let top = ranked.len().min(RERANKED);
    spread(&mut ranked[..top], &fit, &request, evidence.lexical);
    Some((ranked, signs))
}

/// How well every item fits the request by words and meaning alone, whatever it has served: 0 is the usual fit in this
/// catalogue, 1 a standard deviation.
pub fn standard(request: &str, evidence: &Evidence<'_>) -> Vec<f32> {
    let request = Request::read(request, evidence.lexical);
    let mut values = Fit::measure(&request, evidence).values();
    let (mean, deviation) = spread_of(&values);
    values.iter_mut().for_each(|value| *value = (*value - mean) / deviation);
    values
}

/// Lets what past requests say change what items are worth; tells for which of them it speaks. Items that have served
/// requests share out among themselves what they are worth together, so that the others stay where they are; then each may
/// gain. `described` is the cosine of the description that is most like the request.
fn past_speaks(values: &mut [f32], past: Option<&[Hint]>, described: f32) -> Vec<bool> {
    let mut spoken_for = vec![false; values.len()];
    let Some(past) = past.filter(|past| past.len() == values.len()) else { return spoken_for };
    let (mean, deviation) = spread_of(values);
    let served = || (0..past.len()).filter(|item| past[*item].traces > 0);
    let mut shares: Vec<f32> = served().map(|item| values[item]).collect();
    shares.sort_unstable_by(|a, b| b.total_cmp(a));
    let mut by_past: Vec<(usize, f32)> =
        served().map(|item| (item, past[item].apply((values[item] - mean) / deviation))).collect();
    by_past.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    for ((item, _), share) in by_past.into_iter().zip(shares) {
        let gain = past[item].gain(described);
        values[item] = share + deviation * gain;
        spoken_for[item] = gain > SPOKEN_FOR;
    }
    spoken_for
}

/// An item and what it is worth to a request.
pub(crate) struct Valued {
    pub(crate) item: usize,
    pub(crate) value: f32,
}

/// How well every item fits the request, in standard deviations over the catalogue.
struct Fit {
    /// How well it fits the request and its parts, by words and by meaning.
    all: Measure,
    /// What the words of an item are divided by.
    deviation: f32,
    /// What is gained by names.
    names: Vec<f32>,
    /// Whether it has to do with the request at all.
    found: Vec<bool>,
    /// How well it fits by words alone.
    by_words: Vec<f32>,
    /// How similar it is to the request or to a part of it, as a cosine; `None` where that is not known.
    likeness: Option<Vec<f32>>,
}

impl Fit {
    fn measure(request: &Request, evidence: &Evidence<'_>) -> Fit {
        let index = evidence.lexical;
        let mut all = Measure::of_words(request, index);
        let mut found: Vec<bool> = all.whole.iter().map(|worth| *worth > 0.0).collect();
        let deviation = all.scale(0.0, |_| true);
        let by_words = all.sums();
        let dense = evidence.dense.filter(|dense| dense.items.len() == index.len());
        let likeness =
            dense.and_then(|dense| Measure::of_meaning(&dense, request.parts)).map(|mut meaning| {
                let best = |item: usize| meaning.best(item).max(meaning.whole[item]);
                let likeness: Vec<f32> = (0..index.len()).map(best).collect();
                for (item, found) in found.iter_mut().enumerate() {
                    // What is only assumed finds nothing.
                    *found |= likeness[item] >= SIMILAR && dense.is_some_and(|dense| dense.items.has(item));
                }
                if let Some(usual) = dense.and_then(|dense| usual(dense.items)) {
                    meaning.take_usual(&usual);
                }
                meaning.level();
                meaning.scale(ALL_ALIKE, |item| dense.is_some_and(|dense| dense.items.has(item)));
                all.add(&meaning, MEANING + MEANING_OF_FEW / request.terms.len().max(FEW_WORDS) as f32);
                likeness
            });
        Fit { all, deviation, names: names(request, index), found, by_words, likeness }
    }

    /// What every item is worth.
    fn values(&self) -> Vec<f32> {
        let mut values = self.all.sums();
        add_weighted(&mut values, &self.names, 1.0);
        values
    }
}

/// How much more each item is like what is asked for every day than it is like any other item; 0 is usual.
/// Requests are put otherwise than descriptions, so an item that is put like a request is like many requests,
/// and that says nothing of this one.
fn usual(items: &Vectors) -> Option<Vec<f32>> {
    let common = items.commonness().filter(|_| items.knows_everyday())?;
    let more = |(item, common): (usize, &f32)| {
        items.expected(item).map_or(0.0, |expected| USUAL * (expected - common))
    };
    let mut more: Vec<f32> = common.iter().enumerate().map(more).collect();
    let known = (0..more.len()).filter(|item| items.has(*item));
    let (mean, _) = spread_of(&known.map(|item| more[item]).collect::<Vec<_>>());
    let absent = |item: usize| !items.has(item);
    more.iter_mut()
        .enumerate()
        .for_each(|(item, more)| *more = if absent(item) { 0.0 } else { *more - mean });
    Some(more)
}

/// What each item gains by its name and its server's name.
fn names(request: &Request, index: &Index) -> Vec<f32> {
    let mut gained = vec![0.0_f32; index.len()];
    let mut best = vec![0.0_f32; index.len()];
    for part in 0..request.parts {
        let mut covered = vec![0.0_f32; index.len()];
        for term in request.terms.iter().filter(|term| term.stands_in(part)) {
            each_named(term, index, Field::Name, |item| covered[item] += term.idf / index.name_mass(item));
        }
        best.iter_mut().zip(covered).for_each(|(best, covered)| *best = best.max(covered));
    }
    for term in &request.terms {
        each_named(term, index, Field::Server, |item| gained[item] += term.idf / index.server_mass(item));
    }
    gained.iter().zip(best).map(|(server, name)| SERVER_COVERAGE * server + NAME_COVERAGE * name).collect()
}

fn each_named(term: &Term, index: &Index, field: Field, each: impl FnMut(usize)) {
    let postings = term.number.into_iter().flat_map(|number| index.postings(number));
    postings.filter(|posting| posting.fields.contains(field)).map(|posting| posting.item).for_each(each);
}

/// Reorders `ranked` so that everything that is asked is answered early: the best item is taken again and
/// again, and each time the part that it answers and the words that it has count less for those that
/// remain. An item's value becomes what it was when it was taken; values only ever fall, so they stay in
/// order.
fn spread(ranked: &mut [Valued], fit: &Fit, request: &Request, index: &Index) {
    let mut answers: Vec<Answer> =
        ranked.iter().map(|valued| Answer::of(valued.item, fit, request, index)).collect();
    let mut left = Answer { parts: vec![1.0; request.parts], words: vec![1.0; request.terms.len()] };
    for taken in 0..ranked.len() {
        let value = |at: usize| ranked[at].value - answers[at].lost(&left);
        let mut best = (taken, value(taken));
        for at in taken + 1..ranked.len() {
            let value = value(at);
            if value > best.1 || (value == best.1 && ranked[at].item < ranked[best.0].item) {
                best = (at, value);
            }
        }
        left.take(&answers[best.0]);
        ranked.swap(taken, best.0);
        answers.swap(taken, best.0);
        ranked[taken].value = best.1;
    }
}

/// How well an item answers each part of the request, and what each word of it is worth to the item; or
/// how much of both still counts.
struct Answer {
    parts: Vec<f32>,
    words: Vec<f32>,
}

impl Answer {
    fn of(item: usize, fit: &Fit, request: &Request, index: &Index) -> Answer {
        let parts: Vec<f32> = (0..request.parts).map(|part| fit.all.part(part)[item].max(0.0)).collect();
        let best = largest(&parts).0;
        let worth = |term: &Term| {
            if fit.likeness.is_none() {
                return 0.0;
            }
            let times = fit.all.whole_weight() + if term.stands_in(best) { PART_WEIGHT } else { 0.0 };
            let posting = term.number.and_then(|number| index.find(number, item));
            posting.map_or(0.0, |posting| times * posting.worth / fit.deviation)
        };
        Answer { words: request.terms.iter().map(worth).collect(), parts }
    }

    /// What the item loses when only as much counts as is `left`.
    fn lost(&self, left: &Answer) -> f32 {
        let weighted = self.parts.iter().zip(&left.parts).map(|(part, left)| part * left);
        let words = self.words.iter().zip(&left.words).map(|(word, left)| word * (1.0 - left));
        largest(&self.parts).1 - weighted.fold(0.0, f32::max) + words.sum::<f32>()
    }

    /// Lets what `answer` has count less. Where there is but one part, all items answer it.
    fn take(&mut self, answer: &Answer) {
        if self.parts.len() > 1 {
            self.parts[largest(&answer.parts).0] *= ANSWERED;
        }
        let said = self.words.iter_mut().zip(&answer.words).filter(|(_, word)| **word > 0.0);
        said.for_each(|(left, _)| *left *= SAID);
    }
}

/// The largest of `answers` and where it is; the first of equal ones.
fn largest(answers: &[f32]) -> (usize, f32) {
    let answers = answers.iter().copied().enumerate();
    answers.reduce(|best, next| if next.1 > best.1 { next } else { best }).unwrap_or((0, 0.0))
}

/// Why `item` is among the items ranked for `request`. Costs little, but is worth asking only for what
/// is shown.
pub fn reasons(request: &str, evidence: &Evidence<'_>, item: usize) -> Vec<Reason> {
    let index = evidence.lexical;
    let mut found = [const { Vec::new() }; 5];
    let tokens = tokens::tokens(tokens::beginning(request, MAX_BYTES));
    for token in &tokens {
        let Some(posting) = index.term(&token.term).and_then(|term| index.find(term, item)) else { continue };
        // A word is named once, where it weighs most.
        let place =
            PLACES.iter().position(|fields| fields.iter().any(|field| posting.fields.contains(*field)));
        if let Some(words) = place.map(|place| &mut found[place])
            && !words.iter().any(|word: &String| word.eq_ignore_ascii_case(token.written))
        {
            words.push(token.written.to_owned());
        }
    }
    let [name, server, description, parameter, output] = found;
    let reasons = [
        Reason::Name(name),
        Reason::Server(server),
        Reason::Description(description),
        Reason::Parameter(parameter),
        Reason::Output(output),
    ];
    let mut reasons: Vec<Reason> = reasons.into_iter().filter(|reason| !reason.words().is_empty()).collect();
    let served = evidence.hints().and_then(|hints| hints.get(item)).filter(|hint| hint.is_related());
    reasons.extend(served.map(|hint| Reason::Served(hint.traces)));
    // What nothing else speaks for was found by what it means, however faintly.
    let least = if reasons.is_empty() { FAINT } else { ALIKE };
    let meant = evidence.dense.and_then(|dense| likeness(&dense, item)).filter(|cosine| *cosine >= least);
    reasons.extend(meant.map(Reason::Meaning));
    reasons
}

/// The cosine of an item's vector and that of the request or of the part it is most like.
fn likeness(dense: &Dense<'_>, item: usize) -> Option<f32> {
    let parts = dense.parts.iter().map(Vec::as_slice).chain([dense.whole]);
    parts.filter_map(|part| dense.items.similarity(item, part)).reduce(f32::max)
}

/// The fields behind each kind of [`Reason`], in the order of their weight.
const PLACES: [&[Field]; 5] = [
    &[Field::Name],
    &[Field::Server],
    &[Field::Description],
    &[Field::ParameterName, Field::ParameterDescription],
    &[Field::Output],
];

impl Reason {
    /// The words of the request, where words are the reason.
    pub fn words(&self) -> &[String] {
        match self {
            Reason::Name(words)
            | Reason::Server(words)
            | Reason::Description(words)
            | Reason::Parameter(words)
            | Reason::Output(words) => words,
            Reason::Meaning(_) | Reason::Served(_) => &[],
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Reason::Meaning(cosine) = self {
            let nearly = match *cosine {
                NEARLY.. => "means nearly",
                SIMILAR.. => "means something like",
                _ => "is a little like",
            };
            return write!(f, "{nearly} what is asked ({cosine:.2})");
        }
        if let Reason::Served(requests) = self {
            let requests = if *requests == 1 { "a request" } else { "requests" };
            return write!(f, "served {requests} like this one");
        }
        f.write_str(match self {
            Reason::Meaning(_) | Reason::Served(_) => "",
            Reason::Name(_) => "name matches ",
            Reason::Server(_) => "server matches ",
            Reason::Description(_) => "description mentions ",
            Reason::Parameter(_) => "parameters mention ",
            Reason::Output(_) => "result mentions ",
        })?;
        for (index, word) in self.words().iter().enumerate() {
            write!(f, "{}`{word}`", if index > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(parts: &[f32], words: &[f32]) -> Answer {
        Answer { parts: parts.to_vec(), words: words.to_vec() }
    }

    #[test]
    fn what_was_answered_counts_less_the_next_time() {
        let mut left = answer(&[1.0, 1.0], &[1.0, 1.0]);
        let (same, other) = (answer(&[4.0, 1.0], &[2.0, 0.0]), answer(&[1.0, 4.0], &[0.0, 2.0]));
        assert_eq!((same.lost(&left), other.lost(&left)), (0.0, 0.0));
        left.take(&same);
        assert_eq!(other.lost(&left), 0.0);
        let once = same.lost(&left);
        assert!((once - (4.0 * (1.0 - ANSWERED) + 2.0 * (1.0 - SAID))).abs() < 1e-6, "{once}");
        left.take(&same);
        assert!(same.lost(&left) > once);
    }

    #[test]
    fn the_only_part_of_a_request_is_never_done_with() {
        let mut left = answer(&[1.0], &[1.0, 1.0]);
        left.take(&answer(&[4.0], &[0.0, 3.0]));
        assert_eq!(answer(&[4.0], &[3.0, 0.0]).lost(&left), 0.0);
        assert!(answer(&[4.0], &[3.0, 3.0]).lost(&left) > 0.0);
    }
}
