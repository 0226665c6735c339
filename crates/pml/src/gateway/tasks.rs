//! The Tasks extension (`io.modelcontextprotocol/tasks`): a run that is not over when its client would give up is told as
//! a task, which the client asks for until it has ended.
//!
//! A task is a run and its id is that of the run, so a task survives whatever a run survives, and any gateway answers
//! for it. Only clients that declare the extension with their request get tasks.

use std::sync::Arc;

use pml_mcp::server::IncomingRequest;
use pml_mcp::{Era, RpcError, code};
use pml_model::json::{Fields, empty_object, raw};
use pml_model::{RunId, RunState};
use pml_store::{RunKind, RunRow};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::ClientAccess;
use super::ask::{self, AskOutcome};
use super::reply;
use crate::app::App;
use crate::approve::words;
use crate::execute::no_run;
use crate::flow;
use crate::problem::{ErrorCode, Problem};
use crate::report::{RunReport, RunStatus};

/// The name of the extension.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// 1 s: how often a client should ask for a task.
const POLL_INTERVAL_MS: u64 = 1_000;

/// Whether a client takes tasks as answers to this request.
fn is_declared(request: &IncomingRequest) -> bool {
    let capabilities = Fields::parse(request.caller.capabilities().get()).unwrap_or_default();
    let extensions: Value = capabilities.read("extensions").unwrap_or_default();
    request.caller.era() == Era::Modern && extensions.get(EXTENSION).is_some()
}

/// The task that a run is to its client; `None` where the client is told otherwise, because the run is over or asks
/// something, or the client does not know tasks.
pub(super) async fn created(
    app: &App,
    request: &IncomingRequest,
    id: &RunId,
    settled: &AskOutcome,
) -> Option<Box<RawValue>> {
    let AskOutcome::Status(standing) = settled else { return None };
    let goes_on = matches!(
        standing,
        RunStatus::Running(_)
            | RunStatus::Interrupted
            | RunStatus::Elsewhere
            | RunStatus::Waiting { question: None, .. }
    );
    if !goes_on || !is_declared(request) {
        return None;
    }
    // A run that cannot be read is told as it is told to others.
    let row = app.store.run(&request.client.principal, id).await.ok()??;
    let mut task = envelope(app, &row, "working", &reply::progress_of(standing));
    task.set("resultType", raw(&"task"));
    Some(task.to_raw())
}

/// Answers a method of the extension; `None` for any other method, and for clients of the older era, which has none.
pub(super) async fn answer(
    app: &Arc<App>,
    request: &IncomingRequest,
    door: &ClientAccess,
) -> Option<Result<Box<RawValue>, RpcError>> {
    let method = request.method.strip_prefix("tasks/")?;
    if !matches!(method, "get" | "update" | "cancel") || request.caller.era() != Era::Modern {
        return None;
    }
    if !is_declared(request) {
        let missing = json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } });
        let text = format!("`{}` needs the extension `{EXTENSION}`", request.method);
        return Some(Err(RpcError::new(code::MISSING_CAPABILITY, text).with_data(&missing)));
    }
    let id = match task(app, request).await {
        Ok(id) => id,
        Err(error) => return Some(Err(error)),
    };
    let answered = match method {
        "get" => describe(app, request, door, &id).await,
        "update" => update(app, request, door, &id).await,
        _ => cancel(app, request, &id).await,
    };
    Some(answered.map_err(|problem| problem.to_rpc()))
}

/// The run that a request names.
async fn task(app: &App, request: &IncomingRequest) -> Result<RunId, RpcError> {
    let params = Fields::parse(request.params.get()).unwrap_or_default();
    let named: String = params.read("taskId").unwrap_or_default();
    let unknown = || {
        let text = format!("there is no task `{}`", pml_model::name::printable(&named));
        RpcError::new(code::INVALID_PARAMS, text)
    };
    let id = RunId::parse(&named).map_err(|_| unknown())?;
    let row = app.store.run(&request.client.principal, &id).await;
    row.map_err(|error| Problem::from(error).to_rpc())?.map(|row| row.id).ok_or_else(unknown)
}

/// What all answers about a task have.
fn envelope(app: &App, row: &RunRow, status: &str, message: &str) -> Fields<'static> {
    // What a run leaves is kept for a time after its end; until then nobody knows how long that is from its beginning.
    let kept = i64::try_from(app.config().runs.keep_results.as_millis()).unwrap_or(i64::MAX);
    let ttl = row.ended_at.map(|ended| (ended - row.created_at).max(0).saturating_add(kept));
    let mut task = Fields::default();
    task.set("taskId", raw(&row.id));
    task.set("status", raw(&status));
    if !message.is_empty() {
        task.set("statusMessage", raw(&message));
    }
    task.set("createdAt", raw(&timestamp(row.created_at)));
    task.set("lastUpdatedAt", raw(&timestamp(row.updated_at)));
    task.set("ttlMs", raw(&ttl));
    task.set("pollIntervalMs", raw(&POLL_INTERVAL_MS));
    task
}

/// A time of day in UTC, as in ISO 8601.
fn timestamp(at: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(at).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// The task as it stands, with its result once it has one.
async fn describe(
    app: &Arc<App>,
    request: &IncomingRequest,
    door: &ClientAccess,
    id: &RunId,
) -> Result<Box<RawValue>, Problem> {
    let whose = &request.client.principal;
    let standing = flow::run_status(app, whose, id).await?;
    // Read after the status: a run that has just ended has its times.
    let row = app.store.run(whose, id).await?.ok_or_else(|| no_run(id))?;
    let task = match &standing {
        RunStatus::Finished(report) if is_cancelled(report) => envelope(app, &row, "cancelled", ""),
        RunStatus::Finished(report) => match protocol_error(&row, report) {
            Some(error) => {
                let mut task = envelope(app, &row, "failed", "");
                task.set("error", raw(&error));
                task
            }
            None => {
                let mut task = envelope(app, &row, "completed", "");
                let own = || reply::report_result(id, report);
                task.set("result", report.tool_result().map_or_else(own, ToOwned::to_owned));
                task
            }
        },
        RunStatus::Waiting { question: Some((name, question)), .. } => {
            let by = ask::client_answerer(app, request, door);
            match ask::elicitation_params(app, request, id, question, &by) {
                Some(params) => {
                    let mut task = envelope(app, &row, "input_required", "");
                    let asked = json!({ name: { "method": "elicitation/create", "params": params } });
                    task.set("inputRequests", raw(&asked));
                    task
                }
                // Somebody else has to answer.
                None => envelope(app, &row, "working", &words::question(question)),
            }
        }
        other => envelope(app, &row, "working", &reply::progress_of(other)),
    };
    Ok(task.to_raw())
}

fn is_cancelled(report: &RunReport) -> bool {
    matches!(report.state, RunState::Cancelled | RunState::Aborted)
}

/// The error of the protocol that the server answered a direct call with. Any other failure is a result.
fn protocol_error(row: &RunRow, report: &RunReport) -> Option<Value> {
    let is_direct = row.kind == RunKind::Tool && report.tool_result().is_none();
    let error = report.error.as_ref().filter(|error| is_direct && error.code == ErrorCode::ServerError)?;
    Some(json!({ "code": code::INTERNAL_ERROR, "message": error.message }))
}

/// Takes the answers to the questions of a task. Those to other questions are of no use any more.
async fn update(
    app: &Arc<App>,
    request: &IncomingRequest,
    door: &ClientAccess,
    id: &RunId,
) -> Result<Box<RawValue>, Problem> {
    let params = Fields::parse(request.params.get()).unwrap_or_default();
    let responses = params.get("inputResponses").map_or("{}", RawValue::get);
    let responses = Fields::parse(responses).unwrap_or_default();
    let open = flow::open_question(app, &request.client.principal, id).await?;
    let answer = open.and_then(|(name, _)| Some((ask::decision(responses.get(&name)?)?, name)));
    if let Some((decision, name)) = answer {
        let by = ask::client_answerer(app, request, door);
        let reserved = app.runs.reserve(id);
        ask::store_decision(app, id, &name, decision, &by).await?;
        flow::resume(app, &request.client.principal, id, request.caller.clone()).await?;
        drop(reserved);
    }
    Ok(empty_object())
}

/// Cancels the run of a task. One that is over stays as it is.
async fn cancel(app: &Arc<App>, request: &IncomingRequest, id: &RunId) -> Result<Box<RawValue>, Problem> {
    flow::cancel(app, &request.client.principal, id).await?;
    Ok(empty_object())
}
