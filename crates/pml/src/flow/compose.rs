//! Puts a DAG together for an intent that nothing learned serves.
//!
//! Each step of the intent gets a tool whose effect agrees with it: a step that only reads is never given one that is known to
//! change something, nor one that changes something else a tool that takes something away. What is too unlikely is not suggested at all.

use std::collections::HashSet;
use std::sync::Arc;

use pml_graph::graph::fields;
use pml_model::{Principal, ToolId};
use pml_store::{Order, Traces};
use serde_json::{Map, Value};

use crate::app::App;
use crate::approve::{Effect, Mode};
use crate::catalogue::{Snapshot, Tool};
use crate::discover;
use crate::knowledge::graph::{fields_of, output_of};
use crate::suggest::{self, Example, Step, SuggestedDag, deprecated, effect};

/// How many tools are looked at for each step.
const LOOKED_AT: usize = 4;
/// How likely a tool must be to be named beside the best.
const ALSO: f64 = 0.2;
/// How sure it must be that earlier requests show the way.
const LEARNED: f64 = 0.5;
/// What is less likely than this is no suggestion: a step, and the DAG as a whole. The scores are probabilities, and what is
/// wrong three times of four costs an agent more than the list of tools, which it gets anyway.
const LEAST_STEP: f64 = 0.25;
const LEAST: f64 = 0.1;
/// How much of what a call gave is shown.
const SHOWN_BYTES: usize = 500;

/// A DAG for the intent, of tools that are `visible`; nothing where no tool has to do with it.
pub(super) async fn compose(
    app: &Arc<App>,
    principal: &Principal,
    intent: &str,
    context: &Map<String, Value>,
    text: &str,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Option<SuggestedDag> {
    let (snapshot, past_runs) = (app.tools.snapshot(), app.knowledge.of(principal));
    let observed = past_runs.observed();
    let vectors = app.knowledge.embeddings.of_tools(&snapshot);
    let clauses = suggest::clauses(text);
    let effects = effect::asked_of_each(&clauses);
    let policy = app.policy();
    let only_reads = effects.iter().all(|effect| *effect == Some(Effect::Reads));
    let fits = |tool: &Tool| {
        visible(&tool.id) && (!only_reads || effect::of_tool(&policy, tool) != Some(Effect::Writes))
    };
    let mut chosen: Vec<(String, Vec<(&Tool, f64)>)> = learned(app, principal, &snapshot, text, &fits).await;
    let found_before = !chosen.is_empty();
    let mut left_out = Vec::new();
    for (clause, asked) in clauses.into_iter().zip(effects).filter(|_| !found_before) {
        let wanted = app.knowledge.embeddings.wanted(&clause).await;
        let past = past_runs.advice(&snapshot, &wanted);
        let suits = |tool: &Tool| match effect::takes_away_unasked(&clause, tool) {
            true => None,
            false => effect::suits(asked, effect::of_tool(&policy, tool)),
        };
        let eligible = |tool: &Tool| visible(&tool.id) && suits(tool).is_some();
        let mut found =
            discover::best(&snapshot, Some(&vectors), &wanted, past.as_ref(), LOOKED_AT, eligible);
        found.iter_mut().for_each(|(tool, score)| *score *= suits(tool).unwrap_or_default());
        let found = without_deprecated(&snapshot, found, eligible);
        if found.first().is_some_and(|(_, score)| *score >= LEAST_STEP) {
            chosen.push((clause, found));
        } else {
            left_out.push(clause);
        }
    }
    let read: Vec<Vec<fields::Tool>> = chosen
        .iter()
        .map(|(_, found)| found.iter().map(|(tool, _)| fields_of(tool, &observed)).collect())
        .collect();
    let choice = suggest::choose(intent, &chosen, &read);
    let steps: Vec<Step<'_>> = chosen
        .iter()
        .zip(&read)
        .zip(&choice)
        .map(|(((clause, found), fields), &place)| Step {
            words: clause,
            tool: found[place].0,
            fields: &fields[place],
            score: found[place].1,
            reads: reads(app, found[place].0),
            said: !found_before,
            others: also(found, place),
        })
        .collect();
    if steps.is_empty() || steps.iter().map(|step| step.score).product::<f64>() < LEAST {
        return None;
    }
    let mut examples = Vec::new();
    for step in &steps {
        examples.push((step.tool.id.clone(), examples_of(app, principal, &step.tool.id).await));
    }
    let examples_of = |tool: &Tool| {
        let of_tool = examples.iter().find(|(id, _)| *id == tool.id);
        of_tool.map(|(_, examples)| examples.clone()).unwrap_or_default()
    };
    let mut dag = suggest::suggest(intent, context, &steps, |tool| output_of(tool, &observed), examples_of);
    dag.leaves_out(&left_out);
    Some(dag)
}

/// The same with deprecated tools last: one whose description names another gives that one its score, any other loses some.
fn without_deprecated<'s>(
    snapshot: &'s Snapshot,
    found: Vec<(&'s Tool, f64)>,
    eligible: impl Fn(&Tool) -> bool,
) -> Vec<(&'s Tool, f64)> {
    let mut kept: Vec<(&Tool, f64)> = Vec::with_capacity(found.len());
    let mut last: Vec<(&Tool, f64)> = Vec::new();
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
    // Nothing else would do: a deprecated tool is better than none.
    if best < LEAST_STEP {
        last.extend(kept);
        last.sort_by(|one, other| other.1.total_cmp(&one.1));
        return last;
    }
    kept.extend(last);
    kept
}

/// The others that would do for a step.
fn also<'s>(found: &[(&'s Tool, f64)], place: usize) -> Vec<&'s Tool> {
    let others = found.iter().enumerate().filter(|(other, (_, score))| *other != place && *score >= ALSO);
    others.map(|(_, (tool, _))| *tool).collect()
}

/// The tools that what served other requests makes likely, each with how sure that is; nothing where words and meaning
/// tell more.
async fn learned<'s>(
    app: &Arc<App>,
    principal: &Principal,
    snapshot: &'s Arc<Snapshot>,
    text: &str,
    fits: &(dyn Fn(&Tool) -> bool + Send + Sync),
) -> Vec<(String, Vec<(&'s Tool, f64)>)> {
    let wanted = app.knowledge.embeddings.wanted(text).await;
    let vectors = app.knowledge.embeddings.of_tools(snapshot);
    let found = app.knowledge.of(principal).with_experience(|experience| {
        let (tools, suggestion) = experience.suggest(snapshot, &vectors, &wanted)?;
        let ids: Vec<ToolId> = tools.iter().map(|tool| tool.id.clone()).collect();
        Some((ids, f64::from(suggestion.confidence)))
    });
    let Some((ids, confidence)) = found.flatten().filter(|(_, confidence)| *confidence >= LEARNED) else {
        return Vec::new();
    };
    let tools: Vec<&Tool> = ids.iter().filter_map(|id| snapshot.tool(id).ok()).collect();
    if tools.len() != ids.len() || !tools.iter().all(|tool| fits(tool)) {
        return Vec::new();
    }
    // All together are as sure as is said.
    let each = confidence.powf(1.0 / tools.len().max(1) as f64);
    let step = |tool: &'s Tool| (tool.definition.name.replace(['_', '-'], " "), vec![(tool, each)]);
    tools.into_iter().map(step).collect()
}

/// Whether the policy lets all its tools be called without a word from anybody, and none of them changes anything.
pub(super) fn only_reads(app: &App, snapshot: &Snapshot, dag: &SuggestedDag) -> bool {
    dag.tool_schemas.keys().all(|id| {
        let tool = ToolId::parse(id).ok().and_then(|id| snapshot.tool(&id).ok());
        tool.is_some_and(|tool| reads(app, tool))
    })
}

/// Whether a tool may be called without a word from anybody, and changes nothing.
fn reads(app: &App, tool: &Tool) -> bool {
    let verdict = app.policy().of(&tool.id, &tool.definition.annotations);
    verdict.mode == Mode::Auto && verdict.read_only
}

/// A call of the tool that worked, where one is remembered.
async fn examples_of(app: &Arc<App>, principal: &Principal, tool: &ToolId) -> Vec<Example> {
    let id = tool.to_string();
    let Some(known) = app.knowledge.memory.that_uses(principal, &id) else { return Vec::new() };
    let wanted = Traces { capability: Some(known.id.clone()), order: Order::Newest, limit: 1, after: None };
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
    let example = of_tool.map(|(intent, call)| Example {
        description: intent,
        input: call.args,
        output: call.result.filter(|result| result.get().len() <= SHOWN_BYTES),
    });
    example.take(1).collect()
}
