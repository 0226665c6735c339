//! Ranks a catalogue for a request.
//!
//! A request may ask for several things, so an item is measured against the whole request and against
//! its best part, and items for parts that nothing answers yet come before more of the same. Ranking
//! never looks at how many results are wanted: a score means the same on every page.

use std::fmt;

use crate::lexical::{Field, Index};
use crate::request::{MAX_BYTES, Request};
use crate::tokens;

/// What is known about the items.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The words of the items.
    pub lexical: &'a Index,
}

/// An item and how well it answers the request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// Its position in the catalogue.
    pub item: usize,
    /// From 0 to 1, never rising down the list.
    pub score: f64,
}

/// Why an item was found: the words of the request, as written there, and where they stand in it.
#[derive(Debug, Clone, PartialEq, Eq)]
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
}

/// The best part of the request counts this many times the whole.
const PART_WEIGHT: f64 = 1.5;

/// What an item gains when the request has every word of its name, in standard deviations.
const NAME_COVERAGE: f64 = 0.8;

/// The same for the name of its server.
const SERVER_COVERAGE: f64 = 0.48;

/// How many of the best items are put in order by the parts they answer.
const RERANKED: usize = 50;

/// What remains of a part's weight each time an item has answered it.
const ANSWERED: f64 = 0.6;

/// The items that have anything to do with `request`, best first; equal ones in catalogue order.
///
/// Scores are absolute. The first item's score is the share of the request it covers: of the rarity of
/// all words of the request (words that no item has are the rarest), the part that stands in the item,
/// where a word in the name counts fully and one in passing in a long text only a little; of the whole
/// request or of one part of it, whichever is covered better; raised where the request has the words of
/// the item's name. The other items' scores are to the first one's as their ranking values are to its
/// value. So a request without a known word has no results, one incidental word gives a low score, and
/// a tool whose name and description say it all one close to 1.
pub fn rank(request: &str, evidence: &Evidence<'_>) -> Vec<Ranked> {
    let index = evidence.lexical;
    let request = Request::read(request, index);
    let (mut ranked, deviation) = values(&request, index);
    ranked.sort_unstable_by(|a, b| b.value.total_cmp(&a.value).then(a.item.cmp(&b.item)));
    if request.parts > 1 {
        let top = ranked.len().min(RERANKED);
        spread(&mut ranked[..top], &request, index, deviation);
    }
    let Some(first) = ranked.first() else { return Vec::new() };
    let scale = request.answered_by(first.item, index) / first.value;
    let mut lowest = f64::INFINITY;
    ranked
        .iter()
        .map(|valued| {
            lowest = lowest.min(valued.value);
            Ranked { item: valued.item, score: (lowest * scale).clamp(0.0, 1.0) }
        })
        .collect()
}

/// An item and what it is worth to a request.
struct Valued {
    item: usize,
    value: f64,
}

/// Every item that has a term of the request, with the worth of the terms it has (all of them, and
/// again those of its best part) in standard deviations over the catalogue, plus what of its name and
/// of its server's name the request has.
fn values(request: &Request, index: &Index) -> (Vec<Valued>, f64) {
    let mut worth = vec![0.0_f64; index.len()];
    let mut coverage = vec![0.0_f64; index.len()];
    for term in &request.terms {
        for posting in term.number.into_iter().flat_map(|number| index.postings(number)) {
            worth[posting.item] += f64::from(posting.worth);
            if posting.fields.contains(Field::Name) {
                coverage[posting.item] += NAME_COVERAGE * f64::from(term.idf / index.name_mass(posting.item));
            }
            if posting.fields.contains(Field::Server) {
                coverage[posting.item] +=
                    SERVER_COVERAGE * f64::from(term.idf / index.server_mass(posting.item));
            }
        }
    }
    for (worth, best) in worth.iter_mut().zip(best_parts(request, index)) {
        *worth += PART_WEIGHT * best;
    }
    let deviation = deviation(&worth);
    let found = worth.iter().zip(coverage).enumerate().filter(|(_, (worth, _))| **worth > 0.0);
    let valued = found.map(|(item, (worth, coverage))| Valued { item, value: worth / deviation + coverage });
    (valued.collect(), deviation)
}

/// What the part of the request that each item answers best is worth for it.
fn best_parts(request: &Request, index: &Index) -> Vec<f64> {
    let mut best = vec![0.0_f64; index.len()];
    let mut worth = vec![0.0_f64; index.len()];
    for part in 0..request.parts {
        worth.fill(0.0);
        for term in request.terms.iter().filter(|term| term.stands_in(part)) {
            for posting in term.number.into_iter().flat_map(|number| index.postings(number)) {
                worth[posting.item] += f64::from(posting.worth);
            }
        }
        best.iter_mut().zip(&worth).for_each(|(best, worth)| *best = best.max(*worth));
    }
    best
}

/// The standard deviation, or 1 where all are equal, so that one can divide by it.
fn deviation(values: &[f64]) -> f64 {
    let number = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / number;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / number;
    if variance > 0.0 { variance.sqrt() } else { 1.0 }
}

/// Reorders `ranked` so that every part of the request is answered early: the best item is taken again
/// and again, and each time the part that it answers counts less for those that remain. An item's value
/// becomes what it was when it was taken; values only ever fall, so they stay in order.
fn spread(ranked: &mut [Valued], request: &Request, index: &Index, deviation: f64) {
    let mut answers: Vec<Vec<f64>> = ranked
        .iter()
        .map(|valued| {
            (0..request.parts).map(|part| request.worth(part, valued.item, index) / deviation).collect()
        })
        .collect();
    let mut weights = vec![1.0; request.parts];
    for taken in 0..ranked.len() {
        let value = |at: usize| ranked[at].value - largest(&answers[at]).1 + weighted(&answers[at], &weights);
        let mut best = (taken, value(taken));
        for at in taken + 1..ranked.len() {
            let value = value(at);
            if value > best.1 || (value == best.1 && ranked[at].item < ranked[best.0].item) {
                best = (at, value);
            }
        }
        weights[largest(&answers[best.0]).0] *= ANSWERED;
        ranked.swap(taken, best.0);
        answers.swap(taken, best.0);
        ranked[taken].value = best.1;
    }
}

/// The largest of `answers` and where it is; the first of equal ones.
fn largest(answers: &[f64]) -> (usize, f64) {
    let answers = answers.iter().copied().enumerate();
    answers.reduce(|best, next| if next.1 > best.1 { next } else { best }).unwrap_or((0, 0.0))
}

fn weighted(answers: &[f64], weights: &[f64]) -> f64 {
    answers.iter().zip(weights).map(|(answer, weight)| answer * weight).fold(0.0, f64::max)
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
    reasons.into_iter().filter(|reason| !reason.words().is_empty()).collect()
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
    /// The words of the request.
    pub fn words(&self) -> &[String] {
        match self {
            Reason::Name(words)
            | Reason::Server(words)
            | Reason::Description(words)
            | Reason::Parameter(words)
            | Reason::Output(words) => words,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
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
