//! Counts what requests come to, for the metrics.

use pml_model::Principal;
use serde_json::Value;

use super::Suggestions;
use crate::app::App;
use crate::discover::{DiscoverPage, DiscoverRequest, ResultKind};
use crate::knowledge::cache::{CacheHit, CacheTicket};
use crate::plan::Plan;

/// Counts a search, unless it is for tools alone.
pub(super) fn note_search(app: &App, request: &DiscoverRequest, page: &DiscoverPage) {
    if request.filter.kind != ResultKind::Tool {
        let found = page.results.iter().any(|result| result.kind == ResultKind::Capability);
        app.runs.metrics.note_search(found);
    }
}

/// Counts suggestions that a client received.
pub(super) fn note_suggestions(app: &App, (principal, session): &(Principal, String), made: &Suggestions) {
    let capabilities = made.candidates.iter().map(|candidate| candidate.id.to_string());
    let tools = made.tools.iter().map(|tool| tool.id.clone());
    let tasks = made.suggested_dag.as_ref().and_then(|dag| dag.dag_structure.get("tasks")?.as_array());
    let tasks = tasks.into_iter().flatten().filter_map(|task| task.get("tool").and_then(Value::as_str));
    let named = capabilities.chain(tools).chain(tasks.map(str::to_owned));
    app.runs.metrics.note_suggestion(principal, session, named);
}

/// Counts a plan that is about to be run, and the suggestion that it follows.
pub(super) fn note_plan(app: &App, (principal, session): &(Principal, String), plan: &Plan) {
    let metrics = &app.runs.metrics;
    metrics.patterns.add_one();
    let tools: Vec<String> = plan.tools.iter().map(|tool| tool.id.to_string()).collect();
    let capability = plan.learn.as_ref().map(|learn| learn.capability_id(principal).to_string());
    let called = plan.nested.iter().map(|nested| nested.id.as_str());
    let used = tools.iter().chain(&capability).map(String::as_str).chain(called);
    metrics.note_use(principal, session, used);
}

/// The cached result of a plan.
pub(super) async fn cached(app: &App, ticket: &CacheTicket, plan: &Plan) -> Option<CacheHit> {
    let hit = app.knowledge.cache.get(&app.knowledge, ticket).await;
    app.runs.metrics.note_cache_lookup(hit.is_some());
    if hit.is_some() && plan.learn.is_some() {
        app.runs.metrics.capability_cache_hits.add_one();
    }
    hit
}
