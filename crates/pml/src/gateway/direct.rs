//! Tools of downstream servers that a client calls by name.
//!
//! Clients check structured content against the output schema of the tool. So everything that is not the tool's own
//! result is returned as text only, as an error; `_meta` names the run as well.

use std::sync::Arc;
use std::time::Duration;

use pml_mcp::RpcError;
use pml_mcp::server::IncomingRequest;
use pml_model::json::Fields;
use pml_model::question::Answerer;
use pml_model::{Digest, ToolId};
use serde_json::value::RawValue;

use super::ask::{self, RunOrigin};
use super::request::{read_idempotency, session_id};
use super::wait::{TURN, wait_for_run};
use super::{ClientAccess, client_name, task_reply};
use crate::app::App;
use crate::flow::{self, DirectOutcome, ExecuteOutcome, NamedCall};
use crate::problem::{ErrorCode, Problem, SentStatus};
use crate::report::RunStatus;
use crate::tools::{AskedByClient, CallOutcome, DirectCaller, ToolError};

/// Calls a tool for a client. Where the call needs an approval, it is asked for.
pub(super) async fn call(
    app: &Arc<App>,
    request: &IncomingRequest,
    door: &ClientAccess,
    tool: &ToolId,
    arguments: &RawValue,
    passing: Fields<'_>,
) -> Result<Box<RawValue>, RpcError> {
    let called = async {
        let by = app.config().approvals.answerer.unwrap_or(door.default_answerer);
        let call = NamedCall {
            principal: request.client.principal.clone(),
            session: session_id(request),
            direct: direct_caller(app, request, door, tool, by),
            tool,
            arguments,
            extra_params: passing,
            caller: request.caller.clone(),
            cancel: request.cancel.clone(),
            answerer: by,
            idempotency: read_idempotency(&request.params, None, || {
                Digest::of(format!("{tool} {arguments}").as_bytes())
            })?,
            max_wait: TURN,
            // Also of a client that wants progress: for most of them it does not move the time at which they give up.
            take_over_after: Some(door.patience),
        };
        flow::call(app, call, |id| door.may_call(id)).await
    };
    let told = |problem: &Problem| match has_output_schema(app, tool) {
        true => problem.to_typed_tool_result(),
        false => problem.to_tool_result(),
    };
    let (run, patience) = match called.await {
        Ok(DirectOutcome::Answered(outcome)) => return outcome_result(outcome, told),
        // Its client has waited as long as clients do.
        Ok(DirectOutcome::TakenOver(handle)) => (ExecuteOutcome::Running(handle), Duration::ZERO),
        Ok(DirectOutcome::Run(run)) => (run, door.patience),
        Err(problem) => return Ok(told(&problem)),
    };
    Ok(follow_run(app, request, door, (run, patience))
        .await
        .unwrap_or_else(|problem| problem.to_typed_tool_result()))
}

/// The client as the policy gate sees it. A client has asked its user itself if its key says so, or if its answers
/// count and the tool was listed to it.
fn direct_caller(
    app: &App,
    request: &IncomingRequest,
    door: &ClientAccess,
    tool: &ToolId,
    by: Answerer,
) -> DirectCaller {
    let key = request.client.key.and_then(|key| app.keys.get(key));
    let asked_by_client = match (&key, by) {
        (Some(key), _) if key.asks_itself => Some(AskedByClient::Key),
        (_, Answerer::Client) if door.lists(tool) => Some(AskedByClient::Listed),
        (_, Answerer::Client | Answerer::Human) => None,
    };
    DirectCaller { client: client_name(app, &request.client), key: key.map(|key| key.id), asked_by_client }
}

/// Follows the run that a call became, for a time.
pub(super) async fn follow_run(
    app: &Arc<App>,
    request: &IncomingRequest,
    door: &ClientAccess,
    (run, patience): (ExecuteOutcome, Duration),
) -> Result<Box<RawValue>, Problem> {
    let mut began = RunOrigin::ThisRequest;
    let (id, standing) = match run {
        ExecuteOutcome::Running(handle) => {
            let standing = wait_for_run(&handle, patience, request).await?;
            (handle.id.clone(), standing)
        }
        ExecuteOutcome::Status(id, standing) => (id, standing),
        ExecuteOutcome::AlreadyWaiting(id, standing) => {
            began = RunOrigin::EarlierRequest;
            (id, standing)
        }
        ExecuteOutcome::Cached(known) => (known.id, RunStatus::Finished(Arc::new(known.report))),
        ExecuteOutcome::Refused(refused) => return Err(refused.problem),
        ExecuteOutcome::Suggested(suggested) => {
            return Err(Problem::new(ErrorCode::InvalidArguments, suggested.because)
                .hint("the `inputSchema` of the tool has its arguments"));
        }
    };
    let settled = ask::ask_user_or_cancel(app, request, door, &id, standing, began).await?;
    let task = task_reply::created(app, request, &id, settled.status()).await;
    Ok(task.unwrap_or_else(|| settled.told_of_direct_call(&id)))
}

fn has_output_schema(app: &App, tool: &ToolId) -> bool {
    app.tools.snapshot().tool(tool).is_ok_and(|tool| tool.definition.output_schema.is_some())
}

/// The tool result of a call that was made, or refused, without a run.
fn outcome_result(
    outcome: CallOutcome,
    told: impl Fn(&Problem) -> Box<RawValue>,
) -> Result<Box<RawValue>, RpcError> {
    match outcome {
        CallOutcome::Ok(result) | CallOutcome::ToolError(ToolError::Result(result)) => Ok(result),
        CallOutcome::ToolError(ToolError::Rpc(error)) => Err(error),
        CallOutcome::NotSent(problem)
        | CallOutcome::NeedsApproval(problem)
        | CallOutcome::Withheld(problem) => Ok(told(&problem.sent(SentStatus::No))),
        CallOutcome::Unknown(problem) => Ok(told(&problem.sent(SentStatus::Unknown))),
    }
}
