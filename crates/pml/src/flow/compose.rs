//! Composes a DAG for an intent that no learned capability serves.
//!
//! Each step of the intent gets a tool whose effect agrees with it. A step that only reads never gets a tool known to
//! change something. A step that changes something else never gets a tool that removes something. Candidates that are
//! too unlikely are not suggested at all.

use std::collections::HashSet;
use std::sync::Arc;

use pml_graph::graph::fields;
use pml_language::Reading;
use pml_model::{Principal, ToolId};
use pml_store::{TraceOrder, TraceQuery};
use serde_json::{Map, Value};

use crate::app::App;
use crate::approve::{CallPermission, Effect, Policy};
use crate::catalogue::{CatalogueTool, ToolSnapshot, deprecated};
use crate::discover;
use crate::knowledge::PrincipalKnowledge;
use crate::knowledge::graph::{fields_of, output_of};
use crate::runtime::compute;
use crate::suggest::{self, CallExample, SuggestStep, SuggestedDag, effect};

/// The number of candidate tools considered for each step.
const LOOKED_AT: usize = 4;
/// The least probability of a tool that is named as an alternative.
const ALSO: f64 = 0.2;
/// The least confidence in the tools that served earlier requests.
const LEARNED: f64 = 0.5;
/// The least probability of a step. A suggestion that is wrong three times out of four costs an agent more than the
/// list of tools, which it gets anyway.
const LEAST_STEP: f64 = 0.25;
/// The least probability of the DAG as a whole, the product of its steps' probabilities.
const LEAST: f64 = 0.1;
/// Bytes of an example result that are shown.
const SHOWN_BYTES: usize = 500;

/// Composes a DAG for the intent from the `visible` tools; `None` if no tool matches it.
pub(super) async fn compose(
    app: &Arc<App>,
    principal: &Principal,
    intent: &str,
    context: &Map<String, Value>,
    text: &str,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Option<SuggestedDag> {
    let (snapshot, past_runs) = (app.tools.snapshot(), app.knowledge.of_principal(principal));
    let observed = past_runs.observed();
    let reading = Reading::of(intent);
    let search = StepSearch::new(app, principal, &snapshot, visible);
    let mut chosen = search.learned(intent, text).await;
    let found_before = !chosen.is_empty();
    let mut left_out = Vec::new();
    if !found_before {
        for (clause, found) in search.steps(intent, text, LOOKED_AT).await {
            if found.first().is_some_and(|(_, score)| *score >= LEAST_STEP) {
                chosen.push((clause, found));
            } else {
                left_out.push(clause);
            }
        }
    }
    let read: Vec<Vec<fields::ToolFields>> = chosen
        .iter()
        .map(|(_, found)| found.iter().map(|(tool, _)| fields_of(tool, &observed)).collect())
        .collect();
    let choice = suggest::choose_tools(&reading, &chosen, &read);
    let steps: Vec<SuggestStep<'_>> = chosen
        .iter()
        .zip(&read)
        .zip(&choice)
        .map(|(((clause, found), fields), &place)| SuggestStep {
            words: clause,
            tool: found[place].0,
            fields: &fields[place],
            score: found[place].1,
            reads_only: reads(app, found[place].0),
            from_intent: !found_before,
            alternatives: also(found, place),
        })
        .collect();
    if steps.is_empty() || steps.iter().map(|step| step.score).product::<f64>() < LEAST {
        return None;
    }
    let mut examples = Vec::new();
    for step in &steps {
        examples.push((step.tool.id.clone(), examples_of(app, principal, &step.tool.id).await));
    }
    let examples_of = |tool: &CatalogueTool| {
        let of_tool = examples.iter().find(|(id, _)| *id == tool.id);
        of_tool.map(|(_, examples)| examples.clone()).unwrap_or_default()
    };
    let mut dag =
        suggest::build_dag(&reading, context, &steps, |tool| output_of(tool, &observed), examples_of);
    dag.note_left_out(&left_out);
    Some(dag)
}

/// Words of a step with the tools that could serve it and their probabilities, best first.
type StepTools<'s> = (String, Vec<(&'s CatalogueTool, f64)>);

/// Finds tools for the steps of an intent, among those that are visible and do nothing that was not asked for.
pub(super) struct StepSearch<'a, 's> {
    app: &'a App,
    snapshot: &'s Arc<ToolSnapshot>,
    past_runs: Arc<PrincipalKnowledge>,
    policy: Arc<Policy>,
    visible: &'a (dyn Fn(&ToolId) -> bool + Send + Sync),
}

impl<'a, 's> StepSearch<'a, 's> {
    pub(super) fn new(
        app: &'a App,
        principal: &Principal,
        snapshot: &'s Arc<ToolSnapshot>,
        visible: &'a (dyn Fn(&ToolId) -> bool + Send + Sync),
    ) -> StepSearch<'a, 's> {
        let past_runs = app.knowledge.of_principal(principal);
        StepSearch { app, snapshot, past_runs, policy: app.policy(), visible }
    }

    /// For each step of the intent, at most `most` tools. Tools are searched for in English: `text` is the gloss of a
    /// French intent.
    pub(super) async fn steps(&self, intent: &str, text: &str, most: usize) -> Vec<StepTools<'s>> {
        let clauses = clauses(intent, text);
        let effects = effect::asked_effects(&clauses);
        let vectors = self.app.knowledge.embeddings.tool_vectors(self.snapshot);
        let uses = self.past_runs.uses();
        let mut steps = Vec::with_capacity(clauses.len());
        for (clause, asked) in clauses.into_iter().zip(effects) {
            let wanted = self.app.knowledge.embeddings.read_intent(&clause).await;
            let past = self.past_runs.advice(self.snapshot, &wanted);
            let suits = |tool: &CatalogueTool| match effect::removes_unasked(&clause, tool) {
                true => None,
                false => effect::suitability(asked, effect::tool_effect(&self.policy, tool)),
            };
            let eligible = |tool: &CatalogueTool| (self.visible)(&tool.id) && suits(tool).is_some();
            let known = (past.as_ref(), &*uses);
            let mut found = compute(|| {
                discover::best_tools(self.snapshot, Some(&vectors), &wanted, known, most, eligible)
            });
            found.iter_mut().for_each(|(tool, score)| *score *= suits(tool).unwrap_or_default());
            let found = without_deprecated(self.snapshot, found, eligible);
            steps.push((clause, found));
        }
        steps
    }

    /// The tools that earlier, similar requests make likely, each with its confidence. Empty if words and embeddings
    /// tell more.
    async fn learned(&self, intent: &str, text: &str) -> Vec<StepTools<'s>> {
        let clauses = clauses(intent, text);
        let effects = effect::asked_effects(&clauses);
        let only_reads = effects.iter().all(|effect| *effect == Some(Effect::Reads));
        let fits = |tool: &CatalogueTool| {
            let writes = effect::tool_effect(&self.policy, tool) == Some(Effect::Writes);
            let unasked = (only_reads && writes) || effect::none_asks_to_remove(&clauses, tool);
            (self.visible)(&tool.id) && !unasked
        };
        let wanted = self.app.knowledge.embeddings.read_intent(text).await;
        let vectors = self.app.knowledge.embeddings.tool_vectors(self.snapshot);
        let found = self.past_runs.with_experience(|experience| {
            let (tools, suggestion) = experience.suggest(self.snapshot, &vectors, &wanted)?;
            let ids: Vec<ToolId> = tools.iter().map(|tool| tool.id.clone()).collect();
            Some((ids, f64::from(suggestion.confidence)))
        });
        let Some((ids, confidence)) = found.flatten().filter(|(_, confidence)| *confidence >= LEARNED) else {
            return Vec::new();
        };
        // A tool that was deprecated since gives way to its replacement; without one, the steps are searched again.
        let current = |tool: &'s CatalogueTool| match deprecated::is_deprecated(tool) {
            true => deprecated::replacement(self.snapshot, tool),
            false => Some(tool),
        };
        let known = ids.iter().filter_map(|id| self.snapshot.tool(id).ok());
        let tools: Vec<&CatalogueTool> = known.filter_map(current).collect();
        if tools.len() != ids.len() || !tools.iter().all(|tool| fits(tool)) {
            return Vec::new();
        }
        // The confidences of all steps together multiply to `confidence`.
        let each = confidence.powf(1.0 / tools.len().max(1) as f64);
        let step =
            |tool: &'s CatalogueTool| (tool.definition.name.replace(['_', '-'], " "), vec![(tool, each)]);
        tools.into_iter().map(step).collect()
    }
}

fn clauses(intent: &str, text: &str) -> Vec<String> {
    if text == intent { Reading::of(intent).steps() } else { Reading::of(text).steps() }
}

/// Ranks deprecated tools last. A deprecated tool whose description names a replacement passes its score on to that;
/// any other loses part of its score.
fn without_deprecated<'s>(
    snapshot: &'s ToolSnapshot,
    found: Vec<(&'s CatalogueTool, f64)>,
    eligible: impl Fn(&CatalogueTool) -> bool,
) -> Vec<(&'s CatalogueTool, f64)> {
    let mut kept: Vec<(&CatalogueTool, f64)> = Vec::with_capacity(found.len());
    let mut last: Vec<(&CatalogueTool, f64)> = Vec::new();
    for (tool, score) in found {
        if !deprecated::is_deprecated(tool) {
            kept.push((tool, score));
            continue;
        }
        let replacement = deprecated::replacement(snapshot, tool).filter(|other| eligible(other));
        kept.extend(replacement.map(|other| (other, score)));
        last.push((tool, score * deprecated::LEFT));
    }
    kept.sort_by(|one, other| other.1.total_cmp(&one.1));
    let mut seen = HashSet::new();
    kept.retain(|(tool, _)| seen.insert(&tool.id));
    let best = kept.first().map_or(0.0, |(_, score)| *score);
    // No other tool would do: a deprecated one is better than none.
    if best < LEAST_STEP {
        last.extend(kept);
        last.sort_by(|one, other| other.1.total_cmp(&one.1));
        return last;
    }
    kept.extend(last);
    kept
}

/// The alternative tools for a step.
fn also<'s>(found: &[(&'s CatalogueTool, f64)], place: usize) -> Vec<&'s CatalogueTool> {
    let others = found.iter().enumerate().filter(|(other, (_, score))| *other != place && *score >= ALSO);
    others.map(|(_, (tool, _))| *tool).collect()
}

/// Whether a tool may be called without approval and changes nothing.
pub(super) fn reads(app: &App, tool: &CatalogueTool) -> bool {
    let verdict = app.policy().verdict(&tool.id, &tool.definition.annotations);
    verdict.mode == CallPermission::Auto && verdict.read_only
}

/// A recorded call of the tool that succeeded, if there is one.
async fn examples_of(app: &Arc<App>, principal: &Principal, tool: &ToolId) -> Vec<CallExample> {
    let id = tool.to_string();
    let Some(known) = app.knowledge.memory.most_used_with_tool(principal, &id) else { return Vec::new() };
    let wanted =
        TraceQuery { capability: Some(known.id.clone()), order: TraceOrder::Newest, limit: 1, after: None };
    let traces = match app.store.traces(principal, &wanted).await {
        Ok(traces) => traces,
        Err(error) => {
            tracing::debug!(%error, "calls that worked could not be read");
            return Vec::new();
        }
    };
    let calls = traces.into_iter().flat_map(|trace| {
        let intent = trace.intent;
        trace.body.task_results.into_iter().map(move |call| (intent.clone(), call))
    });
    let of_tool = calls.filter(|(_, call)| call.tool == id && call.success);
    let example = of_tool.map(|(intent, call)| CallExample {
        description: intent,
        input: call.args,
        output: call.result.filter(|result| result.get().len() <= SHOWN_BYTES),
    });
    example.take(1).collect()
}
