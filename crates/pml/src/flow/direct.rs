//! A tool that is called by name, outside any program.
//!
//! It is held to the same rules as a call of a program. What nobody has to be asked about is called at once; what
//! somebody has to allow becomes a run of that one call, which asks.

use std::sync::Arc;
use std::time::Duration;

use pml_mcp::Caller;
use pml_model::json::Fields;
use pml_model::question::Answerer;
use pml_model::{Principal, ToolId};
use pml_store::Idempotency;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::{Executed, asked_before, execute};
use crate::app::App;
use crate::planning::{Asked, Execution};
use crate::problem::Problem;
use crate::tools::{self, Context, Direct, Outcome};

/// A call by name.
pub struct NamedCall<'c> {
    /// Who asks.
    pub principal: Principal,
    /// In which session.
    pub session: String,
    /// Which client, and whether it counts as having asked its user.
    pub direct: Direct,
    /// The tool.
    pub tool: &'c ToolId,
    /// What it is called with.
    pub arguments: &'c RawValue,
    /// Further members of the request, such as `_meta`. They go to the server with a call that is made at once;
    /// nobody who allows a call sees them, so they do not go with one that was asked for.
    pub passing: Fields<'c>,
    /// Who hears of it meanwhile.
    pub caller: Caller,
    /// When to give up.
    pub cancel: CancellationToken,
    /// Whose answer counts where somebody has to be asked.
    pub by: Answerer,
    /// What makes a repeated request the same run.
    pub idempotency: Option<Idempotency>,
    /// How long a run of it may wait for its turn.
    pub patience: Duration,
}

/// What became of a call by name.
pub enum Called {
    /// It was made, or refused, at once.
    Answered(Outcome),
    /// It is a run, because somebody has to allow it or because the same request was one before.
    Run(Executed),
}

/// A tool is called by name.
///
/// # Errors
/// The run that it becomes cannot be recorded.
pub async fn call(
    app: &Arc<App>,
    call: NamedCall<'_>,
    visible: impl Fn(&ToolId) -> bool + Send + Sync,
) -> Result<Called, Problem> {
    if let Some(idempotency) = &call.idempotency
        && let Some(before) = asked_before(app, &call.principal, idempotency).await?
    {
        return Ok(Called::Run(before));
    }
    let NamedCall { principal, session, direct, tool, arguments, passing, caller, cancel, .. } = call;
    let context = Context::direct(principal.clone(), direct, caller.clone(), cancel);
    let outcome = tools::call(&app.tools, &context, tool, arguments, passing).await;
    let (Outcome::NeedsApproval(_), tools::Authority::Direct(direct)) = (&outcome, context.authority) else {
        return Ok(Called::Answered(outcome));
    };
    let execution = Execution {
        principal,
        session,
        intent: format!("direct call of {tool} by client {}", direct.client),
        work: Asked::Call(tool.clone()),
        arguments: arguments.to_owned(),
        timeout: None,
        caller,
        idempotency: call.idempotency,
        patience: call.patience,
        by: call.by,
        dynamic: app.config().approvals.dynamic,
        // Nobody said what the call is for, so there is no intent it could be found by again.
        learn: false,
        capability: None,
        cache: false,
    };
    match execute(app, execution, visible).await? {
        Executed::Refused(refused) => Ok(Called::Answered(Outcome::NotSent(refused.problem))),
        other => Ok(Called::Run(other)),
    }
}

/// How long a direct call of a tool may take: what its server may, which can be more than runs usually have.
pub(super) fn longest_ms(app: &App, tool: &ToolId) -> u64 {
    let longest = app.tools.servers.get(&tool.server).map_or(Duration::ZERO, |slot| {
        slot.settings().start_timeout.saturating_add(slot.settings().call_timeout)
    });
    u64::try_from(longest.as_millis()).unwrap_or(u64::MAX)
}
