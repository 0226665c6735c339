//! Reuses learned capabilities: one requested by name, or one that serves an intent.

mod for_step;
mod quality;

use std::sync::Arc;

use pml_model::capability::{CapabilitySource, CapabilityState};
use pml_model::json::{Fields, raw};
use pml_model::{CapabilityId, Principal, ToolId};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::approve::CallPermission;
use crate::catalogue::{CatalogueTool, ToolSnapshot};
use crate::discover::{self, DiscoverResult, OpenInput, ReadyCall};
use crate::execute;
use crate::knowledge::cache;
use crate::knowledge::{CapabilityCandidate, IndexedCapability, intents};
use crate::plan::Pause;
use crate::planning::{RunRequest, Work};
use crate::problem::{ErrorCode, Problem};
use crate::reuse::{
    self, ArgumentBinding, Contradiction, ContradictionGrounds, ReadIntent, ReusableProcedure,
};
use crate::runtime::compute;
use crate::suggest::SuggestedDag;

use super::compose::{compose, only_reads};
use super::read_request::ReadRequest;
use super::version_names::resolve_alias;
pub(super) use for_step::{StepCapability, capabilities_for_step};
use quality::is_worth_suggesting;

/// The number of capabilities and of tools that are suggested.
const SUGGESTED: usize = 5;
/// The likelihood from which on a capability keeps a composed DAG from running in its place.
const LIKELY: f64 = 0.5;
/// The likelihood from which on a capability is offered as a ready call, without tools beside it.
const READY: f64 = 0.4;
/// Candidates with this share of the best one's score are offered beside it, up to this many.
const NEARLY: f64 = 0.6;
const OFFERED: usize = 3;
/// Where the best one contradicts the request, another is offered in its place only with this share of its score: the
/// opposite of a request is mostly the closest to it, and what comes after that has nothing to do with it.
const EQUALLY: f64 = 0.9;
/// The number of candidate capabilities examined to find the suggestions.
const LOOKED_AT: usize = 15;
/// Bytes: the longest program that is sent along for the agent to rewrite.
const LONGEST_PROGRAM: usize = 2_000;
/// How many successful runs a capability with tools that need approval must have before it runs without being named.
const TRIED: u64 = 3;

/// The outcome of looking for something to run.
pub(super) enum RecallOutcome {
    /// This request is to be run.
    Run(Box<RunRequest>),
    /// Nothing runs; the client has to choose from the suggestions.
    Suggested(Box<Suggestions>),
}

/// The candidates that could be run, and the inputs they lack.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Suggestions {
    /// The reason why nothing was run.
    pub because: String,
    /// The confidence that the first candidate is the right one, from 0 to 1.
    pub confidence: f64,
    /// The cached result of nearly the same intent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<EarlierResult>,
    /// Capabilities, best first.
    pub candidates: Vec<CapabilitySuggestion>,
    /// Tools, best first.
    pub tools: Vec<DiscoverResult>,
    /// A DAG of tools that could serve the intent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested_dag: Option<SuggestedDag>,
    /// Whether a candidate that contradicts the intent is clearly more likely than the first one.
    #[serde(skip)]
    pub is_outranked: bool,
}

impl Suggestions {
    /// The call that runs the first candidate for `intent`, if that is probably the right one.
    pub fn ready_call(&self, intent: &str) -> Option<ReadyCall> {
        self.candidates.first().filter(|_| !self.is_outranked).and_then(|first| first.ready_call(intent))
    }

    /// The tools that are worth reading about: those before the scores fall off.
    pub fn likely_tools(&self) -> &[DiscoverResult] {
        let scores: Vec<f64> = self.tools.iter().map(|tool| tool.score).collect();
        &self.tools[..discover::count_before_falloff(&scores)]
    }

    /// The JSON form for clients. Whoever can send the ready call needs no tools.
    pub fn to_json(&self, intent: &str) -> Value {
        let mut body = json!({ "status": "suggestions", "suggestions": self });
        body["suggestions"]["tools"] = match self.ready_call(intent) {
            Some(call) => {
                body["suggestions"]["readyCall"] = serde_json::to_value(call).unwrap_or_default();
                json!([])
            }
            None => serde_json::to_value(self.likely_tools()).unwrap_or_default(),
        };
        if let Some(earlier) = &self.earlier {
            body["cacheHit"] = "intent_similar".into();
            body["similarity"] = earlier.similarity.into();
            body["cacheAgeMs"] = earlier.age_ms.into();
        }
        body
    }
}

/// The cached result of nearly the same intent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlierResult {
    /// The earlier intent.
    pub intent: String,
    /// The similarity of the two intents, from 0 to 1.
    pub similarity: f64,
    /// The age of the result, in milliseconds.
    pub age_ms: i64,
    /// The result.
    pub result: Box<RawValue>,
}

/// A capability that could be run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CapabilitySuggestion {
    /// The id of the capability.
    pub id: CapabilityId,
    /// The name programs call it by.
    pub name: String,
    /// The description of its purpose.
    pub description: String,
    /// Who published it, if it is another's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_by: Option<Principal>,
    /// The confidence that this capability is the right one, from 0 to 1.
    pub confidence: f64,
    /// An intent that it served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served: Option<String>,
    /// The arguments it would run with.
    pub arguments: Map<String, Value>,
    /// The inputs it lacks, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingInput>,
    /// The value in the intent that contradicts a constant of the capability; if set, it is not run for this intent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contradiction: Option<ContradictedConstant>,
    /// Its program, if the client has to send that with another value in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The schema of its parameters.
    pub parameters: Value,
}

impl CapabilitySuggestion {
    /// The call that runs it for `intent`, if it is likely and nothing contradicts it. Defaults that the intent does
    /// not mention are left out; one that a writing capability would not take unasked is shown as open.
    fn ready_call(&self, intent: &str) -> Option<ReadyCall> {
        if self.contradiction.is_some() || self.confidence < READY {
            return None;
        }
        let default = |name: &str| self.parameters.get("properties")?.get(name)?.get("default").cloned();
        let is_said = |name: &str, value: &Value| {
            default(name).as_ref() != Some(value) || reuse::mentions(intent, value)
        };
        let mut context = self.arguments.clone();
        context.retain(|name, value| is_said(name, value));
        let mut open = Vec::new();
        for missing in &self.missing {
            if let (Some(name), Some(value)) = (&missing.name, &missing.unspoken_default) {
                context.insert(name.clone(), value.clone());
            }
            open.extend(missing.name.as_ref().map(|name| OpenInput::Parameter {
                was: missing.unspoken_default.clone().or_else(|| default(name)),
                name: name.clone(),
            }));
            open.extend(missing.unplaced.as_ref().map(|value| OpenInput::Value { value: value.clone() }));
        }
        ReadyCall::new(intent, &self.name, context, open)
    }
}

/// A constant of a capability that the intent contradicts.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContradictedConstant {
    /// The constant in the capability.
    pub constant: String,
    /// The value in the intent.
    pub intent_says: String,
}

/// An input that the client has to give.
#[derive(Debug, Serialize)]
pub struct MissingInput {
    /// The parameter; `None` if the intent contains a value that fits no parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What to do, in one sentence.
    pub why: String,
    /// The value in the intent that fits no parameter.
    #[serde(skip)]
    pub unplaced: Option<String>,
    /// The default, where no intent ever mentioned it.
    #[serde(skip)]
    pub unspoken_default: Option<Value>,
}

/// Resolves a request for a capability or for an intent to the work to run, or to suggestions.
pub(super) async fn resolve_work(
    app: &Arc<App>,
    asked: RunRequest,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Result<RecallOutcome, Problem> {
    match &asked.work {
        Work::Code(_) | Work::Dag { .. } | Work::Tool { .. } | Work::Call(_) => {
            Ok(RecallOutcome::Run(Box::new(asked)))
        }
        Work::Capability(name) => by_name(app, &name.clone(), asked).await,
        Work::Intent => by_intent(app, asked, visible).await,
    }
}

async fn by_name(app: &Arc<App>, name: &str, asked: RunRequest) -> Result<RecallOutcome, Problem> {
    let name = &resolve_alias(app, &asked.principal, name).await?;
    let mut known = app.knowledge.memory.find_by_name(&asked.principal, name).await?;
    if let Some(unproven) = known.as_ref().filter(|known| known.program.unproven_by.is_some()) {
        execute::prove(&app.runs, &asked.principal, &unproven.id).await;
        known = app.knowledge.memory.find_by_name(&asked.principal, name).await?;
    }
    let Some(known) = known.filter(|known| known.state != CapabilityState::Planned) else {
        return Err(Problem::new(
            ErrorCode::NotFound,
            format!("there is no capability `{}`", pml_model::name::printable(name)),
        )
        .hint("`pml_discover` finds capabilities by what they are for"));
    };
    let request = ReadRequest::new(&asked)?;
    let binding = bound(app, &known, &request).for_named_procedure(&request.context_for(&known.parameters));
    // Whoever names a procedure knows what it does, whatever the words of the intent; the intent is not remembered.
    let contradiction = contradiction(&known, &request, &binding)
        .filter(|contradiction| contradiction.grounds == ContradictionGrounds::Constant);
    if binding.is_complete() && contradiction.is_none() {
        return request_for_capability(known.as_ref(), &binding, asked);
    }
    let because = match &contradiction {
        Some(contradiction) => refused(&known, contradiction),
        None => format!("`{}` needs to be told more", known.name),
    };
    let candidate = CapabilityCandidate {
        similarity: 1.0,
        similar_intent: known.intents.texts().first().cloned(),
        score: 1.0,
        capability: known,
    };
    let suggestion = suggestion(&candidate, &binding, contradiction);
    Ok(RecallOutcome::Suggested(Box::new(Suggestions {
        because,
        confidence: 1.0,
        earlier: None,
        candidates: vec![suggestion],
        tools: Vec::new(),
        suggested_dag: None,
        is_outranked: false,
    })))
}

async fn by_intent(
    app: &Arc<App>,
    mut asked: RunRequest,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Result<RecallOutcome, Problem> {
    let request = discover::DiscoverRequest::new(asked.intent.clone(), SUGGESTED);
    discover::check_request(&request)?;
    let wanted = app.knowledge.embeddings.read_intent(&asked.intent).await;
    let snapshot = app.tools.snapshot();
    let close = super::related_to_session(app, &asked.principal, &asked.session);
    let seen = |tool: &CatalogueTool| visible(&tool.id);
    let tools =
        super::rank_for_request(app, &asked.principal, &wanted, (Vec::new(), close), &request, seen)?.results;
    let mut found = app.knowledge.find(&asked.principal, &asked.intent, &wanted).await?;
    if prove_found(app, &asked.principal, &found).await {
        found = app.knowledge.find(&asked.principal, &asked.intent, &wanted).await?;
    }
    found.retain(|candidate| is_worth_suggesting(&candidate.capability.statistics));
    app.runs.metrics.note_search(!found.is_empty());
    app.knowledge.order_candidates(&asked.principal, &mut found, &wanted);
    found.truncate(LOOKED_AT);
    let read = ReadRequest::new(&asked)?;
    let bind = |candidate: &mut CapabilityCandidate| {
        let binding = bound(app, &candidate.capability, &read);
        // The similarity is more precise once the arguments are bound.
        candidate.similarity = binding.similarity;
        candidate.score = candidate.score.max(binding.similarity * candidate.capability.reliability());
        binding
    };
    let bindings: Vec<ArgumentBinding> = compute(|| found.iter_mut().map(bind).collect());
    let mut found: Vec<(CapabilityCandidate, ArgumentBinding)> = found.into_iter().zip(bindings).collect();
    found.sort_by(|(one, _), (other, _)| rank(other).total_cmp(&rank(one)));
    found.truncate(SUGGESTED);
    let (found, mut contradictions) = without_contradiction_first(found, &read);
    let kept_from = match found.first() {
        None => None,
        Some((best, binding)) => {
            // A capability that contradicts the intent is no rival, nor one that was only explored.
            let next = found.get(1).filter(|_| contradictions[1].is_none()).map(|next| &next.0);
            let next = next.filter(|next| !next.capability.is_unproven());
            match &contradictions[0] {
                Some(contradiction) => Some(refused(&best.capability, contradiction)),
                None => match kept_from(app, best, binding, next) {
                    None => return request_for_capability(&best.capability.clone(), binding, asked),
                    because => because,
                },
            }
        }
    };
    let composed = compose(app, &asked.principal, &asked.intent, &read.context, &wanted.text, visible).await;
    // A composed DAG must not bypass a likely capability, nor do in another way what a contradicted constant rules out.
    let is_proven = |candidate: &CapabilityCandidate| !candidate.capability.is_unproven();
    let likely = found.first().is_some_and(|(best, _)| is_proven(best) && likelihood(best) >= LIKELY)
        || contradictions.first().is_some_and(Option::is_some)
        || composed.as_ref().is_some_and(|dag| {
            found.iter().any(|(candidate, _)| is_proven(candidate) && does_more(candidate, dag))
        });
    if let Some(dag) = composed.as_ref().filter(|dag| !likely && sure(app, &snapshot, dag)) {
        asked.work = Work::Dag { document: dag.dag_structure.to_string(), pause: Pause::None };
        return Ok(RecallOutcome::Run(Box::new(asked)));
    }
    let is_outranked = is_outranked(&found, &contradictions);
    let best = found.first().map_or(0.0, |(best, _)| best.score);
    let candidates: Vec<CapabilitySuggestion> = found
        .iter()
        .enumerate()
        .filter(|(place, (candidate, _))| worth(*place, candidate, best))
        .map(|(place, (candidate, binding))| suggestion(candidate, binding, contradictions[place].take()))
        .collect();
    let confidence = candidates.first().map_or(0.0, |first| first.confidence);
    let earlier = earlier(app, &found, &asked, visible).await;
    let suggested_dag = match &composed {
        // A likely capability comes first; a DAG beside it would only be more to read.
        Some(_) if confidence >= READY => None,
        _ => composed,
    };
    let because = kept_from.unwrap_or_else(|| {
        let todo = match (&suggested_dag, tools.is_empty()) {
            (Some(_), _) => "complete the suggested DAG, or write a program over these tools",
            (None, false) => "write a program over these tools",
            (None, true) => {
                "no tool has to do with it either; say it in other words, or add a server that can do it"
            }
        };
        format!("nothing that was learned serves this; {todo}")
    });
    let suggested =
        Suggestions { because, confidence, earlier, candidates, tools, suggested_dag, is_outranked };
    Ok(RecallOutcome::Suggested(Box::new(suggested)))
}

/// The call that runs the most likely of these capabilities for an intent, with its id; `None` if none is likely.
pub(super) fn ready_call(
    app: &App,
    intent: &str,
    found: &[CapabilityCandidate],
) -> Option<(CapabilityId, ReadyCall)> {
    let request = ReadRequest::of_intent(intent);
    let offered = found.iter().filter(|candidate| is_worth_suggesting(&candidate.capability.statistics));
    let suggestions = offered.take(LOOKED_AT).map(|candidate| {
        let binding = bound(app, &candidate.capability, &request);
        let candidate = CapabilityCandidate { similarity: binding.similarity, ..candidate.clone() };
        let contradiction = contradiction(&candidate.capability, &request, &binding);
        let contradicted = contradiction.is_some().then(|| likelihood(&candidate));
        let is_proven = !candidate.capability.is_unproven();
        (suggestion(&candidate, &binding, contradiction), contradicted, is_proven)
    });
    let suggestions: Vec<(CapabilitySuggestion, Option<f64>, bool)> = suggestions.collect();
    let contradicted = suggestions.iter().filter_map(|(_, likelihood, _)| *likelihood).fold(0.0, f64::max);
    let calls = suggestions.into_iter().filter_map(|(suggestion, _, is_proven)| {
        let rank = (suggestion.confidence, is_proven);
        Some((rank, suggestion.id.clone(), suggestion.ready_call(intent)?))
    });
    let best = calls.max_by(|(one, ..), (other, ..)| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    best.filter(|((confidence, _), ..)| *confidence >= EQUALLY * contradicted).map(|(_, id, call)| (id, call))
}

/// Proves the lifted forms of the best candidates that nobody has proven yet, and returns whether there were any. Mostly
/// that is done right after the run; the process may have ended before.
async fn prove_found(app: &Arc<App>, principal: &Principal, found: &[CapabilityCandidate]) -> bool {
    let mut any = false;
    for candidate in
        found.iter().take(SUGGESTED).filter(|found| found.capability.program.unproven_by.is_some())
    {
        execute::prove(&app.runs, principal, &candidate.capability.id).await;
        any = true;
    }
    any
}

/// Whether a candidate is offered: the best always is, the others if they are likely or nearly as good.
fn worth(place: usize, candidate: &CapabilityCandidate, best: f64) -> bool {
    place == 0 || (place < OFFERED && candidate.score >= NEARLY * best)
}

/// Whether a learned procedure calls every tool of a DAG: then it is what this client does with these tools.
fn does_more(candidate: &CapabilityCandidate, dag: &SuggestedDag) -> bool {
    let tasks = dag.dag_structure.get("tasks").and_then(Value::as_array);
    let mut tools = tasks.into_iter().flatten().filter_map(|task| task.get("tool")?.as_str());
    tools.all(|tool| candidate.capability.tools.iter().any(|used| used.id == tool))
}

/// Pairs each offered candidate with the constant it contradicts. Likely candidates without a contradiction come first,
/// so that of two procedures that differ in a constant, the one with the requested value wins.
fn without_contradiction_first(
    found: Vec<(CapabilityCandidate, ArgumentBinding)>,
    request: &ReadRequest,
) -> (Vec<(CapabilityCandidate, ArgumentBinding)>, Vec<Option<Contradiction>>) {
    let best = found.first().map_or(0.0, |(best, _)| best.score);
    let judged = |(place, (candidate, binding)): (usize, (CapabilityCandidate, ArgumentBinding))| {
        let offered = worth(place, &candidate, best);
        let contradiction = offered
            .then(|| contradiction(&candidate.capability, request, &binding))
            .flatten()
            .filter(|found| is_serious(found, &candidate));
        ((candidate, binding), contradiction)
    };
    let mut judged: Vec<_> = found.into_iter().enumerate().map(judged).collect();
    judged.sort_by_key(|((candidate, _), contradiction)| match contradiction {
        None if candidate.score >= NEARLY * best => 0,
        Some(_) => 1,
        None => 2,
    });
    judged.into_iter().unzip()
}

/// Whether a candidate that contradicts the intent is clearly more likely than the first one.
fn is_outranked(
    found: &[(CapabilityCandidate, ArgumentBinding)],
    contradictions: &[Option<Contradiction>],
) -> bool {
    let contradicted = found.iter().zip(contradictions).filter(|(_, contradiction)| contradiction.is_some());
    let best = contradicted.map(|((candidate, _), _)| candidate.score).fold(0.0, f64::max);
    found.first().is_some_and(|(first, _)| first.score < EQUALLY * best)
}

/// Whether a contradiction is told: opposite words of a capability that is not likely anyway say nothing.
fn is_serious(contradiction: &Contradiction, candidate: &CapabilityCandidate) -> bool {
    contradiction.grounds == ContradictionGrounds::Constant || likelihood(candidate) >= READY
}

/// Whether a composed DAG runs without a choice by the client: it is surely right, lacks nothing, and only reads.
fn sure(app: &App, snapshot: &ToolSnapshot, dag: &SuggestedDag) -> bool {
    let enough = dag.confidence * 100.0 >= f64::from(app.config().memory.confidence);
    enough && dag.complete && only_reads(app, snapshot, dag)
}

/// The result of nearly the same intent with the same values, if the user has enabled that.
async fn earlier(
    app: &Arc<App>,
    found: &[(CapabilityCandidate, ArgumentBinding)],
    asked: &RunRequest,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Option<EarlierResult> {
    // Context given beside the intent is not part of its text, and leads to another result.
    if !ReadRequest::new(asked).is_ok_and(|request| request.context.is_empty()) {
        return None;
    }
    let shown = found.iter().filter(|(candidate, _)| {
        asked.use_cache && cache::shows_similar_results(&app.knowledge, &candidate.capability.cache)
    });
    for (candidate, binding) in shown {
        let Ok(RecallOutcome::Run(work)) =
            request_for_capability(&candidate.capability, binding, asked.clone())
        else {
            continue;
        };
        let Ok(plan) = super::plan_request(app, &work, visible).await else { continue };
        let Some(ticket) =
            cache::make_ticket(&app.knowledge, &plan, &asked.principal, Some(&candidate.capability.id)).await
        else {
            continue;
        };
        if let Some(cache::SimilarResult { result, intent, similarity, age_ms }) =
            app.knowledge.cache.find_similar(&app.knowledge, &ticket).await
        {
            let similarity = (similarity * 1000.0).round() / 1000.0;
            return Some(EarlierResult { intent, similarity, age_ms, result });
        }
    }
    None
}

/// The rank of a candidate: those that surely serve come first, the others by all that speaks for them.
fn rank(candidate: &CapabilityCandidate) -> f64 {
    // What was only explored never comes before what surely serves and was run.
    let is_sure = candidate.similarity >= reuse::SURE && !candidate.capability.is_unproven();
    if is_sure { 1.0 + confidence(candidate) } else { candidate.score }
}

/// How likely the client means this capability, from 0 to 1. Unlike [`confidence`], which decides whether it runs
/// unnamed, it counts words and embeddings too.
fn likelihood(candidate: &CapabilityCandidate) -> f64 {
    confidence(candidate).max(candidate.score)
}

/// The confidence that running this capability serves the intent, from 0 to 1.
fn confidence(candidate: &CapabilityCandidate) -> f64 {
    candidate.similarity * candidate.capability.reliability()
}

/// The reason why the best capability is not run without a choice; `None` if it is.
fn kept_from(
    app: &App,
    best: &CapabilityCandidate,
    binding: &ArgumentBinding,
    next: Option<&CapabilityCandidate>,
) -> Option<String> {
    let known = &best.capability;
    if confidence(best) * 100.0 < f64::from(app.config().memory.confidence) {
        return Some(format!("it is not sure enough that `{}` is meant", known.name));
    }
    // An equally likely capability would do something else.
    if let Some(next) = next.filter(|next| confidence(next) >= confidence(best)) {
        return Some(format!("`{}` and `{}` serve this alike", known.name, next.capability.name));
    }
    if !binding.is_complete() {
        return Some(format!("`{}` needs to be told more", known.name));
    }
    if known.is_unproven() {
        return Some(format!("`{}` never ran here, so it runs by name only", known.name));
    }
    let asks = verdicts(app, known)
        .any(|verdict| verdict.is_none_or(|verdict| verdict.mode != CallPermission::Auto));
    if asks && known.is_of_other {
        let owner = pml_model::name::printable(&known.owner.0);
        return Some(format!(
            "`{}` of {owner} calls tools that a person is asked about, so it runs by name only",
            known.name
        ));
    }
    if asks && !known.approved && known.statistics.success_count < TRIED {
        return Some(format!(
            "`{}` calls tools that a person is asked about, and is too new to be run unnamed",
            known.name
        ));
    }
    None
}

fn verdicts<'k>(
    app: &App,
    known: &'k IndexedCapability,
) -> impl Iterator<Item = Option<crate::approve::ToolVerdict>> + 'k {
    let (snapshot, policy) = (app.tools.snapshot(), app.policy());
    known.tools.iter().map(move |tool| {
        let id = ToolId::parse(&tool.id).ok()?;
        let tool = snapshot.tool(&id).ok()?;
        Some(policy.verdict(&id, &tool.definition.annotations))
    })
}

/// Binds the request to the parameters of the capability.
fn bound(app: &App, known: &IndexedCapability, request: &ReadRequest) -> ArgumentBinding {
    let intents: Vec<&ReadIntent> = known.intents.read().iter().collect();
    let reads_only = verdicts(app, known).all(|verdict| verdict.is_some_and(|verdict| verdict.read_only));
    let parameters = known.with_first_values();
    let procedure = ReusableProcedure {
        parameters: &parameters,
        intents: &intents,
        examples: &known.examples,
        reads_only,
    };
    reuse::bind(&procedure, &request.intent, &request.context_for(&known.parameters))
}

/// The constant of a capability that the intent contradicts.
fn contradiction(
    known: &IndexedCapability,
    request: &ReadRequest,
    binding: &ArgumentBinding,
) -> Option<Contradiction> {
    intents::judge(known, &request.intent, &binding.arguments).contradiction
}

/// The message that a capability contradicts the intent, and what to do instead.
fn refused(known: &IndexedCapability, contradiction: &Contradiction) -> String {
    format!("`{}` does not do this: {contradiction}; send the program for this intent", known.name)
}

fn suggestion(
    candidate: &CapabilityCandidate,
    binding: &ArgumentBinding,
    contradiction: Option<Contradiction>,
) -> CapabilitySuggestion {
    let missing = binding.missing.iter().map(|missing| MissingInput {
        name: Some(missing.name.clone()),
        why: missing.reason.clone(),
        unplaced: None,
        unspoken_default: missing.unspoken_default.clone(),
    });
    let unplaced = binding.unplaced.iter().map(|text| MissingInput {
        name: None,
        why: unclear(&candidate.capability, text),
        unplaced: Some(text.clone()),
        unspoken_default: None,
    });
    let known = &candidate.capability;
    CapabilitySuggestion {
        id: known.id.clone(),
        name: known.name.clone(),
        description: known.description.clone(),
        published_by: known.is_of_other.then(|| known.owner.clone()),
        confidence: (likelihood(candidate) * 1000.0).round() / 1000.0,
        served: candidate.similar_intent.clone(),
        arguments: binding.arguments.clone(),
        missing: missing.chain(unplaced).collect(),
        program: contradiction.as_ref().and_then(|_| program(known)),
        contradiction: contradiction.map(|Contradiction { constant: fixed, said_instead: said, .. }| {
            ContradictedConstant { constant: fixed, intent_says: said }
        }),
        parameters: known.parameters.clone(),
    }
}

/// The program of a capability as it was written, if it is short enough to be sent along.
fn program(known: &IndexedCapability) -> Option<String> {
    match &known.program.source {
        CapabilitySource::Code { code, .. } if code.len() <= LONGEST_PROGRAM => Some(code.clone()),
        CapabilitySource::Code { .. } | CapabilitySource::Dag { .. } | CapabilitySource::Tool { .. } => None,
    }
}

/// The message that the intent contains a value which fits no parameter of the capability.
fn unclear(known: &IndexedCapability, text: &str) -> String {
    let members = known.parameters.get("properties").and_then(Value::as_object);
    let names: Vec<String> =
        members.into_iter().flat_map(|all| all.keys().map(|name| format!("`{name}`"))).collect();
    match names.as_slice() {
        [] => format!(
            "it is not clear what `{text}` is for: it takes nothing, so write a program where that matters"
        ),
        names => format!(
            "it is not clear what `{text}` is for: it takes {}; give it by name in `context` if it is one of these",
            names.join(", ")
        ),
    }
}

/// The request that runs the capability with the bound arguments.
pub(super) fn request_for_capability(
    known: &IndexedCapability,
    binding: &ArgumentBinding,
    mut asked: RunRequest,
) -> Result<RecallOutcome, Problem> {
    asked.capability = Some(known.id.clone());
    asked.arguments = raw(&binding.arguments);
    asked.work = match &known.program.source {
        CapabilitySource::Code { code, template } => Work::Code(template.as_ref().unwrap_or(code).clone()),
        CapabilitySource::Dag { dag_structure, template } => {
            let document = template.as_ref().unwrap_or(dag_structure).get().to_owned();
            Work::Dag { document, pause: Pause::None }
        }
        CapabilitySource::Tool { tool_id, default_args } => {
            let tool = ToolId::parse(tool_id)
                .map_err(|error| Problem::new(ErrorCode::UnknownTool, error.to_string()))?;
            // Bound arguments override the defaults that the capability was made with.
            let mut defaults = Fields::parse(default_args.get()).unwrap_or_default();
            for name in binding.arguments.keys() {
                defaults.remove(name);
            }
            Work::Tool { tool, defaults: defaults.to_raw() }
        }
    };
    Ok(RecallOutcome::Run(Box::new(asked)))
}
