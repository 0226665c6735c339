//! What a request says about the calls of a plan: which part speaks of which call, and which of its values
//! are meant for which parameters.

use std::collections::HashSet;
use std::ops::Range;

use super::calls::{Calls, Order};
use super::clauses;
use super::fields::{Input, Tool};
use super::literals::{self, Literal, Look};
use super::names;
use super::placing;

/// A value of the request that seems meant for a parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// The call.
    pub call: usize,
    /// The parameter.
    pub parameter: String,
    /// Where the value is in the request, in bytes.
    pub at: Range<usize>,
    /// What it looks like.
    pub look: Look,
    /// How sure that is: 1 and more where the parameter is named next to the value.
    pub score: f32,
    /// Whether a word of the parameter's name stands next to the value.
    pub named: bool,
}

/// What a value needs to be taken for a parameter's.
const GIVEN_BAR: f32 = 0.35;

/// What the request says about each call.
pub(super) struct Reading {
    /// Which part of the request speaks of it.
    pub(super) spans: Vec<Range<usize>>,
    /// The words of each call's part, without what is quoted.
    pub(super) words: Vec<HashSet<String>>,
    /// The values it gives for parameters.
    pub(super) given: Vec<Given>,
}

impl Reading {
    /// How sure it is that the request answers a parameter itself.
    pub(super) fn answered(&self, call: usize, parameter: &str) -> Option<f32> {
        let given = self.given.iter().find(|given| given.call == call && given.parameter == parameter);
        given.map(|given| given.score.min(1.0))
    }

    /// Whether the part of a call says "it" or "the result".
    pub(super) fn refers_back(&self, call: usize) -> bool {
        const REFERRING: [&str; 13] = [
            "it", "them", "that", "this", "these", "those", "its", "their", "result", "output", "valu",
            "resultat", "cela",
        ];
        REFERRING.iter().any(|word| self.words[call].contains(*word))
    }
}

/// Reads the request; `rank` is the place of each call.
pub(super) fn read(text: &str, literals: &[Literal], calls: &Calls<'_>, rank: &[usize]) -> Reading {
    let mut in_order: Vec<usize> = (0..rank.len()).collect();
    in_order.sort_by_key(|call| rank[*call]);
    let tools: Vec<&Tool> = in_order.iter().map(|call| calls.tools[*call]).collect();
    let aligned = clauses::align(text, literals, &tools);
    let spans: Vec<Range<usize>> = rank.iter().map(|place| aligned[*place].clone()).collect();
    let words =
        spans.iter().map(|span| clauses::spoken(text, literals, span).into_iter().collect()).collect();
    let mut given = Vec::new();
    for (call, span) in spans.iter().enumerate() {
        let others =
            |other: &usize| *other != call && (calls.order == Order::Free || rank[*other] < rank[call]);
        let results: HashSet<&str> =
            (0..rank.len()).filter(others).flat_map(|other| spoken_of(calls.tools[other])).collect();
        let here: Vec<&Literal> = literals.iter().filter(|one| within(&one.at, span)).collect();
        given.extend(answers(text, &here, span, call, calls.tools, &results));
    }
    given.extend(elsewhere(literals, &spans, calls.tools, &given));
    Reading { spans, words, given }
}

/// The words that speak of a tool's results.
fn spoken_of(tool: &Tool) -> impl Iterator<Item = &str> {
    tool.name.iter().chain(tool.outputs.iter().flat_map(|output| &output.words)).map(String::as_str)
}

fn within(inner: &Range<usize>, outer: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Whether some call has a parameter made for what the value shows itself to be: a path, an address.
fn is_claimed(look: Look, tools: &[&Tool]) -> bool {
    matches!(look, Look::Path | Look::Url | Look::Email | Look::Phone)
        && tools.iter().flat_map(|tool| &tool.inputs).any(|input| literals::suits(look, input) >= 1.0)
}

/// The values in a call's part of the request, each for the parameter it fits best.
fn answers(
    text: &str,
    here: &[&Literal],
    span: &Range<usize>,
    call: usize,
    tools: &[&Tool],
    results: &HashSet<&str>,
) -> Vec<Given> {
    let tool = tools[call];
    // `the GCD` looks like a name and is another call's result.
    let known = |word: &String| results.contains(word.as_str()) || tool.name.contains(word);
    let refers = |one: &Literal| {
        one.look == Look::Proper && super::fields::words(&text[one.at.clone()]).iter().all(known)
    };
    let mut pairs: Vec<(f32, &Literal, &Input, bool)> = Vec::new();
    let mut before = None;
    for literal in here.iter().filter(|one| !refers(one)) {
        let aside = literals::follows_preposition(text, &literal.at, before);
        before = Some((&literal.at, aside));
        let least = if is_claimed(literal.look, tools) { 1.0 } else { f32::MIN_POSITIVE };
        for input in &tool.inputs {
            let suits = literals::suits(literal.look, input);
            if suits >= least {
                // What the verb is about goes where anything goes; what follows a preposition does not.
                let role = if names::is_generic(input) == aside { 0.0 } else { 0.2 };
                let required = if input.required { 0.1 } else { 0.0 };
                let named = literals::named_nearby(text, &literal.at, input);
                let score = suits + named + placing::placed(text, &literal.at, input) + role + required;
                pairs.push((score, literal, input, named > 0.0));
            }
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut given: Vec<Given> = Vec::new();
    pairs.retain(|pair| pair.0 >= GIVEN_BAR);
    for (score, literal, input, named) in &pairs {
        let open =
            |at: &Range<usize>, name: &str| given.iter().all(|one| one.at != *at && one.parameter != name);
        if open(&literal.at, &input.name) && !is_ambiguous(&pairs, (*score, literal), open) {
            let (parameter, at) = (input.name.clone(), literal.at.clone());
            given.push(Given { call, parameter, at, look: literal.look, score: *score, named: *named });
        }
    }
    given.extend(chosen(text, span, call, tool, &given));
    given
}

/// Whether a value fits more parameters alike than there are such values, so that any choice would be a guess: one number,
/// and both `head` and `tail` would take it. Two numbers for two parameters go there in order.
fn is_ambiguous(
    pairs: &[(f32, &Literal, &Input, bool)],
    (score, literal): (f32, &Literal),
    open: impl Fn(&Range<usize>, &str) -> bool,
) -> bool {
    let same = |pair: &&(f32, &Literal, &Input, bool)| {
        (pair.0 - score).abs() < 1e-6 && open(&pair.1.at, &pair.2.name)
    };
    let of_value = |pair: &&(f32, &Literal, &Input, bool)| pair.1.at == literal.at;
    let inputs: HashSet<&str> =
        pairs.iter().filter(same).filter(of_value).map(|pair| pair.2.name.as_str()).collect();
    let rivals =
        pairs.iter().filter(|pair| inputs.contains(pair.2.name.as_str()) && open(&pair.1.at, &pair.2.name));
    let values: HashSet<usize> = rivals.map(|pair| pair.1.at.start).collect();
    inputs.len() > values.len()
}

/// Paths and addresses that stand in another call's part than that of the parameter made for them: "read
/// and parse /tmp/a".
fn elsewhere(literals: &[Literal], spans: &[Range<usize>], tools: &[&Tool], given: &[Given]) -> Vec<Given> {
    let mut found: Vec<Given> = Vec::new();
    for literal in literals.iter().filter(|one| is_claimed(one.look, tools)) {
        if given.iter().any(|one| one.at == literal.at) {
            continue;
        }
        let open = tools
            .iter()
            .enumerate()
            .flat_map(|(call, tool)| tool.inputs.iter().map(move |input| (call, input)));
        let open = open.filter(|(call, input)| {
            let same = |one: &Given| one.call == *call && one.parameter == input.name;
            literals::suits(literal.look, input) >= 1.0 && !given.iter().chain(&found).any(same)
        });
        let nearest =
            open.min_by_key(|(call, input)| (!input.required, spans[*call].start.abs_diff(literal.at.start)));
        if let Some((call, input)) = nearest {
            let (parameter, at) = (input.name.clone(), literal.at.clone());
            found.push(Given { call, parameter, at, look: literal.look, score: 1.0, named: false });
        }
    }
    found
}

/// Parameters that are limited to a few values, one of which the request names.
fn chosen(text: &str, span: &Range<usize>, call: usize, tool: &Tool, given: &[Given]) -> Vec<Given> {
    let lower = text[span.clone()].to_ascii_lowercase();
    let open = tool.inputs.iter().filter(|input| given.iter().all(|one| one.parameter != input.name));
    let named = |input: &Input| {
        let at = input.choices.iter().filter(|choice| !choice.is_empty()).find_map(|choice| {
            let found = lower.match_indices(choice.as_str()).find(|(at, found)| {
                let edge = |c: Option<char>| !c.is_some_and(char::is_alphanumeric);
                edge(lower[..*at].chars().next_back()) && edge(lower[at + found.len()..].chars().next())
            });
            found.map(|(at, found)| span.start + at..span.start + at + found.len())
        })?;
        Some(Given { call, parameter: input.name.clone(), at, look: Look::Quoted, score: 1.0, named: true })
    };
    open.filter_map(named).collect()
}
