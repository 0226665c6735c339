//! Direct calls: a tool that a client calls by name, outside any program.
//!
//! The same policy applies as to a call of a program. A call that needs no approval is made at once. A call that needs
//! approval becomes a run of that one call, which asks for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pml_mcp::Caller;
use pml_model::json::Fields;
use pml_model::question::Answerer;
use pml_model::{Principal, ToolId};
use pml_store::Idempotency;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::{ExecuteOutcome, execute, find_repeated_run};
use crate::app::App;
use crate::planning::{RunRequest, Work};
use crate::problem::Problem;
use crate::tools::{self, CallContext, CallOutcome, DirectCaller};

/// A request to call a tool by name.
pub struct NamedCall<'c> {
    /// The principal that the call is made for.
    pub principal: Principal,
    /// The session of the client.
    pub session: String,
    /// The client, and whether it counts as having asked its user.
    pub direct: DirectCaller,
    /// The tool to call.
    pub tool: &'c ToolId,
    /// The arguments of the call, a JSON object.
    pub arguments: &'c RawValue,
    /// Further members of the request, such as `_meta`. They are sent to the server only if the call is made at once. A
    /// person who approves a call does not see them, so they are dropped if the call needs approval.
    pub extra_params: Fields<'c>,
    /// The receiver of progress and log messages.
    pub caller: Caller,
    /// Cancels the call.
    pub cancel: CancellationToken,
    /// Whose answer counts if the call needs approval.
    pub answerer: Answerer,
    /// The idempotency key that makes a repeated request the same run.
    pub idempotency: Option<Idempotency>,
    /// How long a run of the call may queue.
    pub max_wait: Duration,
}

/// The outcome of a direct call.
pub enum DirectOutcome {
    /// The call was made, or refused, at once.
    Answered(CallOutcome),
    /// The call became a run, because it needs approval or because the same request was a run before.
    Run(ExecuteOutcome),
}

/// Calls a tool by name.
///
/// # Errors
/// The run that the call becomes cannot be recorded.
pub async fn call(
    app: &Arc<App>,
    call: NamedCall<'_>,
    visible: impl Fn(&ToolId) -> bool + Send + Sync,
) -> Result<DirectOutcome, Problem> {
    if let Some(idempotency) = &call.idempotency
        && let Some(before) = find_repeated_run(app, &call.principal, idempotency).await?
    {
        return Ok(DirectOutcome::Run(before));
    }
    let NamedCall {
        principal, session, direct, tool, arguments, extra_params: passing, caller, cancel, ..
    } = call;
    app.keys.admit_direct_call(direct.key)?;
    let context = CallContext::direct(principal.clone(), direct, caller.clone(), cancel);
    let began = Instant::now();
    let outcome = tools::call(&app.tools, &context, tool, arguments, passing).await;
    let (CallOutcome::NeedsApproval(_), tools::Authority::Direct(direct)) = (&outcome, context.authority)
    else {
        app.runs.metrics.note_call(tool, outcome.status(), began.elapsed());
        return Ok(DirectOutcome::Answered(outcome));
    };
    let execution = RunRequest {
        principal,
        key: direct.key,
        session,
        intent: format!("direct call of {tool} by client {}", direct.client),
        work: Work::Call(tool.clone()),
        arguments: arguments.to_owned(),
        timeout: None,
        caller,
        idempotency: call.idempotency,
        max_wait: call.max_wait,
        answerer: call.answerer,
        dynamic: app.config().approvals.dynamic,
        // A direct call has no intent by which it could be found again.
        learn: false,
        capability: None,
        use_cache: false,
        speculate: false,
    };
    match execute(app, execution, visible).await? {
        ExecuteOutcome::Refused(refused) => {
            Ok(DirectOutcome::Answered(CallOutcome::NotSent(refused.problem)))
        }
        other => Ok(DirectOutcome::Run(other)),
    }
}

/// Milliseconds a direct call of a tool may take: the limit of its server, which can exceed that of runs.
pub(super) fn longest_ms(app: &App, tool: &ToolId) -> u64 {
    let longest = app.tools.servers.get(&tool.server).map_or(Duration::ZERO, |slot| {
        slot.settings().start_timeout.saturating_add(slot.settings().longest_call)
    });
    u64::try_from(longest.as_millis()).unwrap_or(u64::MAX)
}
