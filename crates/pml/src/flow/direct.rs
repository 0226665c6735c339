//! Direct calls: a tool that a client calls by name, outside any program.
//!
//! The same policy applies as to a call of a program. A call that needs no approval is made at once. A call that needs
//! approval becomes a run of that one call, which asks for it. So does a call with an idempotency key, because a run is
//! what a repeated request finds. A call that takes long becomes a run meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use pml_mcp::Caller;
use pml_model::json::Fields;
use pml_model::question::Answerer;
use pml_model::{Principal, ToolId};
use pml_store::Idempotency;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::{ExecuteOutcome, RunLegacy, execute, execute_confirmed, find_repeated_run};
use crate::app::App;
use crate::execute::{CallUnderWay, OpenCall, RunHandle, complete_value};
use crate::knowledge::SessionResult;
use crate::planning::{RunRequest, Work};
use crate::problem::{ErrorCode, Problem};
use crate::telemetry::{current, in_context};
use crate::tools::{self, CallContext, CallOutcome, DirectCaller};

/// 10 KiB: the largest result that a session remembers, as much as traces keep of one.
const MOST_REMEMBERED: usize = 10 << 10;
/// 64 KiB: larger results are not read again for the sake of dry runs.
const NOTED_BYTES: usize = 64 << 10;

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
    /// person who approves a call does not see them, and a run does not record them, so they are dropped if the call
    /// becomes a run.
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
    /// The time after which a call that was made at once goes on within a run; `None` if its client waits as long as it
    /// takes.
    pub take_over_after: Option<Duration>,
}

/// The outcome of a direct call.
pub enum DirectOutcome {
    /// The call was made, or refused, at once.
    Answered(CallOutcome),
    /// The call takes long and goes on within this run.
    TakenOver(Arc<RunHandle>),
    /// The call became a run, because it needs approval, has an idempotency key, or was a run before.
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
    app.keys.admit_direct_call(call.direct.key)?;
    if call.idempotency.is_some() {
        let asked_by = call.direct.asked_by_client.map(|_| call.direct.clone());
        let legacy = RunLegacy { asked_by, ..RunLegacy::default() };
        return execute_confirmed(app, run_of_call(app, &call), legacy, visible).await.map(run_outcome);
    }
    let began = Instant::now();
    let outcome = match call.take_over_after {
        None => call_at_once(app, &call).await,
        Some(patience) => match call_or_take_over(app, &call, patience, &visible).await {
            FirstOutcome::Ended(outcome) => outcome,
            FirstOutcome::TakenOver(handle) => return Ok(DirectOutcome::TakenOver(handle)),
        },
    };
    if !matches!(outcome, CallOutcome::NeedsApproval(_)) {
        app.runs.metrics.note_call(call.tool, outcome.status(), began.elapsed());
        remember_in_session(app, &call, &outcome);
        note_result(app, &call, &outcome);
        return Ok(DirectOutcome::Answered(outcome));
    }
    execute(app, run_of_call(app, &call), visible).await.map(run_outcome)
}

fn run_outcome(outcome: ExecuteOutcome) -> DirectOutcome {
    match outcome {
        ExecuteOutcome::Refused(refused) => DirectOutcome::Answered(CallOutcome::NotSent(refused.problem)),
        other => DirectOutcome::Run(other),
    }
}

/// Records the tool, and what it returned, among what the session used last. What sanitising changes is used for nothing.
fn remember_in_session(app: &App, call: &NamedCall<'_>, outcome: &CallOutcome) {
    let CallOutcome::Ok(result) = outcome else { return };
    let (memory, tool) = (&app.knowledge.memory, call.tool.to_string());
    let is_whole = || result.get().len() <= MOST_REMEMBERED && !memory.sanitiser().clean_json(result).changed;
    let value = is_whole().then(|| complete_value(result)).flatten();
    let value = value.and_then(|value| serde_json::from_str(value.get()).ok());
    let results = value.map(|value| SessionResult { tool: tool.clone(), value });
    memory.record_session_use((&call.principal, &call.session), &[&tool], results.into_iter().collect());
}

/// Notes a result, so that dry runs have it for calls that they do not make.
fn note_result(app: &App, call: &NamedCall<'_>, outcome: &CallOutcome) {
    let CallOutcome::Ok(result) = outcome else { return };
    if app.config().memory.learn
        && result.get().len() <= NOTED_BYTES
        && let Ok(tool) = app.tools.snapshot().tool(call.tool)
        && let Some(value) = complete_value(result)
    {
        let tool = (call.tool, &tool.definition.digest);
        app.knowledge.mocks.note_result(&call.principal, tool, call.arguments, &value);
    }
}

/// The run that a call becomes.
fn run_of_call(app: &App, call: &NamedCall<'_>) -> RunRequest {
    RunRequest {
        principal: call.principal.clone(),
        key: call.direct.key,
        session: call.session.clone(),
        intent: format!("direct call of {} by client {}", call.tool, call.direct.client),
        work: Work::Call(call.tool.clone()),
        arguments: call.arguments.to_owned(),
        timeout: None,
        caller: call.caller.clone(),
        idempotency: call.idempotency.clone(),
        max_wait: call.max_wait,
        answerer: call.answerer,
        dynamic: app.config().approvals.dynamic,
        // A direct call has no intent by which it could be found again.
        learn: false,
        capability: None,
        use_cache: false,
        speculate: false,
    }
}

fn context(call: &NamedCall<'_>, cancel: CancellationToken) -> CallContext {
    CallContext::direct(call.principal.clone(), call.direct.clone(), call.caller.clone(), cancel)
}

async fn call_at_once(app: &App, call: &NamedCall<'_>) -> CallOutcome {
    let context = context(call, call.cancel.clone());
    tools::call(&app.tools, &context, call.tool, call.arguments, call.extra_params.clone()).await
}

/// What came of a call that a run may take over.
enum FirstOutcome {
    Ended(CallOutcome),
    TakenOver(Arc<RunHandle>),
}

/// Makes a call. One that is not over after `patience` goes on within a run, so that a client that waits for no longer
/// still gets its result. The call is sent once.
async fn call_or_take_over(
    app: &Arc<App>,
    call: &NamedCall<'_>,
    patience: Duration,
    visible: &(impl Fn(&ToolId) -> bool + Send + Sync),
) -> FirstOutcome {
    // The token of the request ends with the request.
    let own = CancellationToken::new();
    let context = context(call, own.clone());
    let (tools, tool) = (Arc::clone(&app.tools), call.tool.clone());
    let (arguments, extra) = (call.arguments.to_owned(), call.extra_params.to_raw());
    let calling = async move {
        let extra = Fields::parse(extra.get()).unwrap_or_default();
        tools::call(&tools, &context, &tool, &arguments, extra).await
    };
    let mut calling = in_context(current(), calling).boxed();
    tokio::select! {
        outcome = &mut calling => return FirstOutcome::Ended(outcome),
        () = call.cancel.cancelled() => {
            own.cancel();
            return FirstOutcome::Ended(calling.await);
        }
        () = call.caller.wait_while_answering(patience) => {}
    }
    let open = OpenCall::new(calling, own.clone());
    let begun = execute_open_call(app, run_of_call(app, call), open.clone(), visible).await;
    let Some(CallUnderWay { mut outcome, .. }) = open.take() else {
        return match begun {
            Ok(ExecuteOutcome::Running(handle)) => FirstOutcome::TakenOver(handle),
            _ => FirstOutcome::Ended(CallOutcome::Unknown(lost(call.tool))),
        };
    };
    // Its tool needs an approval that the client has given itself, or no run can be started now: the client waits on.
    tokio::select! {
        outcome = &mut outcome => FirstOutcome::Ended(outcome),
        () = call.cancel.cancelled() => {
            own.cancel();
            FirstOutcome::Ended(outcome.await)
        }
    }
}

/// As [`execute`], for a call that was made before and goes on within the run. Whether a run took it over is known by the
/// call.
async fn execute_open_call(
    app: &Arc<App>,
    asked: RunRequest,
    open_call: OpenCall,
    visible: impl Fn(&ToolId) -> bool + Send + Sync,
) -> Result<ExecuteOutcome, Problem> {
    let legacy = RunLegacy { open_call: Some(open_call), ..RunLegacy::default() };
    execute_confirmed(app, asked, legacy, visible).await
}

fn lost(tool: &ToolId) -> Problem {
    Problem::new(ErrorCode::Storage, format!("the call of `{tool}` was lost with the run that took it over"))
}

/// Milliseconds a direct call of a tool may take: the limit of its server, which can exceed that of runs.
pub(super) fn longest_ms(app: &App, tool: &ToolId) -> u64 {
    let longest = app.tools.servers.get(&tool.server).map_or(Duration::ZERO, |slot| {
        slot.settings().start_timeout.saturating_add(slot.settings().longest_call)
    });
    u64::try_from(longest.as_millis()).unwrap_or(u64::MAX)
}
