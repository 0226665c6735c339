//! What was learned is used again: a capability that is asked for by name, or one that serves an intent.

use std::sync::Arc;

use pml_model::capability::{Source, State, Statistics};
use pml_model::json::{Fields, raw};
use pml_model::{CapabilityId, ToolId};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::approve::Mode;
use crate::catalogue::{Snapshot, Tool};
use crate::discover::{self, Found};
use crate::knowledge::cache;
use crate::knowledge::{Candidate, Known, intents};
use crate::plan::Pause;
use crate::planning::{Asked, Execution};
use crate::problem::{Code, Problem};
use crate::reuse::{self, Binding, Contradiction, Procedure};
use crate::suggest::SuggestedDag;

use super::compose::{compose, only_reads};

/// How many capabilities and tools are suggested.
const SUGGESTED: usize = 5;
/// How good a capability must be to be suggested at all, before it has shown anything; one success is enough.
const WORTH_IT: f64 = 0.45;
/// How much what came of a capability moves that, and how far.
const MOVES: f64 = 0.5;
const LOWEST: f64 = 0.40;
const HIGHEST: f64 = 0.95;
/// How sure it must be that one beside the best is meant.
const LIKELY: f64 = 0.5;
/// How many capabilities are looked at to find these.
const LOOKED_AT: usize = 15;
/// The longest program that is sent along to be written anew, in bytes.
const LONGEST_PROGRAM: usize = 2_000;
/// How often a capability with tools that a person is asked about must have worked to be run without being named.
const TRIED: u64 = 3;

/// What came of looking for something to run.
pub(super) enum Recalled {
    /// This is run.
    Run(Box<Execution>),
    /// This is what there is; somebody has to choose.
    Suggested(Box<Suggested>),
}

/// What could be run, and what is missing.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Suggested {
    /// Why nothing was run.
    pub because: String,
    /// How sure it is that the first candidate is meant, from 0 to 1.
    pub confidence: f64,
    /// What came of nearly the same intent before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Earlier>,
    /// Capabilities, best first.
    pub candidates: Vec<Suggestion>,
    /// Tools, best first.
    pub tools: Vec<Found>,
    /// A DAG of tools that could serve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested_dag: Option<SuggestedDag>,
}

impl Suggested {
    /// As programs are told of it.
    pub fn body(&self) -> Value {
        let mut body = json!({ "status": "suggestions", "suggestions": self });
        if let Some(earlier) = &self.earlier {
            body["cacheHit"] = "intent_similar".into();
            body["similarity"] = earlier.similarity.into();
            body["cacheAgeMs"] = earlier.age_ms.into();
        }
        body
    }
}

/// What came of nearly the same intent before.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Earlier {
    /// What was asked for then.
    pub intent: String,
    /// How alike the two are.
    pub similarity: f64,
    /// How old the result is.
    pub age_ms: i64,
    /// The result.
    pub result: Box<RawValue>,
}

/// A capability that could be run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Suggestion {
    /// Its id.
    pub id: CapabilityId,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// How sure it is that it is meant.
    pub confidence: f64,
    /// An intent it served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served: Option<String>,
    /// What it would be run with.
    pub arguments: Map<String, Value>,
    /// What has to be given before it can be run, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// The value of the intent that contradicts it; it is not run for this intent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contradiction: Option<Contradicted>,
    /// What it runs, where that has to be sent with another value in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// What it takes.
    pub parameters: Value,
}

/// A constant that an intent contradicts.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Contradicted {
    /// What the capability is fixed to.
    pub constant: String,
    /// What the intent says instead.
    pub intent_says: String,
}

/// Something that has to be given.
#[derive(Debug, Serialize)]
pub struct Missing {
    /// The parameter; nothing where something was said that has no place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What to do, in a sentence.
    pub why: String,
}

/// What is to be run, where a capability is asked for or anything that serves.
pub(super) async fn recall(
    app: &Arc<App>,
    asked: Execution,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Result<Recalled, Problem> {
    match &asked.work {
        Asked::Code(_) | Asked::Dag { .. } | Asked::Tool { .. } | Asked::Call(_) => {
            Ok(Recalled::Run(Box::new(asked)))
        }
        Asked::Capability(name) => by_name(app, &name.clone(), asked).await,
        Asked::Anything => by_intent(app, asked, visible).await,
    }
}

async fn by_name(app: &Arc<App>, name: &str, asked: Execution) -> Result<Recalled, Problem> {
    let known = app.knowledge.memory.named(&asked.principal, name).await?;
    let Some(known) = known.filter(|known| known.state != State::Planned) else {
        return Err(Problem::new(
            Code::NotFound,
            format!("there is no capability `{}`", pml_model::name::printable(name)),
        )
        .hint("`pml_discover` finds capabilities by what they are for"));
    };
    let binding = bound(app, &known, &asked)?.by_name(&context(&asked)?);
    let contradiction = contradiction(&known, &asked, &binding);
    if binding.runs() && contradiction.is_none() {
        return run(known.as_ref(), &binding, asked);
    }
    let because = match &contradiction {
        Some(contradiction) => refused(&known, contradiction),
        None => format!("`{}` needs to be told more", known.name),
    };
    let candidate = Candidate { similarity: 1.0, like: known.intents.first().cloned(), score: 1.0, known };
    let suggestion = suggestion(&candidate, &binding, contradiction);
    Ok(Recalled::Suggested(Box::new(Suggested {
        because,
        confidence: 1.0,
        earlier: None,
        candidates: vec![suggestion],
        tools: Vec::new(),
        suggested_dag: None,
    })))
}

async fn by_intent(
    app: &Arc<App>,
    mut asked: Execution,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Result<Recalled, Problem> {
    let request = discover::Request::new(asked.intent.clone(), SUGGESTED);
    discover::check(&request)?;
    let wanted = app.knowledge.embeddings.wanted(&asked.intent).await;
    let snapshot = app.tools.snapshot();
    let close = super::close_to(app, &asked.principal, &asked.session);
    let seen = |tool: &Tool| visible(&tool.id);
    let tools = super::found(app, &asked.principal, &wanted, (Vec::new(), close), &request, seen)?.results;
    let mut found = app.knowledge.find(&asked.principal, &asked.intent, &wanted).await?;
    found.retain(|candidate| is_worth_suggesting(&candidate.known.statistics));
    app.knowledge.put_in_order(&asked.principal, &mut found, &wanted);
    found.truncate(LOOKED_AT);
    let mut bindings = Vec::with_capacity(found.len());
    for candidate in &mut found {
        let binding = bound(app, &candidate.known, &asked)?;
        // With what it would be given in its place, more can be said.
        candidate.similarity = binding.similarity;
        bindings.push(binding);
    }
    let mut found: Vec<(Candidate, Binding)> = found.into_iter().zip(bindings).collect();
    found.sort_by(|one, other| confidence(&other.0).total_cmp(&confidence(&one.0)));
    found.truncate(SUGGESTED);
    let (found, mut contradictions) = without_contradiction_first(found, &asked);
    let kept_from = match found.first() {
        None => None,
        Some((best, binding)) => {
            // One that does something else for sure is no rival.
            let next = found.get(1).filter(|_| contradictions[1].is_none()).map(|next| &next.0);
            match &contradictions[0] {
                Some(contradiction) => Some(refused(&best.known, contradiction)),
                None => match kept_from(app, best, binding, next) {
                    None => return run(&best.known.clone(), binding, asked),
                    because => because,
                },
            }
        }
    };
    let given = context(&asked)?;
    let composed = compose(app, &asked.principal, &asked.intent, &given, &wanted.text, visible).await;
    // What was learned and may be meant is not passed over; nor is it done in another way what a value speaks against.
    let likely = found.first().is_some_and(|(best, _)| confidence(best) >= LIKELY)
        || contradictions.first().is_some_and(Option::is_some);
    if let Some(dag) = composed.as_ref().filter(|dag| !likely && sure(app, &snapshot, dag)) {
        asked.work = Asked::Dag { document: dag.dag_structure.to_string(), pause: Pause::None };
        return Ok(Recalled::Run(Box::new(asked)));
    }
    let candidates: Vec<Suggestion> = found
        .iter()
        .enumerate()
        .filter(|(place, (candidate, _))| worth(*place, candidate))
        .map(|(place, (candidate, binding))| suggestion(candidate, binding, contradictions[place].take()))
        .collect();
    let confidence = candidates.first().map_or(0.0, |first| first.confidence);
    let earlier = earlier(app, &found, &asked, visible).await;
    let suggested_dag = match &composed {
        // What was learned comes first; a DAG beside it would only be more to read.
        Some(_) if confidence >= LIKELY => None,
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
    let suggested = Suggested { because, confidence, earlier, candidates, tools, suggested_dag };
    Ok(Recalled::Suggested(Box::new(suggested)))
}

/// Whether one of several candidates is offered: the best, and those that are likely.
fn worth(place: usize, candidate: &Candidate) -> bool {
    place == 0 || confidence(candidate) >= LIKELY
}

/// The candidates with what each of those that are offered contradicts: likely ones that fit before those that do not, so
/// that of two procedures that differ in a constant the one with the value that is asked for counts.
fn without_contradiction_first(
    found: Vec<(Candidate, Binding)>,
    asked: &Execution,
) -> (Vec<(Candidate, Binding)>, Vec<Option<Contradiction>>) {
    let judged = |(place, (candidate, binding)): (usize, (Candidate, Binding))| {
        let offered = worth(place, &candidate);
        let contradiction = offered.then(|| contradiction(&candidate.known, asked, &binding)).flatten();
        ((candidate, binding), contradiction)
    };
    let mut judged: Vec<_> = found.into_iter().enumerate().map(judged).collect();
    judged.sort_by_key(|((candidate, _), contradiction)| match contradiction {
        None if confidence(candidate) >= LIKELY => 0,
        Some(_) => 1,
        None => 2,
    });
    judged.into_iter().unzip()
}

/// Whether a DAG that was put together is simply run: it is surely meant, nothing is missing, and it only reads.
fn sure(app: &App, snapshot: &Snapshot, dag: &SuggestedDag) -> bool {
    let enough = dag.confidence * 100.0 >= f64::from(app.config().memory.confidence);
    enough && dag.complete && only_reads(app, snapshot, dag)
}

/// What came of nearly the same intent with the same values before, where the user wants to see that.
async fn earlier(
    app: &Arc<App>,
    found: &[(Candidate, Binding)],
    asked: &Execution,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Option<Earlier> {
    // What is given beside the intent is not said in it, and makes another result.
    if !context(asked).is_ok_and(|given| given.is_empty()) {
        return None;
    }
    let shown = found
        .iter()
        .filter(|(candidate, _)| asked.cache && cache::is_shown(&app.knowledge, &candidate.known.cache));
    for (candidate, binding) in shown {
        let Ok(Recalled::Run(work)) = run(&candidate.known, binding, asked.clone()) else { continue };
        let Ok(plan) = super::planned(app, &work, visible).await else { continue };
        let Some(ticket) =
            cache::ticket(&app.knowledge, &plan, &asked.principal, Some(&candidate.known.id)).await
        else {
            continue;
        };
        if let Some(cache::Alike { result, intent, similarity, age_ms }) =
            app.knowledge.cache.alike(&app.knowledge, &ticket).await
        {
            let similarity = (similarity * 1000.0).round() / 1000.0;
            return Some(Earlier { intent, similarity, age_ms, result });
        }
    }
    None
}

/// Whether a capability is good enough to be suggested. Use alone does not carry one that fails: what is asked of it grows
/// with its failures.
fn is_worth_suggesting(statistics: &Statistics) -> bool {
    statistics.quality() >= bar(statistics)
}

/// How good a capability must be. A run of it that worked is a hit and one that failed is waste, whether it was suggested,
/// named or written out again: each shows what the next suggestion would come to. [`Statistics::success`] is the mean of
/// Beta(hits + 1.6, waste + 0.4), the posterior of a prior whose mean an untried one has; the bar rises by how far it fell
/// short of that, and falls by how far it went beyond.
fn bar(statistics: &Statistics) -> f64 {
    let expected = Statistics::default().success();
    (WORTH_IT + MOVES * (expected - statistics.success())).clamp(LOWEST, HIGHEST)
}

/// How sure it is that running this is what is wanted.
fn confidence(candidate: &Candidate) -> f64 {
    candidate.similarity * candidate.known.reliability()
}

/// Why the best capability is not simply run.
fn kept_from(app: &App, best: &Candidate, binding: &Binding, next: Option<&Candidate>) -> Option<String> {
    let known = &best.known;
    if confidence(best) * 100.0 < f64::from(app.config().memory.confidence) {
        return Some(format!("it is not sure enough that `{}` is meant", known.name));
    }
    // One that is as good would do something else.
    if let Some(next) = next.filter(|next| confidence(next) >= confidence(best)) {
        return Some(format!("`{}` and `{}` serve this alike", known.name, next.known.name));
    }
    if !binding.runs() {
        return Some(format!("`{}` needs to be told more", known.name));
    }
    let asks = verdicts(app, known).any(|verdict| verdict.is_none_or(|verdict| verdict.mode != Mode::Auto));
    if asks && !known.approved && known.statistics.success_count < TRIED {
        return Some(format!(
            "`{}` calls tools that a person is asked about, and is too new to be run unnamed",
            known.name
        ));
    }
    None
}

fn verdicts<'k>(app: &App, known: &'k Known) -> impl Iterator<Item = Option<crate::approve::Verdict>> + 'k {
    let (snapshot, policy) = (app.tools.snapshot(), app.policy());
    known.tools.iter().map(move |tool| {
        let id = ToolId::parse(&tool.id).ok()?;
        let tool = snapshot.tool(&id).ok()?;
        Some(policy.of(&id, &tool.definition.annotations))
    })
}

/// What the capability would be run with.
fn bound(app: &App, known: &Known, asked: &Execution) -> Result<Binding, Problem> {
    let context = context(asked)?;
    let intents: Vec<&str> = known.intents.iter().map(String::as_str).collect();
    let reads_only = verdicts(app, known).all(|verdict| verdict.is_some_and(|verdict| verdict.read_only));
    let parameters = known.with_first_values();
    let procedure =
        Procedure { parameters: &parameters, intents: &intents, examples: &known.examples, reads_only };
    Ok(reuse::bind(&procedure, &asked.intent, &context))
}

/// The constant of a capability that the intent contradicts.
fn contradiction(known: &Known, asked: &Execution, binding: &Binding) -> Option<Contradiction> {
    intents::judge(known, &asked.intent, &binding.arguments).contradiction
}

/// That a capability does not do what is asked, and what to do instead.
fn refused(known: &Known, contradiction: &Contradiction) -> String {
    format!(
        "`{}` does not do this: {contradiction}; send the program for this intent: \
         {{\"implementation\": {{\"type\": \"code\", \"code\": …}}}}",
        known.name
    )
}

fn context(asked: &Execution) -> Result<Map<String, Value>, Problem> {
    serde_json::from_str(asked.arguments.get()).map_err(|_| {
        Problem::new(Code::InvalidArguments, "`context` is not a JSON object")
            .hint("give the arguments as {\"path\": \"notes.txt\"}")
    })
}

fn suggestion(candidate: &Candidate, binding: &Binding, contradiction: Option<Contradiction>) -> Suggestion {
    let missing = binding
        .missing
        .iter()
        .map(|missing| Missing { name: Some(missing.name.clone()), why: missing.why.clone() });
    let unplaced =
        binding.unplaced.iter().map(|text| Missing { name: None, why: unclear(&candidate.known, text) });
    let known = &candidate.known;
    Suggestion {
        id: known.id.clone(),
        name: known.name.clone(),
        description: known.description.clone(),
        confidence: (confidence(candidate) * 1000.0).round() / 1000.0,
        served: candidate.like.clone(),
        arguments: binding.arguments.clone(),
        missing: missing.chain(unplaced).collect(),
        program: contradiction.as_ref().and_then(|_| program(known)),
        contradiction: contradiction
            .map(|Contradiction { fixed, said, .. }| Contradicted { constant: fixed, intent_says: said }),
        parameters: known.parameters.clone(),
    }
}

/// The program of a capability, as it was written, where it is short enough to be sent along.
fn program(known: &Known) -> Option<String> {
    match &known.source {
        Source::Code { code, .. } if code.len() <= LONGEST_PROGRAM => Some(code.clone()),
        Source::Code { .. } | Source::Dag { .. } | Source::Tool { .. } => None,
    }
}

/// That something was said which the capability has no place for.
fn unclear(known: &Known, text: &str) -> String {
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

/// The capability as it is run.
pub(super) fn run(known: &Known, binding: &Binding, mut asked: Execution) -> Result<Recalled, Problem> {
    asked.capability = Some(known.id.clone());
    asked.arguments = raw(&binding.arguments);
    asked.work = match &known.source {
        Source::Code { code, template } => Asked::Code(template.as_ref().unwrap_or(code).clone()),
        Source::Dag { dag_structure, template } => {
            let document = template.as_ref().unwrap_or(dag_structure).get().to_owned();
            Asked::Dag { document, pause: Pause::None }
        }
        Source::Tool { tool_id, default_args } => {
            let tool =
                ToolId::parse(tool_id).map_err(|error| Problem::new(Code::UnknownTool, error.to_string()))?;
            // What it was made with is among the arguments already, where it still counts.
            let mut defaults = Fields::parse(default_args.get()).unwrap_or_default();
            for name in binding.arguments.keys() {
                defaults.remove(name);
            }
            Asked::Tool { tool, defaults: defaults.to_raw() }
        }
    };
    Ok(Recalled::Run(Box::new(asked)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(success_count: u64, failure_count: u64) -> Statistics {
        let usage_count = success_count + failure_count;
        Statistics { usage_count, success_count, failure_count, ..Statistics::default() }
    }

    #[test]
    fn one_success_is_enough_to_be_suggested_and_one_failure_does_not_undo_it() {
        assert!(is_worth_suggesting(&tried(1, 0)));
        assert!(is_worth_suggesting(&tried(1, 1)));
        assert!(!is_worth_suggesting(&tried(1, 2)));
    }

    #[test]
    fn each_failure_raises_the_bar_and_each_success_lowers_it() {
        assert!((bar(&tried(0, 0)) - WORTH_IT).abs() < 1e-12, "nothing is known");
        for count in 0..10 {
            assert!(bar(&tried(3, count)) < bar(&tried(3, count + 1)), "{count} failures");
            assert!(bar(&tried(count, 5)) > bar(&tried(count + 1, 5)), "{count} successes");
        }
    }

    #[test]
    fn much_use_does_not_carry_what_mostly_fails() {
        let often = tried(10, 30);
        assert!(often.quality() > WORTH_IT, "a bar that stays where it is would let it pass");
        assert!(!is_worth_suggesting(&often));
    }

    #[test]
    fn the_bar_stays_within_its_bounds() {
        for (success, failure) in [(0, 1_000_000), (1_000_000, 0), (0, 0)] {
            let bar = bar(&tried(success, failure));
            assert!((LOWEST..=HIGHEST).contains(&bar), "{bar}");
        }
    }
}
