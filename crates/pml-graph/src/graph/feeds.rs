//! Infers the data flow of a plan: which call takes which arguments from which other call (`dependsOn`).
//!
//! Every parameter looks for the best-fitting field among the results of the other calls. When the request is known, a
//! parameter that the request answers itself needs none, one that it leaves open does, and a call whose part of the
//! request mentions another's result ("encrypt the password", "send it") takes that one. Weights add up to a score, and
//! only candidates above a threshold are returned: a wrong edge makes a plan use the wrong value, a missing one is only
//! a question to the agent.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};

pub use super::calls::{CallOrder, DescriptionSimilarity, PlannedCalls};
use super::clauses;
use super::fields::{FieldKind, InputField, OutputField, ToolFields};
use super::names::{self, MatchBasis, NameKey};
use super::provides::FieldMapping;
use super::reading::{RequestReading, read_request};
pub use super::reading::{RequestValue, value_fit};

/// Inferred data flow between the calls.
#[derive(Debug, Clone, PartialEq)]
pub struct CallFlow {
    /// Call indices in topological order.
    pub order: Vec<usize>,
    /// Edges, ordered by the taking call, then by the giving call.
    pub edges: Vec<FlowEdge>,
    /// Values of the request with the parameters they probably belong to, by call.
    pub request_values: Vec<RequestValue>,
}

/// One call takes arguments from another's result.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowEdge {
    /// Index of the call that gives.
    pub from: usize,
    /// Index of the call that takes.
    pub to: usize,
    /// Field mappings; empty when the tool declares no inputs.
    pub mapping: Vec<FieldMapping>,
}

/// Minimum score when the request is known.
const BAR: f32 = 0.78;
/// Minimum score when it is not: then only the fit of the fields counts.
const BAR_WITHOUT_REQUEST: f32 = 0.3;
/// Score when the request leaves a required parameter open.
const OPEN: f32 = 0.35;
/// Score when the request answers the parameter itself.
const ANSWERED: f32 = -0.8;
/// Score when the call's part of the request mentions the other's result.
const MENTIONED: f32 = 0.5;
/// Score when it mentions only what the other call does: "the translated …".
const VERB_MENTIONED: f32 = 0.6 * MENTIONED;
/// Score when it says "it" or "the result" and the other call is the previous one.
const REFERRED: f32 = 0.25;
/// Score of an optional parameter.
const OPTIONAL: f32 = -0.3;
/// Score of a field that only echoes an argument of the other call.
const ECHO: f32 = -0.3;
/// Score for each call in between: the most recent is preferred.
const DISTANCE: f32 = -0.05;
/// Score when the other call is mentioned later.
const LATER: f32 = -0.1;
/// Fit of a generic parameter with any field.
const GENERIC: f32 = 0.45;
/// Fit of a generic parameter with an id: an id has less content than other fields, though it may be sent or stored.
const GENERIC_ID: f32 = 0.35;
/// Fit of fields that agree only in their kind.
const KIND_ONLY: f32 = 0.15;
/// Share of common fields from which two results concern the same object.
const SAME_MATTER: f32 = 0.5;
/// Minimum similarity of descriptions to count, and their fit then.
const ALIKE: (f32, f32) = (0.45, 0.8);
/// Infers the data flow between the calls, without cycles.
pub fn infer_flow(calls: &PlannedCalls<'_>) -> CallFlow {
    let sides: Vec<ToolFieldKeys> = calls.tools.iter().map(|tool| ToolFieldKeys::of(tool)).collect();
    let rank = ranks(calls);
    let reading = calls.request.map(|request| read_request(request, calls, &rank));
    let mut candidates = Vec::new();
    for to in 0..calls.tools.len() {
        for from in 0..calls.tools.len() {
            let backwards = rank[from] > rank[to];
            if from != to && !(backwards && calls.order == CallOrder::AsListed) {
                candidates.extend(fits(calls, &sides, reading.as_ref(), &rank, from, to));
            }
        }
    }
    let mut candidates = in_parallel(calls.tools, &rank, candidates);
    candidates.sort_by(MappingCandidate::compare);
    let edges = accept(calls.tools.len(), candidates);
    let edges = edges.into_iter().map(|group| edge(calls.tools, &group)).collect::<Vec<_>>();
    let order = sorted(&rank, &edges);
    CallFlow {
        order,
        edges,
        request_values: reading.map(|reading| reading.request_values).unwrap_or_default(),
    }
}

/// For each pair of tools and each parameter of the second, the result field of the first that fits best, if any does:
/// by name, by description, or because the parameter takes any content. Fields that repeat an argument or say only
/// whether the call succeeded are left out.
pub fn possible_mappings(tools: &[&ToolFields]) -> Vec<(usize, usize, FieldMapping)> {
    mappings_among(tools, |_, _| true, |_| true)
}

/// As [`possible_mappings`], for the pairs and the parameters that are asked for: comparing all fields of many tools takes
/// long.
pub(crate) fn mappings_among(
    tools: &[&ToolFields],
    is_pair: impl Fn(usize, usize) -> bool,
    is_parameter: impl Fn(&InputField) -> bool,
) -> Vec<(usize, usize, FieldMapping)> {
    let keys: Vec<ToolFieldKeys> = tools.iter().map(|tool| ToolFieldKeys::of(tool)).collect();
    let mut found = Vec::new();
    for (from, giver) in tools.iter().enumerate() {
        for (to, taker) in tools.iter().enumerate().filter(|(to, _)| is_pair(from, *to)) {
            let inputs = taker.inputs.iter().enumerate();
            for (at, input) in inputs.filter(|(_, input)| is_parameter(input)) {
                let fits = giver.outputs.iter().zip(&keys[from].outputs).filter_map(|(output, given)| {
                    let (weight, basis) = fit(output, input, (given, &keys[to].inputs[at]), None)?;
                    let weight = weight * telling_share(giver, output, input, basis);
                    (weight > 0.0).then_some((weight, basis, output))
                });
                // The first of equals wins: fields near the surface come before nested ones.
                let best = fits.reduce(|best, next| if next.0 > best.0 { next } else { best });
                found.extend(best.map(|(weight, basis, output)| {
                    let mapping =
                        FieldMapping { from: output.path.clone(), to: input.name.clone(), basis, weight };
                    (from, to, mapping)
                }));
            }
        }
    }
    found
}

/// Words of a description in which a tool names what it returns in the first place: "Turns CSV into rows".
const MAIN_WORDS: usize = 4;
/// Weight of a field that is not what the tool returns in the first place, where the parameter takes any content.
const BESIDE: f32 = 0.8;

/// Weight of a field of one of several elements, where the names do not agree: it is a detail, and only the first
/// element would be used.
const DETAIL: f32 = 0.5;
/// How much of the fit of a field remains when what the field is for is considered.
fn telling_share(giver: &ToolFields, output: &OutputField, input: &InputField, basis: MatchBasis) -> f32 {
    let in_list = output.path.contains("[]");
    let repeats = !in_list && giver.inputs.iter().any(|own| own.words == output.words);
    let any_content = basis >= MatchBasis::Generic;
    // The path of a table is no table.
    let is_place = any_content && output.words.last().is_some_and(|word| names::is_place(word));
    // Values are passed as they are, so a list is no text.
    let is_other_kind =
        output.kind != input.kind && output.kind != FieldKind::Any && input.kind != FieldKind::Any;
    if repeats || is_place || is_other_kind || names::is_status(output) {
        return 0.0;
    }
    let main =
        giver.description.iter().take(MAIN_WORDS).any(|word| output.words.iter().any(|own| own == word));
    let beside = if any_content && !main { BESIDE } else { 1.0 };
    beside * if in_list && basis > MatchBasis::End { DETAIL } else { 1.0 }
}

/// Similarity of two descriptions by their words.
fn similar_words(output: &OutputField, input: &InputField) -> f32 {
    let given: HashSet<&str> = output.description.iter().collect();
    let wanted: HashSet<&str> = input.description.iter().collect();
    if given.is_empty() || wanted.is_empty() {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "descriptions are cut short")]
    let (both, size) = (given.intersection(&wanted).count() as f32, (given.len() * wanted.len()) as f32);
    both / size.sqrt()
}

/// Keys of a tool's fields.
struct ToolFieldKeys {
    inputs: Vec<Vec<NameKey>>,
    outputs: Vec<Vec<NameKey>>,
}

impl ToolFieldKeys {
    fn of(tool: &ToolFields) -> ToolFieldKeys {
        ToolFieldKeys {
            inputs: tool.inputs.iter().map(|input| names::input_keys(tool, input)).collect(),
            outputs: tool.outputs.iter().map(|output| names::output_keys(tool, output)).collect(),
        }
    }
}

/// A field that could become an argument.
struct MappingCandidate {
    from: usize,
    to: usize,
    /// Index of the parameter; meaningless for a tool that declares no inputs.
    input: usize,
    output: usize,
    how: MatchBasis,
    fit: f32,
    score: f32,
}

impl MappingCandidate {
    /// Order by score, highest first. Ties go to the first parameter and to the field nearest the surface.
    fn compare(a: &MappingCandidate, b: &MappingCandidate) -> Ordering {
        let place = |one: &MappingCandidate| (one.to, one.input, one.from, one.output);
        b.score.total_cmp(&a.score).then_with(|| place(a).cmp(&place(b)))
    }
}

/// Position of each call: as listed, or in the order of mention in the request.
fn ranks(calls: &PlannedCalls<'_>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..calls.tools.len()).collect();
    if let (CallOrder::AnyOrder, Some(request)) = (calls.order, calls.request) {
        let places = clauses::mention_places(request, calls.tools);
        order.sort_by_key(|call| places[*call]);
    }
    let mut rank = vec![0; order.len()];
    for (place, call) in order.into_iter().enumerate() {
        rank[call] = place;
    }
    rank
}

/// Every field of `from` that reaches the threshold for some parameter of `to`.
fn fits(
    calls: &PlannedCalls<'_>,
    sides: &[ToolFieldKeys],
    reading: Option<&RequestReading>,
    rank: &[usize],
    from: usize,
    to: usize,
) -> Vec<MappingCandidate> {
    let (giver, taker) = (calls.tools[from], calls.tools[to]);
    if taker.has_undeclared_inputs {
        return same_matter(calls.tools, rank, from, to).into_iter().collect();
    }
    let bar = if reading.is_some() { BAR } else { BAR_WITHOUT_REQUEST };
    let mut found = Vec::new();
    for (input, wanted) in taker.inputs.iter().enumerate() {
        if calls.known_arguments.contains(&(to, wanted.name.as_str())) {
            continue;
        }
        for (output, given) in giver.outputs.iter().enumerate() {
            let keys = (&sides[from].outputs[output][..], &sides[to].inputs[input][..]);
            let Some((fit, how)) = fit(given, wanted, keys, calls.similarity) else { continue };
            let mut score = fit + apart(rank[from], rank[to]);
            score += if wanted.required { 0.0 } else { OPTIONAL };
            score += if giver.inputs.iter().any(|one| one.words == given.words) { ECHO } else { 0.0 };
            score += reading.map_or(0.0, |reading| {
                said(reading, wanted, to) + spoken_of_result(reading, rank, (from, giver, given), (to, taker))
            });
            if score >= bar {
                found.push(MappingCandidate { from, to, input, output, how, fit, score });
            }
        }
    }
    found
}

/// A tool that declares no inputs and returns the fields of an earlier result works on the same object: finding a
/// flight, then booking it. The edge has no field mapping.
fn same_matter(tools: &[&ToolFields], rank: &[usize], from: usize, to: usize) -> Option<MappingCandidate> {
    let (giver, taker) = (tools[from], tools[to]);
    if rank[from] > rank[to] || giver.id == taker.id {
        return None;
    }
    let back = |output: &&OutputField| taker.outputs.iter().any(|other| other.words == output.words);
    let repeated = giver.outputs.iter().filter(back).count();
    #[expect(clippy::cast_precision_loss, reason = "fields are limited")]
    let share = repeated as f32 / giver.outputs.len().min(taker.outputs.len()).max(1) as f32;
    let score = share + apart(rank[from], rank[to]);
    (share >= SAME_MATTER).then_some(MappingCandidate {
        from,
        to,
        input: 0,
        output: 0,
        how: MatchBasis::Kind,
        fit: share,
        score,
    })
}

/// How strongly one call's part of the request mentions another's result.
fn spoken_of_result(
    reading: &RequestReading,
    rank: &[usize],
    (from, giver, given): (usize, &ToolFields, &OutputField),
    (to, taker): (usize, &ToolFields),
) -> f32 {
    if reading.spans[from] == reading.spans[to] {
        return 0.0;
    }
    let before = rank[from] + 1 == rank[to] && reading.refers_back(to);
    mention(&reading.words[to], giver, given, taker) + if before { REFERRED } else { 0.0 }
}

/// Where several calls of one tool could fill several parameters with the same field (origin and destination), the
/// first call fills the first parameter, and so on.
fn in_parallel(
    tools: &[&ToolFields],
    rank: &[usize],
    candidates: Vec<MappingCandidate>,
) -> Vec<MappingCandidate> {
    let mut groups: BTreeMap<(usize, &str, usize), ParallelCalls> = BTreeMap::new();
    let group = |one: &MappingCandidate| (one.to, tools[one.from].id.as_str(), one.output);
    let by_name = |one: &&MappingCandidate| one.how < MatchBasis::Alias;
    for one in candidates.iter().filter(by_name) {
        let all = groups.entry(group(one)).or_default();
        all.givers.insert(rank[one.from]);
        all.inputs.insert(one.input);
    }
    let paired = |one: &MappingCandidate| {
        let ParallelCalls { givers, inputs } = &groups[&group(one)];
        let place = inputs.iter().position(|input| *input == one.input).unwrap_or_default();
        let giver = givers.iter().nth(place.min(givers.len() - 1));
        givers.len() < 2 || inputs.len() < 2 || giver == Some(&rank[one.from])
    };
    candidates.into_iter().filter(|one| !by_name(&one) || paired(one)).collect()
}

/// Calls of one tool, by rank, and the parameters of another that the same field of each could fill.
#[derive(Default)]
struct ParallelCalls {
    givers: BTreeSet<usize>,
    inputs: BTreeSet<usize>,
}

#[expect(clippy::cast_precision_loss, reason = "numbers of calls are small")]
fn apart(from: usize, to: usize) -> f32 {
    if from < to { DISTANCE * (to - from - 1) as f32 } else { LATER + DISTANCE * (from - to - 1) as f32 }
}

/// Score of a parameter from the request: answered, open or optional.
fn said(reading: &RequestReading, wanted: &InputField, call: usize) -> f32 {
    match reading.answer_confidence(call, &wanted.name) {
        Some(sure) => ANSWERED * sure,
        None if wanted.required => OPEN,
        None => 0.0,
    }
}

/// How strongly the taker's part of the request mentions this field of `giver`.
fn mention(words: &HashSet<String>, giver: &ToolFields, given: &OutputField, taker: &ToolFields) -> f32 {
    let own = |word: &String| {
        taker.name_words.contains(word) || taker.inputs.iter().any(|input| input.words.contains(word))
    };
    let about: HashSet<&String> = given.words.iter().chain(giver.name_words.iter().skip(1)).collect();
    let telling: Vec<&String> =
        about.into_iter().filter(|word| !own(word) && !names::is_vague(word)).collect();
    let named = telling.iter().filter(|word| words.contains(**word)).count();
    #[expect(clippy::cast_precision_loss, reason = "names have few words")]
    let share = (named as f32 / telling.len().clamp(1, 2) as f32).min(1.0);
    let verb =
        giver.name_words.first().is_some_and(|verb| !taker.name_words.contains(verb) && words.contains(verb));
    (MENTIONED * share).max(if verb { VERB_MENTIONED } else { 0.0 })
}

/// Fit of a field with a parameter, and its basis.
fn fit(
    given: &OutputField,
    wanted: &InputField,
    keys: (&[NameKey], &[NameKey]),
    similar: Option<DescriptionSimilarity<'_>>,
) -> Option<(f32, MatchBasis)> {
    let kinds = given.kind.compatibility(wanted.kind);
    if kinds == 0.0 || wanted.kind == FieldKind::Boolean {
        return None;
    }
    let is_id = |words: &[String]| words.last().is_some_and(|word| word == "id");
    let status = names::is_status(given);
    let generic = names::is_generic(wanted);
    let mut best = names::best_shared_key(keys.0, keys.1).unwrap_or((0.0, MatchBasis::Kind));
    let mut better = |fit: f32, how: MatchBasis| {
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
        better(worth, MatchBasis::Generic);
    }
    if !status && is_id(&given.words) == is_id(&wanted.words) {
        let alike = similar.map_or_else(|| similar_words(given, wanted), |similar| similar(given, wanted));
        if alike > ALIKE.0 {
            better(alike * ALIKE.1, MatchBasis::Description);
        }
        better(KIND_ONLY, MatchBasis::Kind);
    }
    (best.0 > 0.0).then_some((best.0 * kinds, best.1))
}

/// Accepts the best candidates: one for each parameter, and none that closes a cycle. One field fills two parameters of
/// a call only where their names match it. Returns the accepted candidates grouped by pair of calls.
fn accept(calls: usize, candidates: Vec<MappingCandidate>) -> Vec<Vec<MappingCandidate>> {
    let mut reaches = vec![vec![false; calls]; calls];
    let mut filled = HashSet::new();
    let mut used = HashSet::new();
    let mut accepted: Vec<Vec<MappingCandidate>> = Vec::new();
    for one in candidates {
        let field = (one.from, one.output, one.to);
        let again = one.how >= MatchBasis::Generic && used.contains(&field);
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

fn edge(tools: &[&ToolFields], group: &[MappingCandidate]) -> FlowEdge {
    let mapping = group.iter().filter_map(|one| {
        Some(FieldMapping {
            from: tools[one.from].outputs[one.output].path.clone(),
            to: tools[one.to].inputs.get(one.input)?.name.clone(),
            basis: one.how,
            weight: one.fit,
        })
    });
    FlowEdge { from: group[0].from, to: group[0].to, mapping: mapping.collect() }
}

/// Calls in topological order, otherwise by rank.
fn sorted(rank: &[usize], edges: &[FlowEdge]) -> Vec<usize> {
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
