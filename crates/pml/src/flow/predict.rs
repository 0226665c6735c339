//! After a run: prepares the result of what will probably be asked for next.
//!
//! When a run has ended, the capability that usually follows it is run ahead with the values at hand, and its result is
//! kept where results of capabilities are kept anyway. Only capabilities that merely read are run, and only where the
//! result may be cached, so a request is answered from it exactly when a cached result would be.

use std::sync::Arc;

use pml_mcp::Caller;
use pml_model::json::raw;
use pml_model::question::Answerer;
use pml_model::structure::{Argument, NodeKind, Structure};
use pml_model::{CapabilityId, Principal};
use serde_json::{Map, Value};

use super::recall::{self, RecallOutcome};
use super::{plan_request, speculable};
use crate::app::App;
use crate::config::DynamicPolicy;
use crate::execute::FinishedRunNotice;
use crate::knowledge::cache;
use crate::knowledge::graph::ToolGraph;
use crate::knowledge::{IndexedCapability, SessionResult};
use crate::planning::{RunRequest, Work};
use crate::validate;

/// Prepares what probably follows each run of this process, until the program ends.
pub async fn prediction_task(app: Arc<App>) {
    let Some(mut finished) = app.runs.finished_runs() else { return };
    let prepare = async {
        while let Some(notice) = finished.recv().await {
            prepare_next(&app, &notice).await;
        }
    };
    tokio::select! {
        () = prepare => {}
        () = app.stopped() => {}
    }
}

/// Runs the capability ahead that probably follows a run, if it may be and its arguments are known.
async fn prepare_next(app: &Arc<App>, notice: &FinishedRunNotice) {
    let Some(next) = notice.next.iter().find(|next| next.kind == "capability") else { return };
    let Ok(id) = CapabilityId::parse(&next.id) else { return };
    if !app.runs.admits_prediction(&notice.principal, &id, next.confidence) {
        return;
    }
    let Some(arguments) = arguments_for(app, notice, &id).await else { return };
    if let Some(kept) = run_ahead(app, notice, &id, &arguments).await {
        app.runs.note_prediction(&notice.principal, &id, kept);
    }
}

/// The arguments of a capability, from the context of the run and the results of its session; `None` if one is missing.
async fn arguments_for(
    app: &Arc<App>,
    notice: &FinishedRunNotice,
    id: &CapabilityId,
) -> Option<Map<String, Value>> {
    let known = app.knowledge.memory.find_by_name(&notice.principal, id.as_str()).await.ok()??;
    let stored = app.store.capability(&notice.principal, id).await.ok()??;
    let graph = match app.knowledge.graph(&notice.principal).await {
        Ok(graph) => Some(graph),
        Err(problem) => {
            tracing::debug!(%problem, "arguments are taken from the context alone: the graph could not be read");
            None
        }
    };
    let context: Map<String, Value> = serde_json::from_str(notice.arguments.get()).ok()?;
    let sources = ArgumentSources {
        context: &context,
        results: app.knowledge.memory.recent_session_results(&notice.principal, &notice.session),
        graph: graph.as_deref(),
        structure: &stored.procedure.static_structure,
    };
    sources.resolve(&known)
}

/// The values that arguments of a predicted capability are taken from.
struct ArgumentSources<'s> {
    /// The arguments of the run that just ended.
    context: &'s Map<String, Value>,
    /// The results of the session, most recent last.
    results: Vec<SessionResult>,
    graph: Option<&'s ToolGraph>,
    /// The structure of the capability.
    structure: &'s Structure,
}

impl ArgumentSources<'_> {
    fn resolve(&self, capability: &IndexedCapability) -> Option<Map<String, Value>> {
        let properties = capability.parameters.get("properties").and_then(Value::as_object);
        let mut arguments = Map::new();
        for (name, schema) in properties.into_iter().flatten() {
            let value = self.context.get(name).cloned().or_else(|| self.value_from_results(name));
            match value.filter(|value| validate::satisfies(schema, &raw(value))) {
                Some(value) => drop(arguments.insert(name.clone(), value)),
                // A default is filled in when the capability is run.
                None if schema.get("default").is_some() => {}
                None if is_required(&capability.parameters, name) => return None,
                None => {}
            }
        }
        Some(arguments)
    }

    /// The value that a result of the session has for a parameter, by the fields that feed each other.
    fn value_from_results(&self, parameter: &str) -> Option<Value> {
        let graph = self.graph?;
        let takers = takers_of(self.structure, parameter);
        self.results.iter().rev().find_map(|result| {
            takers.iter().find_map(|(tool, field)| {
                field_value(&result.value, &graph.feeding_path(&result.tool, tool, field)?)
            })
        })
    }
}

fn is_required(parameters: &Value, name: &str) -> bool {
    let required = parameters.get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|one| one.as_str() == Some(name)))
}

/// The tools that a parameter goes into as it is, each with the field that takes it.
fn takers_of(structure: &Structure, parameter: &str) -> Vec<(String, String)> {
    let mut takers = Vec::new();
    for node in &structure.nodes {
        let NodeKind::Task { tool, arguments: Argument::Object { fields, .. }, .. } = &node.kind else {
            continue;
        };
        for field in fields {
            if matches!(&field.value, Argument::Parameter { name, path } if name == parameter && path.is_empty())
            {
                takers.push((tool.clone(), field.name.clone()));
            }
        }
    }
    takers
}

/// The value at a path such as `user.id`; `None` for a path into each element of a list.
fn field_value(result: &Value, path: &str) -> Option<Value> {
    if path.is_empty() {
        return Some(result.clone());
    }
    path.split('.').try_fold(result, |value, step| value.get(step)).cloned()
}

/// Runs a capability ahead and keeps its result. Returns the key under which it is kept; `None` if it is not.
async fn run_ahead(
    app: &Arc<App>,
    notice: &FinishedRunNotice,
    id: &CapabilityId,
    arguments: &Map<String, Value>,
) -> Option<pml_model::Digest> {
    let request = request_for(app, &notice.principal, id, arguments);
    let RecallOutcome::Run(request) = recall::resolve_work(app, request, &|_| true).await.ok()? else {
        return None;
    };
    let plan = plan_request(app, &request, &|_| true).await.ok()?;
    if !speculable(app, &plan) {
        return None;
    }
    let ticket =
        cache::make_ticket(&app.knowledge, &plan, &notice.principal, request.capability.as_ref()).await?;
    if app.knowledge.cache.get(&app.knowledge, &ticket).await.is_some() {
        return None;
    }
    let report = crate::execute::try_ahead(&app.runs, &notice.principal, &plan, &ticket.witness).await?;
    app.knowledge.cache.put(&app.knowledge, &plan, &ticket, None, &report).then(|| ticket.key().clone())
}

fn request_for(
    app: &App,
    principal: &Principal,
    id: &CapabilityId,
    arguments: &Map<String, Value>,
) -> RunRequest {
    RunRequest {
        principal: principal.clone(),
        key: None,
        session: String::new(),
        intent: String::new(),
        work: Work::Capability(id.to_string()),
        arguments: raw(arguments),
        timeout: None,
        caller: Caller::silent(),
        idempotency: None,
        max_wait: std::time::Duration::ZERO,
        answerer: Answerer::Human,
        dynamic: DynamicPolicy::Refuse,
        learn: app.config().memory.learn,
        capability: None,
        use_cache: true,
        speculate: false,
    }
}
