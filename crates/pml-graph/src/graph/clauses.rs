//! Which part of a request speaks of which call.
//!
//! A request for several things is cut where a reader would pause, and the pieces are handed out to the
//! calls in order, so that each call gets the pieces that speak most of its words. A new call preferably
//! begins where a sentence or a "then" begins, and with the call's own verb.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::fields::{self, Tool};
use super::literals::{Literal, Look};

const OF_NAME: f32 = 2.0;
const OF_DESCRIPTION: f32 = 1.0;
const OF_PARAMETERS: f32 = 0.7;
/// What it costs to leave a call without a piece of its own.
const SKIPPED: f32 = 1.5;
/// What it costs to begin a call at a comma or an "and".
const WEAK_CUT: f32 = 0.8;
/// What it is worth that a piece begins with the call's verb.
const VERB: f32 = 0.8;
/// What it is worth to stay with a call.
const STAY: f32 = 0.1;
/// How many pieces are told apart; the rest of a long text belongs to the last.
const MOST_PIECES: usize = 200;

/// A piece of the request.
struct Piece {
    at: Range<usize>,
    /// Whether it begins where something new clearly begins.
    strong: bool,
    words: HashSet<String>,
    first: Vec<String>,
}

/// For each tool, which part of `text` speaks of its call; the calls come in that order.
pub(super) fn align(text: &str, literals: &[Literal], tools: &[&Tool]) -> Vec<Range<usize>> {
    let pieces = pieces(text, literals);
    let about = vocabulary(tools);
    let assigned = assign(&pieces, tools, &about);
    let mut spans: Vec<Range<usize>> = Vec::new();
    for call in 0..tools.len() {
        let first = assigned.iter().position(|owner| *owner == call);
        let last = assigned.iter().rposition(|owner| *owner == call);
        // A call without a piece of its own shares that of the call before it.
        let span = first.zip(last).map(|(first, last)| pieces[first].at.start..pieces[last].at.end);
        spans.push(span.or_else(|| spans.last().cloned()).unwrap_or(0..0));
    }
    spans
}

/// Where in the request each tool is spoken of most, as the number of a piece.
pub(super) fn places(text: &str, literals: &[Literal], tools: &[&Tool]) -> Vec<usize> {
    let pieces = pieces(text, literals);
    let place = |about: &HashMap<String, f32>| {
        let scores = pieces.iter().map(|piece| overlap(about, piece)).enumerate();
        scores.fold((0, 0.0), |best, next| if next.1 > best.1 { next } else { best }).0
    };
    vocabulary(tools).iter().map(place).collect()
}

/// The words of each tool and what they are worth; words that several tools have are worth less.
fn vocabulary(tools: &[&Tool]) -> Vec<HashMap<String, f32>> {
    let mut all: Vec<HashMap<String, f32>> = Vec::new();
    for tool in tools {
        let mut words = HashMap::new();
        let parameters = tool.inputs.iter().flat_map(|input| &input.words);
        words.extend(parameters.map(|word| (word.clone(), OF_PARAMETERS)));
        words.extend(tool.description.iter().map(|word| (word.to_owned(), OF_DESCRIPTION)));
        words.extend(tool.name.iter().map(|word| (word.clone(), OF_NAME)));
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

fn overlap(about: &HashMap<String, f32>, piece: &Piece) -> f32 {
    let mut found: Vec<f32> = piece.words.iter().filter_map(|word| about.get(word)).copied().collect();
    // Sums of floats depend on their order, and sets have none.
    found.sort_by(f32::total_cmp);
    found.into_iter().sum()
}

/// The call that each piece belongs to, never an earlier one than that of the piece before.
#[expect(clippy::cast_precision_loss, reason = "numbers of calls are small")]
fn assign(pieces: &[Piece], tools: &[&Tool], about: &[HashMap<String, f32>]) -> Vec<usize> {
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
            let verb = tools[call].name.first().is_some_and(|verb| piece.first.contains(verb));
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

fn pieces(text: &str, literals: &[Literal]) -> Vec<Piece> {
    let mut cuts = cuts(text, literals);
    cuts.truncate(MOST_PIECES);
    let ends = cuts.iter().skip(1).map(|cut| cut.0).chain([text.len()]).collect::<Vec<_>>();
    let piece = |((start, strong), end): ((usize, bool), usize)| {
        let words = spoken(text, literals, &(start..end));
        Piece {
            at: start..end,
            strong,
            first: words.iter().take(3).cloned().collect(),
            words: words.into_iter().collect(),
        }
    };
    cuts.into_iter().zip(ends).map(piece).collect()
}

/// The words of a part of the request, without what is quoted there: that is a value, not what is asked.
pub(super) fn spoken(text: &str, literals: &[Literal], span: &Range<usize>) -> Vec<String> {
    let mut words = Vec::new();
    let mut at = span.start;
    let inside = |one: &&Literal| span.start <= one.at.start && one.at.end <= span.end;
    let quoted = literals.iter().filter(|one| one.look == Look::Quoted).filter(inside);
    for one in quoted {
        words.extend(fields::words(&text[at..one.at.start]));
        at = one.at.end;
    }
    words.extend(fields::words(&text[at..span.end]));
    words
}

/// Where pieces begin, and whether something new clearly begins there. Values are never cut.
fn cuts(text: &str, literals: &[Literal]) -> Vec<(usize, bool)> {
    let whole = |at: usize| {
        literals.iter().any(|one| one.look != Look::Proper && one.at.start < at && at < one.at.end)
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

/// Whether the word begins something new: clearly (`Some(true)`) or perhaps.
fn connects(before: &str, word: &str) -> Option<bool> {
    match word.to_lowercase().as_str() {
        "and" | "et" => Some(false),
        "then" | "additionally" | "finally" | "lastly" | "afterwards" | "next" | "also" | "puis"
        | "ensuite" | "enfin" | "finalement" => Some(true),
        "that" => before.eq_ignore_ascii_case("after").then_some(true),
        _ => None,
    }
}
