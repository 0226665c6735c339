//! Traces of explored paths that count as no run, and the one of a chosen path that can no longer be run.

use std::sync::Arc;

use pml_model::trace::{Trace, TraceBody, TraceFailure, TraceStatus};
use pml_model::{ErrorCode, RunId, TraceId};
use pml_store::{IntentFit, RunMemory, Urgency};
use serde_json::Map;

use crate::app::App;
use crate::clock::now_ms;
use crate::dry_runs::KeptDryRun;
use crate::error_type;
use crate::plan::ExploredChoice;
use crate::planning::RunRequest;
use crate::problem::Problem;

/// Records that a chosen path cannot be run because its tools have changed. Idempotent.
pub(super) async fn note_changed_tools(
    app: &Arc<App>,
    asked: &RunRequest,
    kept: &KeptDryRun,
    changed: &Problem,
) {
    let Some(choice) = kept.explored.as_ref().filter(|_| asked.learn) else { return };
    let stored = match changed_tools_trace(app, asked, choice, changed) {
        Ok(trace) => store_exploratory(app, trace).await,
        Err(problem) => Err(problem),
    };
    if let Err(problem) = stored {
        tracing::warn!(%problem.message, "that the tools of an explored path have changed could not be stored");
    }
}

fn changed_tools_trace(
    app: &App,
    asked: &RunRequest,
    choice: &ExploredChoice,
    changed: &Problem,
) -> Result<Trace, Problem> {
    let sanitiser = app.knowledge.memory.sanitiser();
    let run = run_of_path(&choice.path_id)?;
    let error = TraceFailure {
        code: ErrorCode::ToolChanged.as_str().to_owned(),
        message: sanitiser.clean_text(&changed.message).into_owned(),
        error_type: error_type::of(ErrorCode::ToolChanged.as_str(), &changed.message, None),
        node_id: None,
    };
    let mut trace = Trace {
        // The trace of the exploration has the id of the run itself.
        id: TraceId::of_frame(&run, 0),
        workflow_id: run,
        principal: asked.principal.clone(),
        session: asked.session.clone(),
        capability_id: None,
        plan_hash: String::new(),
        intent: sanitiser.clean_text(&asked.intent).into_owned(),
        status: TraceStatus::Blocked,
        error: Some(error),
        duration_ms: 0,
        created_at: now_ms(),
        parent_trace_id: None,
        learn_seq: None,
        priority: None,
        cached: false,
        exploratory: true,
        approved: false,
        body: TraceBody::default(),
    };
    trace.body.explored = Some(Box::new(choice.outcome(&trace)));
    Ok(trace)
}

/// Stores a trace that counts as no run, and waits until it is stored.
pub(super) async fn store_exploratory(app: &App, trace: Trace) -> Result<(), Problem> {
    let memory = RunMemory {
        procedure: None,
        activates: false,
        tools: Vec::new(),
        values: Map::new(),
        result: None,
        golden: false,
        intent: IntentFit::Unchecked,
        excluded_from_learning: true,
        trace: Box::new(trace),
        nested: Vec::new(),
    };
    let (tell, stored) = tokio::sync::oneshot::channel();
    app.store.store_memory(memory, Urgency::Soon, move |stored| drop(tell.send(stored)));
    match stored.await {
        Ok(stored) => Ok(stored?),
        // The store is closing, and so is the program.
        Err(_) => Ok(()),
    }
}

/// The id under which the run of a path would be known; its trace has the id that belongs to it.
pub(super) fn run_of_path(path: &str) -> Result<RunId, Problem> {
    RunId::parse(&path.replacen("dry_", "run_", 1))
        .map_err(|error| Problem::new(ErrorCode::InvalidRequest, error.to_string()))
}
