//! Aligns the clauses of a request with the calls of a plan.
//!
//! The clauses are assigned to the calls in order, so
//! that each call gets the clauses that contain most of its words. A new call preferably begins where a sentence or a
//! "then" begins, and with the call's own verb.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use pml_language::Reading;
use pml_language::clauses::Clause;
use pml_language::literals::LiteralClass;

use super::fields::{self, ToolFields};

/// Weight of a word of the tool's name.
const OF_NAME: f32 = 2.0;
/// Weight of a word of its description.
const OF_DESCRIPTION: f32 = 1.0;
/// Weight of a word of its parameters.
const OF_PARAMETERS: f32 = 0.7;
/// Cost of leaving a call without a clause of its own.
const SKIPPED: f32 = 1.5;
/// Cost of beginning a call at a comma or an "and".
const WEAK_CUT: f32 = 0.8;
/// Gain when a clause begins with the call's verb.
const VERB: f32 = 0.8;
/// Gain of staying with the same call.
const STAY: f32 = 0.1;

/// A clause of the request.
struct RequestClause {
    at: Range<usize>,
    /// Whether a strong boundary, such as a new sentence, precedes it.
    strong: bool,
    words: HashSet<String>,
    first: Vec<String>,
}

/// For each tool the part of the request that concerns its call; the calls are in that order.
pub(super) fn align_calls(reading: &Reading<'_>, tools: &[&ToolFields]) -> Vec<Range<usize>> {
    let pieces = pieces(reading);
    let about = vocabulary(tools);
    let assigned = assign(&pieces, tools, &about);
    let mut spans: Vec<Range<usize>> = Vec::new();
    for call in 0..tools.len() {
        let first = assigned.iter().position(|owner| *owner == call);
        let last = assigned.iter().rposition(|owner| *owner == call);
        // A call without a clause of its own shares that of the call before it.
        let span = first.zip(last).map(|(first, last)| pieces[first].at.start..pieces[last].at.end);
        spans.push(span.or_else(|| spans.last().cloned()).unwrap_or(0..0));
    }
    spans
}

/// For each tool the index of the clause that mentions it most.
pub(super) fn mention_places(reading: &Reading<'_>, tools: &[&ToolFields]) -> Vec<usize> {
    let pieces = pieces(reading);
    let place = |about: &HashMap<String, f32>| {
        let scores = pieces.iter().map(|piece| overlap(about, piece)).enumerate();
        scores.fold((0, 0.0), |best, next| if next.1 > best.1 { next } else { best }).0
    };
    vocabulary(tools).iter().map(place).collect()
}

/// Words of each tool with their weights; words shared by several tools weigh less.
fn vocabulary(tools: &[&ToolFields]) -> Vec<HashMap<String, f32>> {
    let mut all: Vec<HashMap<String, f32>> = Vec::new();
    for tool in tools {
        let mut words = HashMap::new();
        let parameters = tool.inputs.iter().flat_map(|input| &input.words);
        words.extend(parameters.map(|word| (word.clone(), OF_PARAMETERS)));
        words.extend(tool.description.iter().map(|word| (word.to_owned(), OF_DESCRIPTION)));
        words.extend(tool.name_words.iter().map(|word| (word.clone(), OF_NAME)));
        all.push(words);
    }
    let mut having: HashMap<String, f32> = HashMap::new();
    for word in all.iter().flat_map(HashMap::keys) {
        *having.entry(word.clone()).or_default() += 1.0;
    }
    for words in &mut all {
        words.iter_mut().for_each(|(word, worth)| *worth /= having[word]);
    }
    all
}

fn overlap(about: &HashMap<String, f32>, piece: &RequestClause) -> f32 {
    let mut found: Vec<f32> = piece.words.iter().filter_map(|word| about.get(word)).copied().collect();
    // Float sums depend on the order, and sets have none, so sort before summing.
    found.sort_by(f32::total_cmp);
    found.into_iter().sum()
}

/// Index of the call of each clause; never decreasing.
#[expect(clippy::cast_precision_loss, reason = "numbers of calls are small")]
fn assign(pieces: &[RequestClause], tools: &[&ToolFields], about: &[HashMap<String, f32>]) -> Vec<usize> {
    let calls = tools.len();
    if calls == 0 || pieces.is_empty() {
        return Vec::new();
    }
    let skipping = |count: usize| SKIPPED * count as f32;
    let mut best: Vec<f32> =
        (0..calls).map(|call| overlap(&about[call], &pieces[0]) - skipping(call)).collect();
    let mut came_from: Vec<Vec<usize>> = Vec::new();
    for piece in &pieces[1..] {
        let mut next = Vec::with_capacity(calls);
        let mut from = Vec::with_capacity(calls);
        for call in 0..calls {
            let verb = tools[call].name_words.first().is_some_and(|verb| piece.first.contains(verb));
            let start = if verb { VERB } else { 0.0 } - if piece.strong { 0.0 } else { WEAK_CUT };
            let mut chosen = (best[call] + STAY, call);
            for (before, score) in best.iter().enumerate().take(call) {
                let score = score + start - skipping(call - before - 1);
                if score > chosen.0 {
                    chosen = (score, before);
                }
            }
            next.push(chosen.0 + overlap(&about[call], piece));
            from.push(chosen.1);
        }
        best = next;
        came_from.push(from);
    }
    let last = (0..calls).fold(0, |chosen, call| {
        let score = |call: usize| best[call] - skipping(calls - 1 - call);
        if score(call) > score(chosen) { call } else { chosen }
    });
    let mut assigned = vec![last];
    for from in came_from.iter().rev() {
        assigned.push(from[assigned[assigned.len() - 1]]);
    }
    assigned.reverse();
    assigned
}

fn pieces(reading: &Reading<'_>) -> Vec<RequestClause> {
    let piece = |clause: &Clause| {
        let words = unquoted_words(reading, &clause.span);
        RequestClause {
            at: clause.span.clone(),
            strong: clause.begins_anew,
            first: words.iter().take(3).cloned().collect(),
            words: words.into_iter().collect(),
        }
    };
    reading.clauses.iter().map(piece).collect()
}

/// Words of a part of the request, without quoted text, which is a value and not an instruction.
pub(super) fn unquoted_words(reading: &Reading<'_>, span: &Range<usize>) -> Vec<String> {
    let mut words = Vec::new();
    let mut at = span.start;
    let quoted = reading.values.iter().filter(|one| one.class == LiteralClass::Quoted);
    for one in quoted.filter(|one| span.start <= one.span.start && one.span.end <= span.end) {
        words.extend(fields::name_words(&reading.text[at..one.span.start]));
        at = one.span.end;
    }
    words.extend(fields::name_words(&reading.text[at..span.end]));
    words
}
