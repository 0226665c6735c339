//! Ranks a catalogue for a request.
//!
//! A request may ask for several things. So an item is scored against the whole request and against its best part, and
//! items for parts that nothing answers yet come before more of the same. Ranking does not depend on the number of
//! results: a score means the same on every page.

use std::fmt;

use crate::confidence::{self, ConfidenceSignals};
use crate::lexical::{DocumentField, LexicalIndex};
pub use crate::measure::DenseEvidence;
use crate::measure::{PartScores, add_weighted, mean_and_deviation};
use crate::past::{ItemHint, PastAdvice};
use crate::request::{MAX_BYTES, RequestTerm, RequestTerms};
use crate::tokens;
use crate::vectors::VectorTable;
use crate::weights::RankWeights;

/// Evidence about the items.
#[derive(Debug, Clone, Copy)]
pub struct RankingEvidence<'a> {
    /// Lexical index of the items.
    pub lexical: &'a LexicalIndex,
    /// Vectors of items and request; `None` while no model is available.
    pub dense: Option<DenseEvidence<'a>>,
    /// Advice from past requests.
    pub advice: Option<&'a PastAdvice>,
}

impl<'a> RankingEvidence<'a> {
    /// Hints from past requests, by item.
    fn hints(&self) -> Option<&'a [ItemHint]> {
        self.advice.map(|past| past.hints.as_slice())
    }
}

/// An item with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredItem {
    /// Position in the catalogue.
    pub item: usize,
    /// Score from 0 to 1, non-increasing down the list.
    pub score: f64,
}

/// Reason why an item was found: words of the request, as written there, with the field they match; or similarity.
#[derive(Debug, Clone, PartialEq)]
pub enum RankReason {
    /// In the tool's name.
    Name(Vec<String>),
    /// In the server's name.
    Server(Vec<String>),
    /// In the description.
    Description(Vec<String>),
    /// In the name or description of a parameter.
    Parameter(Vec<String>),
    /// In the description of the result.
    Output(Vec<String>),
    /// Its meaning is similar to the request or a part of it; the cosine.
    SimilarMeaning(f32),
    /// It served this many requests, and this one is similar to them.
    ServedSimilar(u32),
}

/// Minimum cosine of an item without a word of the request: unrelated texts mostly have less.
const SIMILAR: f32 = 0.15;

/// Lower minimum cosine for an item that stands out among all items by this many standard deviations: an item whose
/// description resembles no request has a low cosine with its own requests too.
const FAINT: f32 = 0.05;
/// Number of standard deviations above the mean for an item with only a [`FAINT`] cosine.
const STANDING_OUT: f32 = 1.5;

/// Minimum standard deviation of the vector scores: where all items mean nearly the same, their differences are noise.
/// Catalogues of different tools have twice as much.
const ALL_ALIKE: f32 = 0.1;

/// Minimum number of terms by which `meaning_of_few` is divided.
const FEW_WORDS: usize = 3;

/// Minimum cosine at which similarity is a reason of its own.
const ALIKE: f32 = 0.3;
/// Cosine from which the reason says "means nearly".
const NEARLY: f32 = 0.5;

/// Minimum gain, in standard deviations, at which past requests alone make an item found.
const SPOKEN_FOR: f32 = 0.1;

/// Number of best items that are reordered by the parts they answer.
const RERANKED: usize = 50;

/// The items related to `request`, best first; ties in catalogue order.
///
/// The score of the first item is the probability that it is right, see [`confidence`]; the others fall from there with
/// their distance. Scores are absolute: an item barely related to the request scores low even when it is the best.
pub fn rank(request: &str, evidence: &RankingEvidence<'_>) -> Vec<ScoredItem> {
    rank_with_signals(request, evidence).map(|(ranked, _)| ranked).unwrap_or_default()
}

/// The first `count` of them. With many items this takes less time than ordering all.
pub fn rank_first(request: &str, evidence: &RankingEvidence<'_>, count: usize) -> Vec<ScoredItem> {
    let found = order_first(request, evidence, &RankWeights::default(), |_| true, count);
    let mut ranked = scored(found).map(|(ranked, _)| ranked).unwrap_or_default();
    ranked.truncate(count);
    ranked
}

/// The same for `eligible` items only. The others stay in the statistics of the catalogue, but the score of the first
/// is the probability that it is right given that none of them is.
pub fn rank_among(
    request: &str,
    evidence: &RankingEvidence<'_>,
    eligible: impl Fn(usize) -> bool,
) -> Vec<ScoredItem> {
    scored(order_items(request, evidence, eligible)).map(|(ranked, _)| ranked).unwrap_or_default()
}

/// The same with the confidence signals of the first item; `None` when nothing is found.
pub fn rank_with_signals(
    request: &str,
    evidence: &RankingEvidence<'_>,
) -> Option<(Vec<ScoredItem>, ConfidenceSignals)> {
    scored(order_items(request, evidence, |_| true))
}

/// The items related to `request` by other weights, best first; without scores, which are calibrated for the usual
/// weights.
pub fn rank_with_weights(request: &str, evidence: &RankingEvidence<'_>, weights: &RankWeights) -> Vec<usize> {
    let found = order_first(request, evidence, weights, |_| true, usize::MAX);
    found.map(|(ranked, _)| ranked.iter().map(|valued| valued.item).collect()).unwrap_or_default()
}

/// Converts values to scores.
fn scored(
    found: Option<(Vec<ValuedItem>, ConfidenceSignals)>,
) -> Option<(Vec<ScoredItem>, ConfidenceSignals)> {
    let (ranked, signs) = found?;
    let highest = ranked[0].value;
    let sure = signs.probability();
    let mut lowest = f32::INFINITY;
    let scored = ranked.iter().map(|valued| {
        lowest = lowest.min(valued.value);
        ScoredItem {
            item: valued.item,
            score: sure * confidence::score_after_gap((highest - lowest) / signs.deviation),
        }
    });
    Some((scored.collect(), signs))
}

/// The items found, in order, and the confidence signals of the first; `None` when there are none.
pub(crate) fn order_items(
    request: &str,
    evidence: &RankingEvidence<'_>,
    eligible: impl Fn(usize) -> bool,
) -> Option<(Vec<ValuedItem>, ConfidenceSignals)> {
    order_first(request, evidence, &RankWeights::default(), eligible, usize::MAX)
}

/// The same for the first `count` items, and those that decide about their order.
fn order_first(
    request: &str,
    evidence: &RankingEvidence<'_>,
    weights: &RankWeights,
    eligible: impl Fn(usize) -> bool,
    count: usize,
) -> Option<(Vec<ValuedItem>, ConfidenceSignals)> {
    let request = RequestTerms::parse(request, evidence.lexical, weights.related);
    if request.terms.is_empty() {
        return None;
    }
    let fit = CatalogueFit::measure(&request, evidence, weights);
    let mut values = fit.values();
    let described = fit.likeness.iter().flatten().copied().fold(0.0, f32::max);
    let spoken_for = past_speaks(&mut values, evidence.hints(), described);
    let (mean, deviation) = mean_and_deviation(&values);
    let clear = |item: usize| fit.found[item] || spoken_for[item];
    if !(0..values.len()).any(clear) {
        return None;
    }
    let read = |item: usize| evidence.dense.is_some_and(|dense| dense.items.has_vector(item));
    let faint = |item: usize| fit.likeness.as_ref().is_some_and(|likeness| likeness[item] >= FAINT);
    let stands_out =
        |item: usize| values[item] - mean >= STANDING_OUT * deviation && read(item) && faint(item);
    let found = (0..values.len()).filter(|item| eligible(*item) && (clear(*item) || stands_out(*item)));
    let mut ranked: Vec<ValuedItem> = found.map(|item| ValuedItem { item, value: values[item] }).collect();
    let order = |a: &ValuedItem, b: &ValuedItem| b.value.total_cmp(&a.value).then(a.item.cmp(&b.item));
    let wanted = count.max(RERANKED);
    if ranked.len() > wanted {
        ranked.select_nth_unstable_by(wanted, order);
        ranked.truncate(wanted);
    }
    ranked.sort_unstable_by(order);
    let first = ranked.first()?.item;
    let second = ranked.get(1).map_or(mean, |second| second.value);
    let by_words = &fit.by_words;
    let better_by_words =
        |item: usize| by_words[item] > by_words[first] || (by_words[item] == by_words[first] && item < first);
    let signs = ConfidenceSignals {
        deviation,
        lead: (values[first] - second) / deviation,
        coverage: request.coverage_by(first, evidence.lexical) as f32,
        cosine: fit.likeness.as_ref().map(|likeness| likeness[first]),
        first_by_words: (0..values.len()).all(|item| !eligible(item) || !better_by_words(item)),
        parts: request.parts,
    };
    let top = ranked.len().min(RERANKED);
    spread(&mut ranked[..top], &fit, &request, evidence.lexical);
    Some((ranked, signs))
}

/// Fit of every item by words and vectors alone, without past requests: 0 is the usual fit in this catalogue, 1 a
/// standard deviation.
pub fn standard_scores(request: &str, evidence: &RankingEvidence<'_>) -> Vec<f32> {
    let weights = RankWeights::default();
    let request = RequestTerms::parse(request, evidence.lexical, weights.related);
    let mut values = CatalogueFit::measure(&request, evidence, &weights).values();
    let (mean, deviation) = mean_and_deviation(&values);
    values.iter_mut().for_each(|value| *value = (*value - mean) / deviation);
    values
}

/// Applies the hints of past requests to the values. Returns which items the hints make found. Items with traces
/// redistribute their values among themselves, so that the others keep their places; then each may gain. `described` is
/// the cosine of the description most similar to the request.
fn past_speaks(values: &mut [f32], past: Option<&[ItemHint]>, described: f32) -> Vec<bool> {
    let mut spoken_for = vec![false; values.len()];
    let Some(past) = past.filter(|past| past.len() == values.len()) else { return spoken_for };
    let (mean, deviation) = mean_and_deviation(values);
    let served = || (0..past.len()).filter(|item| past[*item].trace_count > 0);
    let mut shares: Vec<f32> = served().map(|item| values[item]).collect();
    shares.sort_unstable_by(|a, b| b.total_cmp(a));
    let mut by_past: Vec<(usize, f32)> =
        served().map(|item| (item, past[item].adjusted_score((values[item] - mean) / deviation))).collect();
    by_past.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    for ((item, _), share) in by_past.into_iter().zip(shares) {
        let gain = past[item].gain(described);
        values[item] = share + deviation * gain;
        spoken_for[item] = gain > SPOKEN_FOR;
    }
    spoken_for
}

/// An item with its value for a request.
pub(crate) struct ValuedItem {
    pub(crate) item: usize,
    pub(crate) value: f32,
}

/// Fit of every item, in standard deviations over the catalogue.
struct CatalogueFit {
    /// Scores against the request and its parts, by words and vectors.
    all: PartScores,
    /// Divisor that standardises word scores.
    deviation: f32,
    /// Gains by names.
    names: Vec<f32>,
    /// Whether the item is related to the request at all.
    found: Vec<bool>,
    /// Scores by words alone.
    by_words: Vec<f32>,
    /// Largest cosine with the request or a part of it; `None` without vectors.
    likeness: Option<Vec<f32>>,
    weights: RankWeights,
}

impl CatalogueFit {
    fn measure(
        request: &RequestTerms,
        evidence: &RankingEvidence<'_>,
        weights: &RankWeights,
    ) -> CatalogueFit {
        let index = evidence.lexical;
        let mut all = PartScores::score_by_words(request, index, weights);
        let mut found: Vec<bool> = all.whole.iter().map(|worth| *worth > 0.0).collect();
        let deviation = all.standardise(0.0, |_| true);
        let by_words = all.combined_scores();
        let dense = evidence.dense.filter(|dense| dense.items.len() == index.len());
        let likeness = dense
            .and_then(|dense| PartScores::score_by_vectors(&dense, request.parts, weights))
            .map(|mut meaning| {
                let best = |item: usize| meaning.best_part_score(item).max(meaning.whole[item]);
                let likeness: Vec<f32> = (0..index.len()).map(best).collect();
                for (item, found) in found.iter_mut().enumerate() {
                    // An item without a vector has an assumed cosine, which must not make it found.
                    *found |=
                        likeness[item] >= SIMILAR && dense.is_some_and(|dense| dense.items.has_vector(item));
                }
                if let Some(usual) = dense.and_then(|dense| usual(dense.items, weights.usual)) {
                    meaning.subtract_usual(&usual);
                }
                if weights.levels_parts {
                    meaning.level_parts();
                }
                meaning
                    .standardise(ALL_ALIKE, |item| dense.is_some_and(|dense| dense.items.has_vector(item)));
                all.add_scores(
                    &meaning,
                    weights.meaning + weights.meaning_of_few / request.own_terms().max(FEW_WORDS) as f32,
                );
                likeness
            });
        CatalogueFit {
            all,
            deviation,
            names: names(request, index, weights),
            weights: *weights,
            found,
            by_words,
            likeness,
        }
    }

    /// Value of every item.
    fn values(&self) -> Vec<f32> {
        let mut values = self.all.combined_scores();
        add_weighted(&mut values, &self.names, 1.0);
        values
    }
}

/// For each item, its similarity to everyday requests minus its similarity to other items; 0 is usual. Requests are
/// worded differently from descriptions, so an item worded like a request is similar to many requests, which says
/// nothing about this one.
fn usual(items: &VectorTable, weight: f32) -> Option<Vec<f32>> {
    let common = items.mean_similarities().filter(|_| items.has_everyday())?;
    let more = |(item, common): (usize, &f32)| {
        items.everyday_similarity(item).map_or(0.0, |expected| weight * (expected - common))
    };
    let mut more: Vec<f32> = common.iter().enumerate().map(more).collect();
    let known = (0..more.len()).filter(|item| items.has_vector(*item));
    let (mean, _) = mean_and_deviation(&known.map(|item| more[item]).collect::<Vec<_>>());
    let absent = |item: usize| !items.has_vector(item);
    more.iter_mut()
        .enumerate()
        .for_each(|(item, more)| *more = if absent(item) { 0.0 } else { *more - mean });
    Some(more)
}

/// Gain of each item by its name and its server's name.
fn names(request: &RequestTerms, index: &LexicalIndex, weights: &RankWeights) -> Vec<f32> {
    let mut gained = vec![0.0_f32; index.len()];
    let mut best = vec![0.0_f32; index.len()];
    for part in 0..request.parts {
        let mut covered = vec![0.0_f32; index.len()];
        for term in request.terms.iter().filter(|term| term.occurs_in(part)) {
            each_named(term, index, DocumentField::Name, |item| {
                covered[item] += term.idf / index.name_mass(item);
            });
        }
        best.iter_mut().zip(covered).for_each(|(best, covered)| *best = best.max(covered));
    }
    for term in &request.terms {
        each_named(term, index, DocumentField::Server, |item| {
            gained[item] += term.idf / index.server_mass(item);
        });
    }
    gained.iter().zip(best).map(|(server, name)| weights.server * server + weights.name * name).collect()
}

fn each_named(term: &RequestTerm, index: &LexicalIndex, field: DocumentField, each: impl FnMut(usize)) {
    let postings = term.number.into_iter().flat_map(|number| index.postings(number));
    postings.filter(|posting| posting.fields.contains(field)).map(|posting| posting.item).for_each(each);
}

/// Reorders `ranked` so that everything asked is answered early. The best item is taken repeatedly; each time the part
/// that it answers and the words that it has count less for the rest. An item's value becomes what it was when it was
/// taken; values only decrease, so they stay sorted.
fn spread(ranked: &mut [ValuedItem], fit: &CatalogueFit, request: &RequestTerms, index: &LexicalIndex) {
    let mut answers: Vec<AnswerWeights> =
        ranked.iter().map(|valued| AnswerWeights::of(valued.item, fit, request, index)).collect();
    let mut left = AnswerWeights { parts: vec![1.0; request.parts], words: vec![1.0; request.terms.len()] };
    for taken in 0..ranked.len() {
        let value = |at: usize| ranked[at].value - answers[at].lost(&left);
        let mut best = (taken, value(taken));
        for at in taken + 1..ranked.len() {
            let value = value(at);
            if value > best.1 || (value == best.1 && ranked[at].item < ranked[best.0].item) {
                best = (at, value);
            }
        }
        left.take(&answers[best.0], &fit.weights);
        ranked.swap(taken, best.0);
        answers.swap(taken, best.0);
        ranked[taken].value = best.1;
    }
}

/// How well an item answers each part of the request, and the score of each word for the item; also used for the
/// weights that are left of both.
struct AnswerWeights {
    parts: Vec<f32>,
    words: Vec<f32>,
}

impl AnswerWeights {
    fn of(item: usize, fit: &CatalogueFit, request: &RequestTerms, index: &LexicalIndex) -> AnswerWeights {
        let parts: Vec<f32> =
            (0..request.parts).map(|part| fit.all.part_scores(part)[item].max(0.0)).collect();
        let best = largest(&parts).0;
        let worth = |term: &RequestTerm| {
            if fit.likeness.is_none() {
                return 0.0;
            }
            let times = fit.all.whole_weight() + if term.occurs_in(best) { fit.weights.part } else { 0.0 };
            let posting = term.number.and_then(|number| index.find_posting(number, item));
            posting.map_or(0.0, |posting| times * term.gain(&posting) / fit.deviation)
        };
        AnswerWeights { words: request.terms.iter().map(worth).collect(), parts }
    }

    /// Value that the item loses under the weights `left`.
    fn lost(&self, left: &AnswerWeights) -> f32 {
        let weighted = self.parts.iter().zip(&left.parts).map(|(part, left)| part * left);
        let words = self.words.iter().zip(&left.words).map(|(word, left)| word * (1.0 - left));
        largest(&self.parts).1 - weighted.fold(0.0, f32::max) + words.sum::<f32>()
    }

    /// Reduces the weights of what `answer` covers. With a single part, all items answer it.
    fn take(&mut self, answer: &AnswerWeights, weights: &RankWeights) {
        let (part, answered) = largest(&answer.parts);
        if self.parts.len() > 1 && answered > 0.0 {
            self.parts[part] *= weights.answered;
        }
        let said = self.words.iter_mut().zip(&answer.words).filter(|(_, word)| **word > 0.0);
        said.for_each(|(left, _)| *left *= weights.said);
    }
}

/// Index and value of the largest of `answers`; the first of equals.
fn largest(answers: &[f32]) -> (usize, f32) {
    let answers = answers.iter().copied().enumerate();
    answers.reduce(|best, next| if next.1 > best.1 { next } else { best }).unwrap_or((0, 0.0))
}

/// Reasons why `item` was ranked for `request`. Cheap, but call it only for results that are shown.
pub fn explain_rank(request: &str, evidence: &RankingEvidence<'_>, item: usize) -> Vec<RankReason> {
    let index = evidence.lexical;
    let mut found = [const { Vec::new() }; 5];
    let tokens = tokens::tokenize(pml_language::byte_prefix(request, MAX_BYTES));
    for token in &tokens {
        let Some(posting) = index.term_number(&token.term).and_then(|term| index.find_posting(term, item))
        else {
            continue;
        };
        // A word is named once, in the field where it weighs most.
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
        RankReason::Name(name),
        RankReason::Server(server),
        RankReason::Description(description),
        RankReason::Parameter(parameter),
        RankReason::Output(output),
    ];
    let mut reasons: Vec<RankReason> =
        reasons.into_iter().filter(|reason| !reason.words().is_empty()).collect();
    let served = evidence.hints().and_then(|hints| hints.get(item)).filter(|hint| hint.is_related());
    reasons.extend(served.map(|hint| RankReason::ServedSimilar(hint.trace_count)));
    // Without any other reason the item was found by similarity, however small.
    let least = if reasons.is_empty() { FAINT } else { ALIKE };
    let meant = evidence.dense.and_then(|dense| likeness(&dense, item)).filter(|cosine| *cosine >= least);
    reasons.extend(meant.map(RankReason::SimilarMeaning));
    reasons
}

/// Cosine of an item's vector with that of the request or of its most similar part.
fn likeness(dense: &DenseEvidence<'_>, item: usize) -> Option<f32> {
    let parts = dense.parts.iter().map(Vec::as_slice).chain([dense.whole]);
    parts.filter_map(|part| dense.items.similarity(item, part)).reduce(f32::max)
}

/// Fields behind each kind of [`RankReason`], in the order of their weight.
const PLACES: [&[DocumentField]; 5] = [
    &[DocumentField::Name],
    &[DocumentField::Server],
    &[DocumentField::Description],
    &[DocumentField::ParameterName, DocumentField::ParameterDescription],
    &[DocumentField::Output],
];

impl RankReason {
    /// Words of the request, when words are the reason.
    pub fn words(&self) -> &[String] {
        match self {
            RankReason::Name(words)
            | RankReason::Server(words)
            | RankReason::Description(words)
            | RankReason::Parameter(words)
            | RankReason::Output(words) => words,
            RankReason::SimilarMeaning(_) | RankReason::ServedSimilar(_) => &[],
        }
    }
}

impl fmt::Display for RankReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let RankReason::SimilarMeaning(cosine) = self {
            let nearly = match *cosine {
                NEARLY.. => "means nearly",
                SIMILAR.. => "means something like",
                _ => "is a little like",
            };
            return write!(f, "{nearly} what is asked ({cosine:.2})");
        }
        if let RankReason::ServedSimilar(requests) = self {
            let requests = if *requests == 1 { "a request" } else { "requests" };
            return write!(f, "served {requests} like this one");
        }
        f.write_str(match self {
            RankReason::SimilarMeaning(_) | RankReason::ServedSimilar(_) => "",
            RankReason::Name(_) => "name matches ",
            RankReason::Server(_) => "server matches ",
            RankReason::Description(_) => "description mentions ",
            RankReason::Parameter(_) => "parameters mention ",
            RankReason::Output(_) => "result mentions ",
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

    fn answer(parts: &[f32], words: &[f32]) -> AnswerWeights {
        AnswerWeights { parts: parts.to_vec(), words: words.to_vec() }
    }

    #[test]
    fn what_was_answered_counts_less_the_next_time() {
        let weights = RankWeights::default();
        let mut left = answer(&[1.0, 1.0], &[1.0, 1.0]);
        let (same, other) = (answer(&[4.0, 1.0], &[2.0, 0.0]), answer(&[1.0, 4.0], &[0.0, 2.0]));
        assert_eq!((same.lost(&left), other.lost(&left)), (0.0, 0.0));
        left.take(&same, &weights);
        assert_eq!(other.lost(&left), 0.0);
        let once = same.lost(&left);
        assert!(
            (once - (4.0 * (1.0 - weights.answered) + 2.0 * (1.0 - weights.said))).abs() < 1e-6,
            "{once}"
        );
        left.take(&same, &weights);
        assert!(same.lost(&left) > once);
    }

    #[test]
    fn an_item_that_answers_no_part_leaves_all_of_them_open() {
        let mut left = answer(&[1.0, 1.0], &[1.0]);
        left.take(&answer(&[0.0, 0.0], &[2.0]), &RankWeights::default());
        assert_eq!(left.parts, [1.0, 1.0]);
    }

    #[test]
    fn the_only_part_of_a_request_is_never_done_with() {
        let mut left = answer(&[1.0], &[1.0, 1.0]);
        left.take(&answer(&[4.0], &[0.0, 3.0]), &RankWeights::default());
        assert_eq!(answer(&[4.0], &[3.0, 0.0]).lost(&left), 0.0);
        assert!(answer(&[4.0], &[3.0, 3.0]).lost(&left) > 0.0);
    }
}
