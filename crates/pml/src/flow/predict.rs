//! After a run: prepares the result of what will probably be asked for next.
//!
//! When a run has ended, the capability that usually follows it is run ahead with the values at hand, and its result is
//! kept where results of capabilities are kept anyway. Only capabilities that merely read are run, and only where the
//! result may be cached, so a request is answered from it exactly when a cached result would be.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use pml_mcp::Caller;
use pml_model::json::raw;
use pml_model::question::Answerer;
use pml_model::structure::{Argument, NodeKind, Structure};
use pml_model::{CapabilityId, Principal, ToolId};
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

/// The predictions that are prepared at a time. Each takes a sandbox worker of the 64 that run programs.
const AT_ONCE: usize = 8;
/// Those of one principal, so that its slow tools do not hold back the predictions of others.
const AT_ONCE_OF_PRINCIPAL: usize = 2;
/// The ended runs of one principal that may wait for a prediction.
const WAITING_OF_PRINCIPAL: usize = 8;

/// Prepares what probably follows each run of this process, until the program ends.
pub async fn prediction_task(app: Arc<App>) {
    let Some(mut finished) = app.runs.finished_runs() else { return };
    let prepare = async {
        let (mut queue, mut under_way) = (PredictionQueue::default(), FuturesUnordered::new());
        loop {
            while let Some(notice) = queue.begin() {
                let app = &app;
                under_way.push(async move {
                    prepare_next(app, &notice).await;
                    notice.principal
                });
            }
            tokio::select! {
                notice = finished.recv() => match notice {
                    Some(notice) => queue.add(notice),
                    None => break,
                },
                Some(principal) = under_way.next() => queue.end(&principal),
            }
        }
    };
    tokio::select! {
        () = prepare => {}
        () = app.stopped() => {}
    }
}

/// The ended runs for which the next result is to be prepared, oldest first.
#[derive(Default)]
struct PredictionQueue {
    waiting: VecDeque<FinishedRunNotice>,
    /// The principals of the predictions under way, one entry for each.
    under_way: Vec<Principal>,
}

impl PredictionQueue {
    /// Adds an ended run. What follows the latest run of a session is asked for sooner than what follows an earlier one,
    /// so it takes the place of that.
    fn add(&mut self, notice: FinishedRunNotice) {
        let same_session =
            |one: &FinishedRunNotice| one.principal == notice.principal && one.session == notice.session;
        self.waiting.retain(|one| !same_session(one));
        let of_principal = |one: &&FinishedRunNotice| one.principal == notice.principal;
        if self.waiting.iter().filter(of_principal).count() < WAITING_OF_PRINCIPAL {
            self.waiting.push_back(notice);
        }
    }

    /// Takes the next run whose prediction may begin now.
    fn begin(&mut self) -> Option<FinishedRunNotice> {
        let under_way = |principal: &Principal| self.under_way.iter().filter(|one| *one == principal).count();
        let has_room = |one: &FinishedRunNotice| under_way(&one.principal) < AT_ONCE_OF_PRINCIPAL;
        if self.under_way.len() >= AT_ONCE {
            return None;
        }
        let notice = self.waiting.iter().position(has_room).and_then(|place| self.waiting.remove(place))?;
        self.under_way.push(notice.principal.clone());
        Some(notice)
    }

    /// A prediction of the principal has ended.
    fn end(&mut self, principal: &Principal) {
        if let Some(place) = self.under_way.iter().position(|one| one == principal) {
            self.under_way.swap_remove(place);
        }
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
        app.runs.note_prediction((&notice.principal, &id), next.confidence, kept);
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
    // What the key of the client does not reach is not read for it ahead either.
    let reach = app.keys.reach(notice.key);
    let reaches = |tool: &ToolId| reach.holds(tool);
    let request = request_for(app, notice, id, arguments);
    let RecallOutcome::Run(request) = recall::resolve_work(app, request, &reaches).await.ok()? else {
        return None;
    };
    let mut plan = plan_request(app, &request, &reaches).await.ok()?;
    plan.key = notice.key;
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
    notice: &FinishedRunNotice,
    id: &CapabilityId,
    arguments: &Map<String, Value>,
) -> RunRequest {
    RunRequest {
        principal: notice.principal.clone(),
        key: notice.key,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(principal: &str, session: &str) -> FinishedRunNotice {
        FinishedRunNotice {
            principal: Principal(principal.to_owned()),
            key: None,
            session: session.to_owned(),
            arguments: raw(&Value::Null),
            next: Vec::new(),
        }
    }

    fn begun(queue: &mut PredictionQueue) -> Vec<String> {
        std::iter::from_fn(|| queue.begin())
            .map(|one| format!("{} {}", one.principal.0, one.session))
            .collect()
    }

    #[test]
    fn a_principal_with_slow_predictions_leaves_room_for_others() {
        let mut queue = PredictionQueue::default();
        for session in ["1", "2", "3"] {
            queue.add(notice("ann", session));
        }
        queue.add(notice("bob", "1"));
        assert_eq!(begun(&mut queue), ["ann 1", "ann 2", "bob 1"]);
        queue.end(&Principal("bob".to_owned()));
        assert!(begun(&mut queue).is_empty());
        queue.end(&Principal("ann".to_owned()));
        assert_eq!(begun(&mut queue), ["ann 3"]);
    }

    #[test]
    fn all_principals_together_have_a_bounded_number_of_predictions() {
        let mut queue = PredictionQueue::default();
        (0..2 * AT_ONCE).for_each(|person| queue.add(notice(&format!("p{person}"), "")));
        assert_eq!(begun(&mut queue).len(), AT_ONCE);
    }

    #[test]
    fn the_latest_run_of_a_session_takes_the_place_of_an_earlier_one() {
        let mut queue = PredictionQueue::default();
        for session in ["1", "2", "3", "4", "3"] {
            queue.add(notice("ann", session));
        }
        assert_eq!(begun(&mut queue), ["ann 1", "ann 2"]);
        let waiting: Vec<&str> = queue.waiting.iter().map(|one| one.session.as_str()).collect();
        assert_eq!(waiting, ["4", "3"]);
    }

    #[test]
    fn a_principal_has_a_bounded_number_of_waiting_runs() {
        let mut queue = PredictionQueue::default();
        (0..3 * WAITING_OF_PRINCIPAL).for_each(|session| queue.add(notice("ann", &session.to_string())));
        queue.add(notice("bob", ""));
        assert_eq!(queue.waiting.len(), WAITING_OF_PRINCIPAL + 1);
    }
}
