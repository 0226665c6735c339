//! Aligns the clauses of a request with the calls of a plan.
//!
//! A request for several things is cut where a reader would pause. The clauses are assigned to the calls in order, so
//! that each call gets the clauses that contain most of its words. A new call preferably begins where a sentence or a
//! "then" begins, and with the call's own verb.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::fields::{self, ToolFields};
use super::literals::{LiteralLook, RequestLiteral};

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
/// Maximum number of clauses; the rest of a long text belongs to the last.
const MOST_PIECES: usize = 200;

/// A clause of the request.
struct RequestClause {
    at: Range<usize>,
    /// Whether a strong boundary, such as a new sentence, precedes it.
    strong: bool,
    words: HashSet<String>,
    first: Vec<String>,
}

/// For each tool the part of `text` that concerns its call; the calls are in that order.
pub(super) fn align_calls(
    text: &str,
    literals: &[RequestLiteral],
    tools: &[&ToolFields],
) -> Vec<Range<usize>> {
    let pieces = pieces(text, literals);
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
pub(super) fn mention_places(text: &str, literals: &[RequestLiteral], tools: &[&ToolFields]) -> Vec<usize> {
    let pieces = pieces(text, literals);
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

fn pieces(text: &str, literals: &[RequestLiteral]) -> Vec<RequestClause> {
    let mut cuts = cuts(text, literals);
    cuts.truncate(MOST_PIECES);
    let ends = cuts.iter().skip(1).map(|cut| cut.0).chain([text.len()]).collect::<Vec<_>>();
    let piece = |((start, strong), end): ((usize, bool), usize)| {
        let words = unquoted_words(text, literals, &(start..end));
        RequestClause {
            at: start..end,
            strong,
            first: words.iter().take(3).cloned().collect(),
            words: words.into_iter().collect(),
        }
    };
    cuts.into_iter().zip(ends).map(piece).collect()
}

/// Words of a part of the request, without quoted text, which is a value and not an instruction.
pub(super) fn unquoted_words(text: &str, literals: &[RequestLiteral], span: &Range<usize>) -> Vec<String> {
    let mut words = Vec::new();
    let mut at = span.start;
    let inside = |one: &&RequestLiteral| span.start <= one.span.start && one.span.end <= span.end;
    let quoted = literals.iter().filter(|one| one.look == LiteralLook::Quoted).filter(inside);
    for one in quoted {
        words.extend(fields::name_words(&text[at..one.span.start]));
        at = one.span.end;
    }
    words.extend(fields::name_words(&text[at..span.end]));
    words
}

/// Offsets of clause boundaries, each with whether it is strong. Values are never cut.
fn cuts(text: &str, literals: &[RequestLiteral]) -> Vec<(usize, bool)> {
    let whole = |at: usize| {
        literals.iter().any(|one| one.look != LiteralLook::Proper && one.span.start < at && at < one.span.end)
    };
    let mut found: Vec<(usize, bool)> = vec![(0, true)];
    let mut cut = |start: usize, end: usize, strong: bool| {
        let after = text[end..].trim_start_matches([',', ' ', '\n', '\r', '\t']);
        let at = text.len() - after.len();
        if at == end || whole(start) || at == text.len() {
            return;
        }
        let strong = strong || found.last().is_some_and(|last| last.0 == start && last.1);
        match found.last_mut() {
            Some(last) if last.0 == at => last.1 |= strong,
            _ => found.push((at, strong)),
        }
    };
    let mut word = (0, "");
    let mut before = "";
    for (at, c) in text.char_indices() {
        if c.is_alphanumeric() {
            if word.1.is_empty() {
                word.0 = at;
            }
            word.1 = &text[word.0..at + c.len_utf8()];
            continue;
        }
        if let Some(strong) = connects(before, word.1) {
            cut(word.0, at, strong);
        }
        if !word.1.is_empty() {
            before = word.1;
        }
        word.1 = "";
        if matches!(c, '.' | '!' | '?' | ';' | ',' | '\n') {
            cut(at, at + 1, c != ',');
        }
    }
    found
}

/// Whether the word begins a new clause: strongly (`Some(true)`) or weakly.
fn connects(before: &str, word: &str) -> Option<bool> {
    match word.to_lowercase().as_str() {
        "and" | "et" => Some(false),
        "then" | "additionally" | "finally" | "lastly" | "afterwards" | "next" | "also" | "puis"
        | "ensuite" | "enfin" | "finalement" => Some(true),
        "that" => before.eq_ignore_ascii_case("after").then_some(true),
        _ => None,
    }
}
