//! The tools, and the single code path that calls them.
//!
//! Every call of every kind goes through [`call`], so its checks apply to all of them. Arguments stay the bytes they
//! came as.

mod call_audit;
mod spans;
mod toolset;

use std::time::{Duration, Instant};

use pml_mcp::client::{NotSentReason, OutgoingRequest, RequestFailure};
use pml_mcp::{Caller, RpcError};
use pml_model::json::{Fields, raw};
use pml_model::{Annotations, Digest, KeyId, Principal, RunId, ToolId};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::approve::question::value_digest;
use crate::approve::{self, PolicyRefusal, ToolVerdict};
use crate::builtin::ReadRecorder;
use crate::catalogue::{CatalogueTool, QuarantineReason, ToolSnapshot};
use crate::clock::now_ms;
use crate::config::DefinitionPolicy;
use crate::epoch::WriteReach;
use crate::metrics::CallStatus;
use crate::problem::{ErrorCode, Problem};
use crate::servers::{CallPurpose, ServerHandle, ServerStatus};
use crate::telemetry::{add_trace_context, current, in_context};
use call_audit::{AuditedArguments, AuditedCall, AuditedCaller, DirectDecision};
use spans::log_call;
pub(crate) use spans::{begin_call, end_call};
pub(crate) use toolset::installation;
pub use toolset::{BuiltInServer, Toolset, describe_status};

/// Who makes a call, and within which limits.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// The principal that the call acts for.
    pub principal: Principal,
    /// The run that the call belongs to, if any.
    pub run: Option<RunId>,
    /// The deadline of the call; the timeout of the server applies as well.
    pub deadline: Option<Instant>,
    /// Cancels the call.
    pub cancel: CancellationToken,
    /// Whether the call may have effects.
    pub mode: CallMode,
    /// The receiver of progress and log messages, which can also be asked questions.
    pub caller: Caller,
    /// What authorises the call.
    pub authority: Authority,
    /// Records the files that built-in tools read, if the result is to be cached.
    pub witness: Option<ReadRecorder>,
}

/// What authorises a call. A tool that needs approval is called only with an authority that contains the approval:
/// there is no value for "not asked".
#[derive(Debug, Clone)]
pub enum Authority {
    /// The call belongs to a run that was granted the tool.
    Run(Permit),
    /// The call belongs to a dry run that was planned with the tool. It is made only in mode [`CallMode::Dry`].
    DryRun(DryPermit),
    /// A client calls the tool by name, outside any run.
    Direct(DirectCaller),
}

/// The permission of a dry run to call a tool.
#[derive(Debug, Clone)]
pub struct DryPermit {
    /// The definition the tool had when the dry run was planned.
    pub definition: Digest,
    /// The key of the client.
    pub key: Option<KeyId>,
}

/// The client that makes a direct call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectCaller {
    /// The name of the client: that of its key, else the one it gives itself.
    pub client: String,
    /// The key that authenticated it.
    pub key: Option<KeyId>,
    /// Why the client counts as having asked its own user; `None` if it does not.
    pub asked_by_client: Option<AskedByClient>,
}

/// Why a client counts as having asked its own user about the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedByClient {
    /// The operator configured its key as asking.
    Key,
    /// The answers of clients count, and the tool was listed to this one: clients ask about the tools they show.
    Listed,
}

/// The permission of a run to call a tool.
#[derive(Debug, Clone)]
pub struct Permit {
    /// The definition the tool had when the run was planned.
    pub definition: Digest,
    /// The approval by a person, if there is one.
    pub approval: Option<CallApproval>,
}

/// A person's approval of one call.
#[derive(Debug, Clone)]
pub struct CallApproval {
    /// The digest of the approved arguments in canonical form; `None` approves any arguments.
    pub arguments: Option<Digest>,
    /// When the approval expires, in milliseconds since the Unix epoch.
    pub expires_at: i64,
}

/// The effects that a call may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallMode {
    /// Everything the tool does.
    Real,
    /// None: the call is made before a program asks for it, so only tools that only read are called.
    Speculative,
    /// None: the call belongs to a dry run. Everything is checked as for a real call, but nobody is asked, and whatever
    /// is not known to be without effects is withheld.
    Dry(DrySending),
}

/// Which calls of a dry run reach their tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrySending {
    /// Those of tools that need no approval and only read.
    ReadOnly,
    /// None.
    Nothing,
}

impl CallMode {
    fn purpose(self) -> CallPurpose {
        match self {
            CallMode::Real | CallMode::Dry(_) => CallPurpose::Requested,
            CallMode::Speculative => CallPurpose::Speculative,
        }
    }
}

impl CallContext {
    /// The context of a direct call by a client, outside any run.
    pub fn direct(
        principal: Principal,
        direct: DirectCaller,
        caller: Caller,
        cancel: CancellationToken,
    ) -> CallContext {
        CallContext {
            principal,
            run: None,
            deadline: None,
            cancel,
            mode: CallMode::Real,
            caller,
            authority: Authority::Direct(direct),
            witness: None,
        }
    }
}

impl AskedByClient {
    /// The reason that the audit log records.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            AskedByClient::Key => "the operator declared of this client's key that it asks its own user",
            AskedByClient::Listed => "the client was listed the tool, and `approvals.by` is `client`",
        }
    }
}

impl Permit {
    /// Whether the approval covers a call with these arguments.
    fn covers(&self, arguments: &RawValue) -> bool {
        self.approval.as_ref().is_some_and(|allowed| {
            now_ms() < allowed.expires_at
                && (allowed.arguments.is_none() || allowed.arguments == value_digest(arguments.get()))
        })
    }
}

/// The outcome of a call.
#[derive(Debug)]
pub enum CallOutcome {
    /// The tool's result.
    Ok(Box<RawValue>),
    /// The tool or its server returned an error.
    ToolError(ToolError),
    /// Nothing was sent to the server.
    NotSent(Problem),
    /// Nothing was sent to the server: the call needs approval first.
    NeedsApproval(Problem),
    /// Nothing was sent to the server: the call belongs to a dry run, which answers it itself.
    Withheld(Problem),
    /// The call is in doubt: it was sent, and whether the tool acted is unknown.
    Unknown(Problem),
}

impl CallOutcome {
    /// How the call ended, in one word.
    pub(crate) fn status(&self) -> CallStatus {
        match self {
            CallOutcome::Ok(_) => CallStatus::Ok,
            CallOutcome::Unknown(_) => CallStatus::InDoubt,
            CallOutcome::ToolError(_)
            | CallOutcome::NotSent(_)
            | CallOutcome::NeedsApproval(_)
            | CallOutcome::Withheld(_) => CallStatus::Error,
        }
    }
}

/// The two forms in which a server returns an error.
#[derive(Debug)]
pub enum ToolError {
    /// A result marked as an error.
    Result(Box<RawValue>),
    /// A JSON-RPC error.
    Rpc(RpcError),
}

/// Calls `id` with `arguments`. `passing` are further members of the request's parameters, such as `_meta`, which are
/// sent to the server too.
pub async fn call(
    tools: &Toolset,
    context: &CallContext,
    id: &ToolId,
    arguments: &RawValue,
    passing: Fields<'_>,
) -> CallOutcome {
    // The driver of a run makes the spans of its calls. A read ahead has none: the call that uses its result has.
    let is_of_run =
        matches!(context.authority, Authority::Run(_)) && !matches!(context.mode, CallMode::Dry(_));
    if is_of_run {
        return call_in_span(tools, context, id, arguments, passing).await;
    }
    let span = begin_call(tools, id, arguments.get());
    let called = call_in_span(tools, context, id, arguments, passing);
    let outcome = in_context(span.context(), called).await;
    end_call(span, &outcome);
    outcome
}

async fn call_in_span(
    tools: &Toolset,
    context: &CallContext,
    id: &ToolId,
    arguments: &RawValue,
    passing: Fields<'_>,
) -> CallOutcome {
    let began = Instant::now();
    let outcome = call_found(tools, context, id, arguments, passing).await;
    log_call(id, arguments.get(), &outcome, began.elapsed());
    outcome
}

async fn call_found(
    tools: &Toolset,
    context: &CallContext,
    id: &ToolId,
    arguments: &RawValue,
    passing: Fields<'_>,
) -> CallOutcome {
    let snapshot = tools.catalogue.snapshot();
    let tool = match found(&snapshot, context, id) {
        Ok(tool) => tool,
        // A server that was never started may offer the tool.
        Err(problem) => match learn_tools(tools, context, id).await {
            Ok(()) => return Box::pin(call_known(tools, context, id, arguments, passing)).await,
            Err(None) => return CallOutcome::NotSent(problem),
            Err(Some(other)) => return CallOutcome::NotSent(other),
        },
    };
    checked(tools, context, tool, arguments, passing).await
}

/// Waits for the current tool list of a server whose tool cannot be called. Starts the server if its tools are unknown,
/// or if the tool may again have the definition that was accepted.
async fn learn_tools(tools: &Toolset, context: &CallContext, id: &ToolId) -> Result<(), Option<Problem>> {
    let snapshot = tools.catalogue.snapshot();
    let known = snapshot.servers.iter().any(|server| server.name == id.server && server.tools_known);
    let waits = snapshot.find_quarantined(id).is_some_and(|held| held.reason.needs_acceptance());
    let Some(slot) = tools.servers.get(&id.server) else { return Err(None) };
    if known && !waits {
        // The server may have become ready only since the caller looked, or its list may be arriving now.
        if matches!(slot.status(), ServerStatus::Ready(_)) {
            tools.wait_until_listed(&slot).await;
        }
        return Ok(());
    }
    let _in_use = slot.mark_in_use(context.mode.purpose());
    let deadline = Instant::now() + slot.settings().start_timeout;
    slot.connection(deadline, &context.cancel).await.map_err(|unavailable| Some(unavailable.0))?;
    tools.wait_until_listed(&slot).await;
    Ok(())
}

async fn call_known(
    tools: &Toolset,
    context: &CallContext,
    id: &ToolId,
    arguments: &RawValue,
    passing: Fields<'_>,
) -> CallOutcome {
    match found(&tools.catalogue.snapshot(), context, id) {
        Ok(tool) => checked(tools, context, tool, arguments, passing).await,
        Err(problem) => CallOutcome::NotSent(problem),
    }
}

/// The tool, if it is usable at all. For a run that was planned with the tool, one that is now quarantined counts as
/// changed.
fn found<'s>(
    snapshot: &'s ToolSnapshot,
    context: &CallContext,
    id: &ToolId,
) -> Result<&'s CatalogueTool, Problem> {
    snapshot.tool(id).map_err(|problem| {
        match (snapshot.find_quarantined(id).map(|held| &held.reason), &context.authority) {
            (Some(QuarantineReason::Changed { .. }), Authority::Run(_) | Authority::DryRun(_)) => {
                Problem { code: ErrorCode::ToolChanged, ..problem }
            }
            (_, _) => problem,
        }
    })
}

/// Why a call may not be made.
enum NotAllowed {
    /// No approval can permit the call at present.
    Refused(Problem),
    /// A direct call that needs approval first.
    NeedsApproval(Problem),
}

impl NotAllowed {
    fn outcome(self) -> CallOutcome {
        match self {
            NotAllowed::Refused(problem) => CallOutcome::NotSent(problem),
            NotAllowed::NeedsApproval(problem) => CallOutcome::NeedsApproval(problem),
        }
    }
}

/// Decides whether the call may be made, by the present policy and definitions. A program may call the tools it was
/// granted when it was planned, as long as grant and definition still hold. A client may directly call tools that need
/// no approval, and tools that it has asked its own user about, where that counts.
fn authorize(
    tools: &Toolset,
    context: &CallContext,
    tool: &CatalogueTool,
    arguments: &RawValue,
) -> Result<ToolVerdict, NotAllowed> {
    let verdict = tools.policy().verdict(&tool.id, &tool.definition.annotations);
    if let Some(refusal) = verdict.refusal(&tool.id) {
        let problem = Problem::new(ErrorCode::Denied, refusal.to_string()).hint(PolicyRefusal::HINT);
        return Err(NotAllowed::Refused(problem));
    }
    if !verdict.routing.is_server() {
        return Err(NotAllowed::Refused(Problem::on_client_only(&tool.id)));
    }
    if context.mode == CallMode::Speculative && !verdict.can_speculate() {
        let text = format!("`{}` is called only when a program asks for it", tool.id);
        return Err(NotAllowed::Refused(Problem::new(ErrorCode::Denied, text)));
    }
    // Nobody is asked about a call that is not made: a dry run withholds whatever would need approval.
    let asks = verdict.mode == approve::CallPermission::Ask && !matches!(context.mode, CallMode::Dry(_));
    let unasked = || {
        let text =
            format!("`{}` needs a person's approval for this call, because {}", tool.id, verdict.because);
        Problem::new(ErrorCode::Denied, text)
    };
    let planned = match &context.authority {
        Authority::Direct(DirectCaller { asked_by_client: None, .. }) if asks => {
            return Err(NotAllowed::NeedsApproval(unasked()));
        }
        Authority::Direct(_) => return Ok(verdict),
        Authority::DryRun(_) if !matches!(context.mode, CallMode::Dry(_)) => {
            return Err(NotAllowed::Refused(unasked()));
        }
        Authority::DryRun(permit) => &permit.definition,
        Authority::Run(permit) if asks && !permit.covers(arguments) => {
            return Err(NotAllowed::Refused(unasked().hint("run the program anew, and the person is asked")));
        }
        Authority::Run(permit) => &permit.definition,
    };
    if *planned != tool.definition.digest {
        let text = format!("the definition of `{}` changed after the run was allowed to call it", tool.id);
        return Err(NotAllowed::Refused(
            Problem::new(ErrorCode::ToolChanged, text)
                .hint("`pml list --changes` shows how; run the program anew"),
        ));
    }
    Ok(verdict)
}

/// Writes the decision about a direct call, and a call that a dry run makes, to the audit log; the calls of runs are in
/// their journals.
async fn audited(
    tools: &Toolset,
    context: &CallContext,
    tool: &CatalogueTool,
    arguments: &RawValue,
    decision: DirectDecision,
) -> Result<(), Problem> {
    let caller = match &context.authority {
        Authority::Run(_) => return Ok(()),
        // What a dry run does not call is in no log.
        Authority::DryRun(_) if matches!(decision, DirectDecision::Denied(_)) => return Ok(()),
        Authority::DryRun(permit) => AuditedCaller::DryRun { key: permit.key },
        Authority::Direct(direct) => AuditedCaller::Client(direct.clone()),
    };
    let call = AuditedCall {
        at: now_ms(),
        principal: context.principal.clone(),
        tool: tool.id.clone(),
        definition: tool.definition.digest.clone(),
        arguments: AuditedArguments::of(arguments),
        caller,
        decision,
    };
    tools.call_audit.record_call(call).await
}

/// Whether a call is not sent because it belongs to a dry run.
fn is_withheld(mode: CallMode, verdict: &ToolVerdict) -> bool {
    match mode {
        CallMode::Real | CallMode::Speculative => false,
        CallMode::Dry(DrySending::Nothing) => true,
        CallMode::Dry(DrySending::ReadOnly) => !verdict.can_dry_run(),
    }
}

/// Whether a call in this mode is sent to its tool, as far as the present policy says.
pub(crate) fn reaches_tool(tools: &Toolset, id: &ToolId, mode: CallMode) -> bool {
    let snapshot = tools.snapshot();
    snapshot.tool(id).is_ok_and(|tool| {
        let verdict = tools.policy().verdict(id, &tool.definition.annotations);
        verdict.refusal(id).is_none() && !is_withheld(mode, &verdict)
    })
}

fn withheld(tool: &ToolId) -> CallOutcome {
    let text = format!("`{tool}` is not called in a dry run");
    CallOutcome::Withheld(Problem::new(ErrorCode::Denied, text))
}

/// What a call may change, for cache invalidation; `None` if the tool is known to be read-only.
fn reach(tool: &CatalogueTool, verdict: &ToolVerdict) -> Option<WriteReach> {
    (!verdict.effect_free).then(|| WriteReach::of(&tool.id.server, verdict.isolated))
}

async fn checked(
    tools: &Toolset,
    context: &CallContext,
    tool: &CatalogueTool,
    arguments: &RawValue,
    passing: Fields<'_>,
) -> CallOutcome {
    let allowed = authorize(tools, context, tool, arguments);
    if let Err(NotAllowed::Refused(problem)) = allowed {
        let decision = DirectDecision::Denied(problem.message.clone());
        return match audited(tools, context, tool, arguments, decision).await {
            Ok(()) => CallOutcome::NotSent(problem),
            Err(unwritten) => CallOutcome::NotSent(unwritten),
        };
    }
    // Validation comes before approval: nobody is asked about a call that cannot be made.
    if let Err(problem) = tools.validators.check(&tool.id, &tool.definition, arguments) {
        return CallOutcome::NotSent(problem);
    }
    let verdict = match allowed {
        Ok(verdict) => verdict,
        Err(not_allowed) => return not_allowed.outcome(),
    };
    if is_withheld(context.mode, &verdict) {
        return withheld(&tool.id);
    }
    if let Err(unwritten) = audited(tools, context, tool, arguments, DirectDecision::of(&verdict)).await {
        return CallOutcome::NotSent(unwritten);
    }
    match tools.builtin(tool.id.server.as_str()) {
        Some(server) => {
            let _writing = reach(tool, &verdict).map(|reach| tools.epoch.begin_write(reach));
            let work = server.call_recorded(&tool.id.tool, arguments, context.witness.as_ref());
            tokio::select! {
                result = work => match result {
                    Ok(result) => ended(result),
                    Err(unknown) => CallOutcome::NotSent(Problem::new(ErrorCode::UnknownTool, unknown.to_string())),
                },
                () = context.cancel.cancelled() => {
                    CallOutcome::Unknown(Problem::new(ErrorCode::Cancelled, format!("the call to `{}` was cancelled", tool.id)))
                }
            }
        }
        None => downstream(tools, context, (tool, verdict), arguments, &passing).await,
    }
}

async fn downstream(
    tools: &Toolset,
    context: &CallContext,
    (tool, mut verdict): (&CatalogueTool, ToolVerdict),
    arguments: &RawValue,
    passing: &Fields<'_>,
) -> CallOutcome {
    let Some(slot) = tools.servers.get(&tool.id.server) else {
        return CallOutcome::NotSent(Problem::new(
            ErrorCode::UnknownServer,
            format!("server `{}` is gone", tool.id.server),
        ));
    };
    let within = |time: Duration| {
        let until = Instant::now() + time;
        context.deadline.map_or(until, |own| own.min(until))
    };
    let _in_use = slot.mark_in_use(context.mode.purpose());
    // A connection that was already closed has sent nothing, so one retry is safe.
    for last in [false, true] {
        let connection = match slot.connection(within(slot.settings().start_timeout), &context.cancel).await {
            Ok(connection) => connection,
            Err(unavailable) => return CallOutcome::NotSent(unavailable.0),
        };
        // Starting the server may have revealed other definitions than those the call was permitted with.
        match still_allowed(tools, context, &slot, tool, arguments).await {
            Ok(now) => verdict = now.unwrap_or(verdict),
            Err(not_allowed) => return not_allowed.outcome(),
        }
        if is_withheld(context.mode, &verdict) {
            return withheld(&tool.id);
        }
        if let Some(wait) = slot.rate_limit_wait() {
            return not_sent(&slot, &NotSentReason::RateLimited(wait));
        }
        let mut params = passing.clone();
        params.set("name", raw(&tool.id.tool));
        params.set_borrowed("arguments", arguments);
        if let Some(context) = current() {
            add_trace_context(&mut params, &context);
        }
        let call = OutgoingRequest {
            method: "tools/call",
            params,
            mirrored: mirrored(tool, arguments),
            caller: &context.caller,
            deadline: within(slot.settings().call_timeout),
            extension: Some(slot.progress_extension(within(slot.settings().longest_call))),
            cancel: &context.cancel,
        };
        // Held until the request has ended: the write epoch counts before and after the call.
        let _writing = reach(tool, &verdict).map(|reach| tools.epoch.begin_write(reach));
        match connection.request(call).await {
            Ok(result) => {
                slot.note_success();
                return ended(result);
            }
            Err(RequestFailure::Rpc(error)) => {
                // An error reply still proves that the server works.
                slot.note_success();
                return CallOutcome::ToolError(ToolError::Rpc(error));
            }
            Err(RequestFailure::NotSent(NotSentReason::Closed(_) | NotSentReason::SessionEnded)) if !last => {
            }
            Err(RequestFailure::NotSent(reason)) => return not_sent(&slot, &reason),
            Err(failure @ RequestFailure::Unknown(_)) => {
                return CallOutcome::Unknown(slot.problem(&failure));
            }
        }
    }
    not_sent(&slot, &NotSentReason::Closed("it ended twice".to_owned()))
}

/// Checks that the tool is unchanged and still permitted now that its server runs. Returns the verdict if it had to be
/// computed again; it need not be where no annotation could change the permission.
async fn still_allowed(
    tools: &Toolset,
    context: &CallContext,
    slot: &ServerHandle,
    tool: &CatalogueTool,
    arguments: &RawValue,
) -> Result<Option<ToolVerdict>, NotAllowed> {
    if let Authority::Direct(direct) = &context.authority
        && slot.settings().definitions == DefinitionPolicy::Follow
        && (direct.asked_by_client.is_some() || is_auto_in_any_case(tools, &tool.id))
    {
        return Ok(None);
    }
    if !tools.wait_until_listed(slot).await {
        let text = format!("`{}` may have changed, and its server does not say how", tool.id);
        let problem = Problem::new(ErrorCode::ToolChanged, text).hint("`pml doctor` checks the server");
        return Err(NotAllowed::Refused(problem));
    }
    let snapshot = tools.catalogue.snapshot();
    let tool = found(&snapshot, context, &tool.id).map_err(NotAllowed::Refused)?;
    authorize(tools, context, tool, arguments).map(Some)
}

/// Whether a tool needs no approval, whatever its annotations may say.
fn is_auto_in_any_case(tools: &Toolset, tool: &ToolId) -> bool {
    let worst = Annotations {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(false),
        open_world_hint: Some(true),
    };
    tools.policy().verdict(tool, &worst).mode == approve::CallPermission::Auto
}

fn not_sent(slot: &ServerHandle, reason: &NotSentReason) -> CallOutcome {
    if let NotSentReason::RateLimited(wait) = reason {
        slot.limit_rate(*wait);
    }
    CallOutcome::NotSent(slot.problem(&RequestFailure::NotSent(reason.clone())))
}

fn mirrored(tool: &CatalogueTool, arguments: &RawValue) -> Vec<(String, String)> {
    if tool.header_parameters.is_empty() {
        return Vec::new();
    }
    let arguments = serde_json::from_str(arguments.get()).unwrap_or_default();
    tool.header_parameters.iter().filter_map(|m| Some((m.header.clone(), m.value(&arguments)?))).collect()
}

/// The outcome that a tool result stands for.
pub(crate) fn ended(result: Box<RawValue>) -> CallOutcome {
    if is_error_result(&result) {
        CallOutcome::ToolError(ToolError::Result(result))
    } else {
        CallOutcome::Ok(result)
    }
}

/// Whether a tool result is marked as an error.
pub(crate) fn is_error_result(result: &RawValue) -> bool {
    // A text search comes first: most results are no errors, and some are large.
    result.get().contains("\"isError\"")
        && Fields::parse(result.get()).is_ok_and(|fields| fields.read("isError") == Some(true))
}
