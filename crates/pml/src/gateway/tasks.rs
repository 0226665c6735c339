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
use super::ask;
use super::reply;
use super::task_reply::{EXTENSION, envelope, is_declared};
use crate::app::App;
use crate::approve::words;
use crate::execute::no_run;
use crate::flow;
use crate::problem::{ErrorCode, Problem};
use crate::report::{RunReport, RunStatus};

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
