//! Which call of a plan takes its arguments from which other: `dependsOn` and what goes where.
//!
//! Every parameter looks for the field that fits it best among the results of the other calls. Where the
//! request is known, a parameter that the request answers itself needs nobody, one that it leaves open
//! does, and a call whose part of the request speaks of another's result ("encrypt the password", "send
//! it") takes that one. Weights add up to a score, and only what reaches a bar is told: a wrong edge
//! makes a plan wait for and use the wrong value, a missing one is only a question to the agent.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};

pub use super::calls::{Calls, Order, Similar};
use super::clauses;
use super::fields::{Input, Kind, Output, Tool};
use super::literals::{self, Literal};
use super::names::{self, How, Key};
use super::provides::Mapping;
pub use super::reading::Given;
use super::reading::{Reading, read};
use crate::tokens;

/// What the calls take from each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// The calls in an order in which each comes after what it takes from.
    pub order: Vec<usize>,
    /// Who takes from whom, in order of the taker, then of the giver.
    pub edges: Vec<Edge>,
    /// Values of the request and the parameters they seem meant for, call by call.
    pub given: Vec<Given>,
}

/// One call takes arguments from another's result.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// The call that gives.
    pub from: usize,
    /// The call that takes.
    pub to: usize,
    /// Field by field; empty where the tool says nothing of what it takes.
    pub mapping: Vec<Mapping>,
}

/// How much of a request is read, in bytes: what comes after so much is material, not a request.
const LONGEST_REQUEST: usize = 8 * 1024;
/// What a score must reach where the request is known.
const BAR: f32 = 0.78;
/// And where it is not: then the fit of the fields is all there is.
const BAR_WITHOUT_REQUEST: f32 = 0.3;
/// The request leaves a required parameter open.
const OPEN: f32 = 0.35;
/// The request answers the parameter itself.
const ANSWERED: f32 = -0.8;
/// The part of the request that speaks of the call speaks of the other's result.
const MENTIONED: f32 = 0.5;
/// Or only of what the other does: "the translated …".
const VERB_MENTIONED: f32 = 0.6 * MENTIONED;
/// It says "it", "the result", and the other is the call before.
const REFERRED: f32 = 0.25;
/// The parameter is optional.
const OPTIONAL: f32 = -0.3;
/// The field only repeats what the other call was given.
const ECHO: f32 = -0.3;
/// For each call in between: the most recent is preferred.
const DISTANCE: f32 = -0.05;
/// The other call is spoken of later.
const LATER: f32 = -0.1;
/// How well a parameter that takes anything fits a field.
const GENERIC: f32 = 0.45;
/// And where the field is an id: less content than anything else, though it may be sent or kept.
const GENERIC_ID: f32 = 0.35;
/// How well fields fit of which only the kind agrees.
const KIND_ONLY: f32 = 0.15;
/// What share of the fields two results must have in common to be of the same matter.
const SAME_MATTER: f32 = 0.5;
/// How alike descriptions must be to count, and what they are worth then.
const ALIKE: (f32, f32) = (0.45, 0.8);
/// What the calls take from each other, without cycles.
pub fn feeds(calls: &Calls<'_>) -> Flow {
    let calls =
        &Calls { request: calls.request.map(|text| tokens::beginning(text, LONGEST_REQUEST)), ..*calls };
    let sides: Vec<Side> = calls.tools.iter().map(|tool| Side::of(tool)).collect();
    let literals = calls.request.map(literals::literals).unwrap_or_default();
    let rank = ranks(calls, &literals);
    let reading = calls.request.map(|text| read(text, &literals, calls, &rank));
    let mut candidates = Vec::new();
    for to in 0..calls.tools.len() {
        for from in 0..calls.tools.len() {
            let backwards = rank[from] > rank[to];
            if from != to && !(backwards && calls.order == Order::Given) {
                candidates.extend(fits(calls, &sides, reading.as_ref(), &rank, from, to));
            }
        }
    }
    let mut candidates = in_parallel(calls.tools, &rank, candidates);
    candidates.sort_by(Candidate::compare);
    let edges = accept(calls.tools.len(), candidates);
    let edges = edges.into_iter().map(|group| edge(calls.tools, &group)).collect::<Vec<_>>();
    let order = sorted(&rank, &edges);
    Flow { order, edges, given: reading.map(|reading| reading.given).unwrap_or_default() }
}

/// How alike two descriptions are by their words.
fn similar_words(output: &Output, input: &Input) -> f32 {
    let given: HashSet<&str> = output.description.iter().collect();
    let wanted: HashSet<&str> = input.description.iter().collect();
    if given.is_empty() || wanted.is_empty() {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "descriptions are cut short")]
    let (both, size) = (given.intersection(&wanted).count() as f32, (given.len() * wanted.len()) as f32);
    both / size.sqrt()
}

/// The keys of a tool's fields.
struct Side {
    inputs: Vec<Vec<Key>>,
    outputs: Vec<Vec<Key>>,
}

impl Side {
    fn of(tool: &Tool) -> Side {
        Side {
            inputs: tool.inputs.iter().map(|input| names::input_keys(tool, input)).collect(),
            outputs: tool.outputs.iter().map(|output| names::output_keys(tool, output)).collect(),
        }
    }
}

/// A field that could become an argument.
struct Candidate {
    from: usize,
    to: usize,
    /// The parameter; of no meaning for a tool that says nothing of what it takes.
    input: usize,
    output: usize,
    how: How,
    fit: f32,
    score: f32,
}

impl Candidate {
    /// The surest first; between equals the first parameter, and the field nearest to the surface.
    fn compare(a: &Candidate, b: &Candidate) -> Ordering {
        let place = |one: &Candidate| (one.to, one.input, one.from, one.output);
        b.score.total_cmp(&a.score).then_with(|| place(a).cmp(&place(b)))
    }
}

/// The place of each call: as given, or in the order the request speaks of them.
fn ranks(calls: &Calls<'_>, literals: &[Literal]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..calls.tools.len()).collect();
    if let (Order::Free, Some(text)) = (calls.order, calls.request) {
        let places = clauses::places(text, literals, calls.tools);
        order.sort_by_key(|call| places[*call]);
    }
    let mut rank = vec![0; order.len()];
    for (place, call) in order.into_iter().enumerate() {
        rank[call] = place;
    }
    rank
}

/// Every field of `from` that reaches the bar for some parameter of `to`.
fn fits(
    calls: &Calls<'_>,
    sides: &[Side],
    reading: Option<&Reading>,
    rank: &[usize],
    from: usize,
    to: usize,
) -> Vec<Candidate> {
    let (giver, taker) = (calls.tools[from], calls.tools[to]);
    if taker.undeclared {
        return same_matter(calls.tools, rank, from, to).into_iter().collect();
    }
    let bar = if reading.is_some() { BAR } else { BAR_WITHOUT_REQUEST };
    let mut found = Vec::new();
    for (input, wanted) in taker.inputs.iter().enumerate() {
        if calls.known.contains(&(to, wanted.name.as_str())) {
            continue;
        }
        for (output, given) in giver.outputs.iter().enumerate() {
            let keys = (&sides[from].outputs[output][..], &sides[to].inputs[input][..]);
            let Some((fit, how)) = fit(given, wanted, keys, calls.similar) else { continue };
            let mut score = fit + apart(rank[from], rank[to]);
            score += if wanted.required { 0.0 } else { OPTIONAL };
            score += if giver.inputs.iter().any(|one| one.words == given.words) { ECHO } else { 0.0 };
            score += reading.map_or(0.0, |reading| {
                said(reading, wanted, to) + spoken_of_result(reading, rank, (from, giver, given), (to, taker))
            });
            if score >= bar {
                found.push(Candidate { from, to, input, output, how, fit, score });
            }
        }
    }
    found
}

/// A tool that says nothing of what it takes, and gives back the fields of an earlier result, works on the
/// same matter: finding a flight, then booking it. No argument is said to come from there.
fn same_matter(tools: &[&Tool], rank: &[usize], from: usize, to: usize) -> Option<Candidate> {
    let (giver, taker) = (tools[from], tools[to]);
    if rank[from] > rank[to] || giver.id == taker.id {
        return None;
    }
    let back = |output: &&Output| taker.outputs.iter().any(|other| other.words == output.words);
    let repeated = giver.outputs.iter().filter(back).count();
    #[expect(clippy::cast_precision_loss, reason = "fields are limited")]
    let share = repeated as f32 / giver.outputs.len().min(taker.outputs.len()).max(1) as f32;
    let score = share + apart(rank[from], rank[to]);
    (share >= SAME_MATTER).then_some(Candidate {
        from,
        to,
        input: 0,
        output: 0,
        how: How::Kind,
        fit: share,
        score,
    })
}

/// How much the part of the request that speaks of one call speaks of another's result.
fn spoken_of_result(
    reading: &Reading,
    rank: &[usize],
    (from, giver, given): (usize, &Tool, &Output),
    (to, taker): (usize, &Tool),
) -> f32 {
    if reading.spans[from] == reading.spans[to] {
        return 0.0;
    }
    let before = rank[from] + 1 == rank[to] && reading.refers_back(to);
    mention(&reading.words[to], giver, given, taker) + if before { REFERRED } else { 0.0 }
}

/// Where several calls of one tool could fill several parameters with the same field (where from, where
/// to), the first fills the first, and so on.
fn in_parallel(tools: &[&Tool], rank: &[usize], candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut groups: BTreeMap<(usize, &str, usize), Parallel> = BTreeMap::new();
    let group = |one: &Candidate| (one.to, tools[one.from].id.as_str(), one.output);
    let by_name = |one: &&Candidate| one.how < How::Alias;
    for one in candidates.iter().filter(by_name) {
        let all = groups.entry(group(one)).or_default();
        all.givers.insert(rank[one.from]);
        all.inputs.insert(one.input);
    }
    let paired = |one: &Candidate| {
        let Parallel { givers, inputs } = &groups[&group(one)];
        let place = inputs.iter().position(|input| *input == one.input).unwrap_or_default();
        let giver = givers.iter().nth(place.min(givers.len() - 1));
        givers.len() < 2 || inputs.len() < 2 || giver == Some(&rank[one.from])
    };
    candidates.into_iter().filter(|one| !by_name(&one) || paired(one)).collect()
}

/// Calls of one tool, by rank, and the parameters of another that the same field of each could fill.
#[derive(Default)]
struct Parallel {
    givers: BTreeSet<usize>,
    inputs: BTreeSet<usize>,
}

#[expect(clippy::cast_precision_loss, reason = "numbers of calls are small")]
fn apart(from: usize, to: usize) -> f32 {
    if from < to { DISTANCE * (to - from - 1) as f32 } else { LATER + DISTANCE * (from - to - 1) as f32 }
}

/// What the request says about a parameter.
fn said(reading: &Reading, wanted: &Input, call: usize) -> f32 {
    match reading.answered(call, &wanted.name) {
        Some(sure) => ANSWERED * sure,
        None if wanted.required => OPEN,
        None => 0.0,
    }
}

/// How much the part of the request that speaks of `taker` speaks of this field of `giver`.
fn mention(words: &HashSet<String>, giver: &Tool, given: &Output, taker: &Tool) -> f32 {
    let own = |word: &String| {
        taker.name.contains(word) || taker.inputs.iter().any(|input| input.words.contains(word))
    };
    let about: HashSet<&String> = given.words.iter().chain(giver.name.iter().skip(1)).collect();
    let telling: Vec<&String> =
        about.into_iter().filter(|word| !own(word) && !names::is_vague(word)).collect();
    let named = telling.iter().filter(|word| words.contains(**word)).count();
    #[expect(clippy::cast_precision_loss, reason = "names have few words")]
    let share = (named as f32 / telling.len().clamp(1, 2) as f32).min(1.0);
    let verb = giver.name.first().is_some_and(|verb| !taker.name.contains(verb) && words.contains(verb));
    (MENTIONED * share).max(if verb { VERB_MENTIONED } else { 0.0 })
}

/// How well a field fits a parameter, and why.
fn fit(
    given: &Output,
    wanted: &Input,
    keys: (&[Key], &[Key]),
    similar: Option<Similar<'_>>,
) -> Option<(f32, How)> {
    let kinds = given.kind.serves(wanted.kind);
    if kinds == 0.0 || wanted.kind == Kind::Boolean {
        return None;
    }
    let is_id = |words: &[String]| words.last().is_some_and(|word| word == "id");
    let status = names::is_status(given);
    let generic = names::is_generic(wanted);
    let mut best = names::shared(keys.0, keys.1).unwrap_or((0.0, How::Kind));
    let mut better = |fit: f32, how: How| {
        if fit > best.0 {
            best = (fit, how);
        }
    };
    if generic {
        let worth = match (status, is_id(&given.words)) {
            (true, _) => KIND_ONLY,
            (false, true) => GENERIC_ID,
            (false, false) => GENERIC,
        };
        better(worth, How::Generic);
    }
    if !status && is_id(&given.words) == is_id(&wanted.words) {
        let alike = similar.map_or_else(|| similar_words(given, wanted), |similar| similar(given, wanted));
        if alike > ALIKE.0 {
            better(alike * ALIKE.1, How::Description);
        }
        better(KIND_ONLY, How::Kind);
    }
    (best.0 > 0.0).then_some((best.0 * kinds, best.1))
}

/// Takes the surest candidates: one for each parameter, and none that closes a circle. One field goes
/// into two parameters of a call only where their names say so. Gives those of each pair of calls
/// together.
fn accept(calls: usize, candidates: Vec<Candidate>) -> Vec<Vec<Candidate>> {
    let mut reaches = vec![vec![false; calls]; calls];
    let mut filled = HashSet::new();
    let mut used = HashSet::new();
    let mut accepted: Vec<Vec<Candidate>> = Vec::new();
    for one in candidates {
        let field = (one.from, one.output, one.to);
        let again = one.how >= How::Generic && used.contains(&field);
        if again || reaches[one.to][one.from] || !filled.insert((one.to, one.input)) {
            continue;
        }
        used.insert(field);
        connect(&mut reaches, one.from, one.to);
        match accepted.iter_mut().find(|group| (group[0].from, group[0].to) == (one.from, one.to)) {
            Some(group) => group.push(one),
            None => accepted.push(vec![one]),
        }
    }
    accepted.sort_by_key(|group| (group[0].to, group[0].from));
    accepted.iter_mut().for_each(|group| group.sort_by_key(|one| one.input));
    accepted
}

fn connect(reaches: &mut [Vec<bool>], from: usize, to: usize) {
    let ends: Vec<usize> = (0..reaches.len()).filter(|end| *end == to || reaches[to][*end]).collect();
    for (start, reached) in reaches.iter_mut().enumerate() {
        if start == from || reached[from] {
            ends.iter().for_each(|end| reached[*end] = true);
        }
    }
}

fn edge(tools: &[&Tool], group: &[Candidate]) -> Edge {
    let mapping = group.iter().filter_map(|one| {
        Some(Mapping {
            from: tools[one.from].outputs[one.output].path.clone(),
            to: tools[one.to].inputs.get(one.input)?.name.clone(),
            how: one.how,
            weight: one.fit,
        })
    });
    Edge { from: group[0].from, to: group[0].to, mapping: mapping.collect() }
}

/// The calls, each after what it takes from, otherwise by rank.
fn sorted(rank: &[usize], edges: &[Edge]) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    while order.len() < rank.len() {
        let ready = |call: &usize| {
            !order.contains(call) && edges.iter().all(|edge| edge.to != *call || order.contains(&edge.from))
        };
        let next = (0..rank.len()).filter(ready).min_by_key(|call| rank[*call]);
        order.push(next.expect("`accept` lets no circle in, so some call waits for nobody"));
    }
    order
}
