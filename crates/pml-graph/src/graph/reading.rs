//! Reads a request for the calls of a plan: which part concerns which call, and which of its values belong to which
//! parameters.

use std::collections::HashSet;
use std::ops::Range;

use pml_language::Reading;
use pml_language::literals::{IntentLiteral, LiteralClass};

use super::calls::{CallOrder, PlannedCalls};
use super::clauses;
use super::fields::{InputField, ToolFields};
use super::names;
use super::placing;

/// A value of the request that probably belongs to a parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestValue {
    /// Index of the call.
    pub call: usize,
    /// Name of the parameter.
    pub parameter: String,
    /// Byte range of the value in the request.
    pub span: Range<usize>,
    /// Score of the assignment; at least 1 where the parameter is named next to the value.
    pub score: f32,
    /// Whether a word of the parameter's name stands next to the value.
    pub is_named_nearby: bool,
}

/// Minimum score for assigning a value to a parameter.
const GIVEN_BAR: f32 = 0.35;

/// What the request says about each call.
pub(super) struct RequestReading {
    /// The part of the request that concerns each call.
    pub(super) spans: Vec<Range<usize>>,
    /// The words of each call's part, without quoted text.
    pub(super) words: Vec<HashSet<String>>,
    /// Values that the request gives for parameters.
    pub(super) request_values: Vec<RequestValue>,
}

impl RequestReading {
    /// Score of the value that the request itself gives for a parameter; `None` when it gives none.
    pub(super) fn answer_confidence(&self, call: usize, parameter: &str) -> Option<f32> {
        let given =
            self.request_values.iter().find(|given| given.call == call && given.parameter == parameter);
        given.map(|given| given.score.min(1.0))
    }

    /// Whether the call's part contains a back reference such as "it" or "the result".
    pub(super) fn refers_back(&self, call: usize) -> bool {
        const REFERRING: [&str; 13] = [
            "it", "them", "that", "this", "these", "those", "its", "their", "result", "output", "valu",
            "resultat", "cela",
        ];
        REFERRING.iter().any(|word| self.words[call].contains(*word))
    }
}

/// How well a value of the request fits a parameter, whatever else could take it: by its class, its unit and the words
/// around it. At least 1 is a good fit.
pub fn value_fit(request: &Reading<'_>, literal: &IntentLiteral, input: &InputField) -> f32 {
    let suits = placing::suitability(literal.class, input);
    let named = placing::share_named_nearby(request.text, &literal.span, input);
    if suits == 0.0 { 0.0 } else { suits + named + placing::context_score(request, literal, input) }
}

/// Reads the request; `rank` is the position of each call.
pub(super) fn read_request(
    request: &Reading<'_>,
    calls: &PlannedCalls<'_>,
    rank: &[usize],
) -> RequestReading {
    let mut in_order: Vec<usize> = (0..rank.len()).collect();
    in_order.sort_by_key(|call| rank[*call]);
    let tools: Vec<&ToolFields> = in_order.iter().map(|call| calls.tools[*call]).collect();
    let aligned = clauses::align_calls(request, &tools);
    let spans: Vec<Range<usize>> = rank.iter().map(|place| aligned[*place].clone()).collect();
    let words =
        spans.iter().map(|span| clauses::unquoted_words(request, span).into_iter().collect()).collect();
    let mut given = Vec::new();
    for (call, span) in spans.iter().enumerate() {
        let others = |other: &usize| {
            *other != call && (calls.order == CallOrder::AnyOrder || rank[*other] < rank[call])
        };
        let results: HashSet<&str> =
            (0..rank.len()).filter(others).flat_map(|other| spoken_of(calls.tools[other])).collect();
        let here: Vec<&IntentLiteral> = request.values.iter().filter(|one| within(&one.span, span)).collect();
        given.extend(answers(request, &here, span, call, calls.tools, &results));
    }
    given.extend(elsewhere(&request.values, &spans, calls.tools, &given));
    RequestReading { spans, words, request_values: given }
}

/// Words that refer to a tool's results.
fn spoken_of(tool: &ToolFields) -> impl Iterator<Item = &str> {
    tool.name_words.iter().chain(tool.outputs.iter().flat_map(|output| &output.words)).map(String::as_str)
}

fn within(inner: &Range<usize>, outer: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Whether some call has a parameter made for this kind of value, such as a path or an address.
fn is_claimed(class: LiteralClass, tools: &[&ToolFields]) -> bool {
    matches!(class, LiteralClass::Path | LiteralClass::Url | LiteralClass::Email | LiteralClass::Phone)
        && tools.iter().flat_map(|tool| &tool.inputs).any(|input| placing::suitability(class, input) >= 1.0)
}

/// Values in a call's part of the request, each for the parameter it fits best.
fn answers(
    request: &Reading<'_>,
    here: &[&IntentLiteral],
    span: &Range<usize>,
    call: usize,
    tools: &[&ToolFields],
    results: &HashSet<&str>,
) -> Vec<RequestValue> {
    let tool = tools[call];
    // `the GCD` looks like a name and is another call's result.
    let known = |word: &String| results.contains(word.as_str()) || tool.name_words.contains(word);
    let refers = |one: &IntentLiteral| {
        one.class == LiteralClass::Name
            && super::fields::name_words(&request.text[one.span.clone()]).iter().all(known)
    };
    let mut pairs: Vec<(f32, &IntentLiteral, &InputField, bool)> = Vec::new();
    let mut before = None;
    for literal in here.iter().filter(|one| !refers(one)) {
        let aside = placing::follows_preposition(request, &literal.span, before);
        before = Some((&literal.span, aside));
        let least = if is_claimed(literal.class, tools) { 1.0 } else { f32::MIN_POSITIVE };
        for input in &tool.inputs {
            let suits = placing::suitability(literal.class, input);
            if suits >= least {
                // The object of the verb goes into a generic parameter; a value after a preposition does not.
                let role = if names::is_generic(input) == aside { 0.0 } else { 0.2 };
                let required = if input.required { 0.1 } else { 0.0 };
                let named = placing::share_named_nearby(request.text, &literal.span, input);
                let score = suits + named + placing::context_score(request, literal, input) + role + required;
                pairs.push((score, literal, input, named > 0.0));
            }
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut given: Vec<RequestValue> = Vec::new();
    pairs.retain(|pair| pair.0 >= GIVEN_BAR);
    for (score, literal, input, named) in &pairs {
        let open =
            |at: &Range<usize>, name: &str| given.iter().all(|one| one.span != *at && one.parameter != name);
        if open(&literal.span, &input.name) && !is_ambiguous(&pairs, (*score, literal), open) {
            let (parameter, at) = (input.name.clone(), literal.span.clone());
            given.push(RequestValue { call, parameter, span: at, score: *score, is_named_nearby: *named });
        }
    }
    given.extend(chosen(request.text, span, call, tool, &given));
    given
}

/// Whether a value fits more parameters equally well than there are such values, so that any choice would be a guess:
/// one number, and both `head` and `tail` would take it. Two numbers for two parameters are assigned in order.
fn is_ambiguous(
    pairs: &[(f32, &IntentLiteral, &InputField, bool)],
    (score, literal): (f32, &IntentLiteral),
    open: impl Fn(&Range<usize>, &str) -> bool,
) -> bool {
    let same = |pair: &&(f32, &IntentLiteral, &InputField, bool)| {
        (pair.0 - score).abs() < 1e-6 && open(&pair.1.span, &pair.2.name)
    };
    let of_value = |pair: &&(f32, &IntentLiteral, &InputField, bool)| pair.1.span == literal.span;
    let inputs: HashSet<&str> =
        pairs.iter().filter(same).filter(of_value).map(|pair| pair.2.name.as_str()).collect();
    let rivals =
        pairs.iter().filter(|pair| inputs.contains(pair.2.name.as_str()) && open(&pair.1.span, &pair.2.name));
    let values: HashSet<usize> = rivals.map(|pair| pair.1.span.start).collect();
    inputs.len() > values.len()
}

/// Paths and addresses in another call's part than that of the parameter made for them: "read and parse /tmp/a".
fn elsewhere(
    literals: &[IntentLiteral],
    spans: &[Range<usize>],
    tools: &[&ToolFields],
    given: &[RequestValue],
) -> Vec<RequestValue> {
    let mut found: Vec<RequestValue> = Vec::new();
    for literal in literals.iter().filter(|one| is_claimed(one.class, tools)) {
        if given.iter().any(|one| one.span == literal.span) {
            continue;
        }
        let open = tools
            .iter()
            .enumerate()
            .flat_map(|(call, tool)| tool.inputs.iter().map(move |input| (call, input)));
        let open = open.filter(|(call, input)| {
            let same = |one: &RequestValue| one.call == *call && one.parameter == input.name;
            placing::suitability(literal.class, input) >= 1.0 && !given.iter().chain(&found).any(same)
        });
        let nearest = open
            .min_by_key(|(call, input)| (!input.required, spans[*call].start.abs_diff(literal.span.start)));
        if let Some((call, input)) = nearest {
            let (parameter, at) = (input.name.clone(), literal.span.clone());
            found.push(RequestValue { call, parameter, span: at, score: 1.0, is_named_nearby: false });
        }
    }
    found
}

/// Enum parameters of which the request names a value.
fn chosen(
    text: &str,
    span: &Range<usize>,
    call: usize,
    tool: &ToolFields,
    given: &[RequestValue],
) -> Vec<RequestValue> {
    let lower = text[span.clone()].to_ascii_lowercase();
    let open = tool.inputs.iter().filter(|input| given.iter().all(|one| one.parameter != input.name));
    let named = |input: &InputField| {
        let at = input.choices.iter().filter(|choice| !choice.is_empty()).find_map(|choice| {
            let found = lower.match_indices(choice.as_str()).find(|(at, found)| {
                let edge = |c: Option<char>| !c.is_some_and(char::is_alphanumeric);
                edge(lower[..*at].chars().next_back()) && edge(lower[at + found.len()..].chars().next())
            });
            found.map(|(at, found)| span.start + at..span.start + at + found.len())
        })?;
        Some(RequestValue {
            call,
            parameter: input.name.clone(),
            span: at,
            score: 1.0,
            is_named_nearby: true,
        })
    };
    open.filter_map(named).collect()
}
