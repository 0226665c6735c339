//! Tools of downstream servers that a client calls by name.
//!
//! Clients check structured content against what the tool itself says of its results, so everything that is not
//! the tool's own result is told in text alone, as an error; the run it is about is named in `_meta` as well.

use std::sync::Arc;
use std::time::Duration;

use pml_mcp::RpcError;
use pml_mcp::server::Incoming;
use pml_model::json::{Fields, raw};
use pml_model::question::Answerer;
use pml_model::{Digest, RunId, ToolId};
use serde_json::json;
use serde_json::value::RawValue;

use super::ask::{self, Began, Settled};
use super::execute::{TURN, WAIT_MS, idempotency, wait};
use super::meta_tools::session_of;
use super::reply::{failure_text, question_text};
use super::{Door, client_name, is_callable, is_listed};
use crate::app::App;
use crate::flow::{self, Called, Executed, NamedCall};
use crate::problem::{Problem, Sent};
use crate::report::Standing;
use crate::tools::{AskedByClient, Direct, Outcome, ToolError};

/// Calls a tool for a client. Where somebody has to allow the call, they are asked.
pub(super) async fn call(
    app: &Arc<App>,
    request: &Incoming,
    door: &Door,
    tool: &ToolId,
    arguments: &RawValue,
    passing: Fields<'_>,
) -> Result<Box<RawValue>, RpcError> {
    let called = async {
        let by = app.config().approvals.by.unwrap_or(door.by);
        let call = NamedCall {
            principal: request.client.principal.clone(),
            session: session_of(request),
            direct: direct(app, request, door, tool, by),
            tool,
            arguments,
            passing,
            caller: request.caller.clone(),
            cancel: request.cancel.clone(),
            by,
            idempotency: idempotency(&request.params, None, || {
                Digest::of(format!("{tool} {arguments}").as_bytes())
            })?,
            patience: TURN,
        };
        flow::call(app, call, |id| is_callable(id, &door.expose)).await
    };
    let told = |problem: &Problem| match has_output_schema(app, tool) {
        true => problem.to_typed_tool_result(),
        false => problem.to_tool_result(),
    };
    let run = match called.await {
        Ok(Called::Answered(outcome)) => return answer(outcome, told),
        Ok(Called::Run(run)) => run,
        Err(problem) => return Ok(told(&problem)),
    };
    Ok(followed(app, request, door, run).await.unwrap_or_else(|problem| problem.to_typed_tool_result()))
}

/// The client as the gate sees it. One whose key says so has asked its user itself; so has one whose word counts and
/// that was listed the tool.
fn direct(app: &App, request: &Incoming, door: &Door, tool: &ToolId, by: Answerer) -> Direct {
    let key = request.client.key.and_then(|key| app.keys.get(key));
    let asked_by_client = match (&key, by) {
        (Some(key), _) if key.asks_itself => Some(AskedByClient::Key),
        (_, Answerer::Client) if is_listed(tool, &door.expose) => Some(AskedByClient::Listed),
        (_, Answerer::Client | Answerer::Human) => None,
    };
    Direct { client: client_name(app, &request.client), key: key.map(|key| key.id), asked_by_client }
}

/// Follows the run that a call became, for as long as clients wait.
async fn followed(
    app: &Arc<App>,
    request: &Incoming,
    door: &Door,
    run: Executed,
) -> Result<Box<RawValue>, Problem> {
    let mut began = Began::ByThisRequest;
    let (id, standing) = match run {
        Executed::Going(handle) => {
            let standing = wait(&handle, Duration::from_millis(WAIT_MS), request).await?;
            (handle.id.clone(), standing)
        }
        Executed::Stands(id, standing) => (id, standing),
        Executed::AsksAlready(id, standing) => {
            began = Began::ByEarlierRequest;
            (id, standing)
        }
        Executed::Known(known) => (known.id, Standing::Over(Arc::new(known.report))),
        Executed::Refused(refused) => return Err(refused.problem),
        Executed::Suggested(_) => unreachable!("a tool was named"),
    };
    let settled = ask::settle_or_cancel(app, request, door, &id, standing, began).await?;
    Ok(told(&settled, &id))
}

/// The run of a direct call, as the client that called the tool is told of it.
pub(super) fn told(settled: &Settled, id: &RunId) -> Box<RawValue> {
    let standing = match settled {
        Settled::Asks(question) => return question.clone(),
        Settled::Stands(standing) => standing,
    };
    let (status, text) = match standing {
        Standing::Over(report) => match report.tool_result() {
            Some(result) => return result.to_owned(),
            None => ("failed", failure_text(id, report)),
        },
        Standing::Waiting { question: Some((_, question)), in_flight, .. } => {
            ("approval_required", format!("approval_required: {}", question_text(id, question, *in_flight)))
        }
        Standing::Waiting { question: None, .. }
        | Standing::Running(_)
        | Standing::Interrupted
        | Standing::Elsewhere => (
            "running",
            format!("running: {id} is not over yet. Call `pml_continue` with it to wait for the result."),
        ),
    };
    raw(&json!({
        "content": [{ "type": "text", "text": text }],
        "isError": true,
        "_meta": { "pml/workflowId": id, "pml/status": status },
    }))
}

fn has_output_schema(app: &App, tool: &ToolId) -> bool {
    app.tools.snapshot().tool(tool).is_ok_and(|tool| tool.definition.output_schema.is_some())
}

/// The outcome of a call that was made, or refused, at once.
fn answer(outcome: Outcome, told: impl Fn(&Problem) -> Box<RawValue>) -> Result<Box<RawValue>, RpcError> {
    match outcome {
        Outcome::Ok(result) | Outcome::ToolError(ToolError::Result(result)) => Ok(result),
        Outcome::ToolError(ToolError::Rpc(error)) => Err(error),
        Outcome::NotSent(problem) | Outcome::NeedsApproval(problem) => Ok(told(&problem.sent(Sent::No))),
        Outcome::Unknown(problem) => Ok(told(&problem.sent(Sent::Unknown))),
    }
}
