//! The tools there are, and the one way to call one.
//!
//! Every call of every kind goes through [`call`]: what it checks is checked for all of them, and
//! there is no second path. Arguments stay the bytes they came as.

mod call_audit;
mod toolset;

use std::time::{Duration, Instant};

use pml_mcp::client::{Call, Failure, NotSent};
use pml_mcp::{Caller, RpcError};
use pml_model::json::{Fields, raw};
use pml_model::{Annotations, Digest, KeyId, Principal, RunId, ToolId};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::approve::question::value_digest;
use crate::approve::{self, Refusal, Verdict};
use crate::builtin::Witness;
use crate::catalogue::{Snapshot, Tool, Why};
use crate::clock::now_ms;
use crate::config::Definitions;
use crate::epoch::Reach;
use crate::problem::{Code, Problem};
use crate::servers::{Slot, Status};
use call_audit::{Decision, DirectCall, Given};
pub use toolset::{BuiltIn, Toolset, describe_status};

/// In whose name and within which bounds a call is made.
#[derive(Debug)]
pub struct Context {
    /// Who acts.
    pub principal: Principal,
    /// The run the call belongs to, where it belongs to one.
    pub run: Option<RunId>,
    /// When to give up; the server's own limit holds as well.
    pub deadline: Option<Instant>,
    /// When to give up earlier.
    pub cancel: CancellationToken,
    /// Whether effects are wanted.
    pub mode: Mode,
    /// Who can be told and asked things meanwhile.
    pub caller: Caller,
    /// What the call may be made by.
    pub authority: Authority,
    /// Notes the files that built-in tools read, where the result is to be kept.
    pub witness: Option<Witness>,
}

/// What a call may be made by. A tool that a person has to allow is called only by something in here that says
/// so: there is no value that stands for "unasked".
#[derive(Debug)]
pub enum Authority {
    /// The run it belongs to was granted the tool.
    Run(Permit),
    /// A client calls the tool by name, outside any run.
    Direct(Direct),
}

/// Who calls a tool by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Direct {
    /// The name of the client: that of its key, else the one it gives itself.
    pub client: String,
    /// The key it was let in by.
    pub key: Option<KeyId>,
    /// Why the client counts as having asked its own user; `None` where it does not.
    pub asked_by_client: Option<AskedByClient>,
}

/// Why a client counts as having asked its own user about the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedByClient {
    /// The operator said of its key that it asks.
    Key,
    /// What clients answer counts, and it was listed the tool: clients ask about the tools they show.
    Listed,
}

/// What a run is allowed with a tool.
#[derive(Debug, Clone)]
pub struct Permit {
    /// The definition the tool had when the run was planned.
    pub definition: Digest,
    /// What a person allowed, where one did.
    pub allowed: Option<Allowed>,
}

/// A person's word on one call.
#[derive(Debug, Clone)]
pub struct Allowed {
    /// Of the arguments they saw, in canonical form; none where they allowed any.
    pub arguments: Option<Digest>,
    /// Until when it counts.
    pub until: i64,
}

/// What a call may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Everything the tool does.
    Real,
}

impl Context {
    /// A client's own call, outside any run.
    pub fn direct(
        principal: Principal,
        direct: Direct,
        caller: Caller,
        cancel: CancellationToken,
    ) -> Context {
        Context {
            principal,
            run: None,
            deadline: None,
            cancel,
            mode: Mode::Real,
            caller,
            authority: Authority::Direct(direct),
            witness: None,
        }
    }
}

impl AskedByClient {
    /// What the audit log says of it.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            AskedByClient::Key => "the operator declared of this client's key that it asks its own user",
            AskedByClient::Listed => "the client was listed the tool, and `approvals.by` is `client`",
        }
    }
}

impl Permit {
    /// Whether a person allowed a call with these arguments.
    fn covers(&self, arguments: &RawValue) -> bool {
        self.allowed.as_ref().is_some_and(|allowed| {
            now_ms() < allowed.until
                && (allowed.arguments.is_none() || allowed.arguments == value_digest(arguments.get()))
        })
    }
}

/// How a call ended.
#[derive(Debug)]
pub enum Outcome {
    /// The tool's result.
    Ok(Box<RawValue>),
    /// The tool or its server said no.
    ToolError(ToolError),
    /// Nothing reached the server.
    NotSent(Problem),
    /// Nothing reached the server: somebody has to allow the call first.
    NeedsApproval(Problem),
    /// It was sent, and whether the tool acted is not known.
    Unknown(Problem),
}

/// The two ways in which a server says no.
#[derive(Debug)]
pub enum ToolError {
    /// A result marked as an error.
    Result(Box<RawValue>),
    /// A protocol error.
    Rpc(RpcError),
}

/// Calls `id` with `arguments`. `passing` are further members of the request's parameters, such as
/// `_meta`, that go to the server with it.
pub async fn call(
    tools: &Toolset,
    context: &Context,
    id: &ToolId,
    arguments: &RawValue,
    passing: Fields<'_>,
) -> Outcome {
    let snapshot = tools.catalogue.snapshot();
    let tool = match found(&snapshot, context, id) {
        Ok(tool) => tool,
        // A server that was never started may have it.
        Err(problem) => match learn_tools(tools, context, id).await {
            Ok(()) => return Box::pin(call_known(tools, context, id, arguments, passing)).await,
            Err(None) => return Outcome::NotSent(problem),
            Err(Some(other)) => return Outcome::NotSent(other),
        },
    };
    checked(tools, context, tool, arguments, passing).await
}

/// Waits for what the server of a tool that cannot be called has to say now, starting it where its tools are not known or
/// where it may have become again what was accepted.
async fn learn_tools(tools: &Toolset, context: &Context, id: &ToolId) -> Result<(), Option<Problem>> {
    let snapshot = tools.catalogue.snapshot();
    let known = snapshot.servers.iter().any(|server| server.name == id.server && server.known);
    let waits = snapshot.held(id).is_some_and(|held| held.why.waits());
    let Some(slot) = tools.servers.get(&id.server) else { return Err(None) };
    if known && !waits {
        // Perhaps only since the caller looked, or it is being told this moment.
        if matches!(slot.status(), Status::Ready(_)) {
            tools.settled(&slot).await;
        }
        return Ok(());
    }
    let _in_use = slot.in_use();
    let deadline = Instant::now() + slot.settings().start_timeout;
    slot.connection(deadline, &context.cancel).await.map_err(|unavailable| Some(unavailable.0))?;
    tools.settled(&slot).await;
    Ok(())
}

async fn call_known(
    tools: &Toolset,
    context: &Context,
    id: &ToolId,
    arguments: &RawValue,
    passing: Fields<'_>,
) -> Outcome {
    match found(&tools.catalogue.snapshot(), context, id) {
        Ok(tool) => checked(tools, context, tool, arguments, passing).await,
        Err(problem) => Outcome::NotSent(problem),
    }
}

/// The tool, if it may be used at all. To a run that was planned with it, one that is held back now is one that changed.
fn found<'s>(snapshot: &'s Snapshot, context: &Context, id: &ToolId) -> Result<&'s Tool, Problem> {
    snapshot.tool(id).map_err(|problem| match (snapshot.held(id).map(|held| &held.why), &context.authority) {
        (Some(Why::Changed { .. }), Authority::Run(_)) => Problem { code: Code::ToolChanged, ..problem },
        (_, _) => problem,
    })
}

/// Why a call may not be made.
enum NotAllowed {
    /// Nobody can allow it as things are.
    Refused(Problem),
    /// A direct call that somebody has to allow first.
    NeedsApproval(Problem),
}

impl NotAllowed {
    fn outcome(self) -> Outcome {
        match self {
            NotAllowed::Refused(problem) => Outcome::NotSent(problem),
            NotAllowed::NeedsApproval(problem) => Outcome::NeedsApproval(problem),
        }
    }
}

/// Whether the call may be made, by the rules and definitions of this very moment. A program may call what was granted to
/// it when it was planned, and only as long as both still stand. A client that calls a tool by name may call what nobody
/// has to be asked about, and what it has asked its own user about where that counts.
fn authorize(
    tools: &Toolset,
    context: &Context,
    tool: &Tool,
    arguments: &RawValue,
) -> Result<Verdict, NotAllowed> {
    let verdict = tools.policy().of(&tool.id, &tool.definition.annotations);
    if let Some(refusal) = verdict.refusal(&tool.id) {
        let problem = Problem::new(Code::Denied, refusal.to_string()).hint(Refusal::HINT);
        return Err(NotAllowed::Refused(problem));
    }
    let asks = verdict.mode == approve::Mode::Ask;
    let unasked = || {
        let text =
            format!("`{}` needs a person's approval for this call, because {}", tool.id, verdict.because);
        Problem::new(Code::Denied, text)
    };
    let permit = match &context.authority {
        Authority::Direct(Direct { asked_by_client: None, .. }) if asks => {
            return Err(NotAllowed::NeedsApproval(unasked()));
        }
        Authority::Direct(_) => return Ok(verdict),
        Authority::Run(permit) => permit,
    };
    if asks && !permit.covers(arguments) {
        return Err(NotAllowed::Refused(unasked().hint("run the program anew, and the person is asked")));
    }
    if permit.definition != tool.definition.digest {
        let text = format!("the definition of `{}` changed after the run was allowed to call it", tool.id);
        return Err(NotAllowed::Refused(
            Problem::new(Code::ToolChanged, text)
                .hint("`pml list --changes` shows how; run the program anew"),
        ));
    }
    Ok(verdict)
}

/// Writes down what was decided about a direct call; the calls of runs are in their journals.
async fn audited(
    tools: &Toolset,
    context: &Context,
    tool: &Tool,
    arguments: &RawValue,
    decision: Decision,
) -> Result<(), Problem> {
    let Authority::Direct(direct) = &context.authority else { return Ok(()) };
    let call = DirectCall {
        at: now_ms(),
        principal: context.principal.clone(),
        tool: tool.id.clone(),
        definition: tool.definition.digest.clone(),
        arguments: Given::of(arguments),
        by: direct.clone(),
        decision,
    };
    tools.call_audit.note(call).await
}

/// What a call may change, for whoever keeps what was read; nothing where it is known to read only.
fn reach(tool: &Tool, verdict: &Verdict) -> Option<Reach> {
    let anywhere = if verdict.isolated { Reach::Only(tool.id.server.clone()) } else { Reach::Everywhere };
    (!verdict.read_only).then_some(anywhere)
}

async fn checked(
    tools: &Toolset,
    context: &Context,
    tool: &Tool,
    arguments: &RawValue,
    passing: Fields<'_>,
) -> Outcome {
    let allowed = authorize(tools, context, tool, arguments);
    if let Err(NotAllowed::Refused(problem)) = allowed {
        let decision = Decision::Denied(problem.message.clone());
        return match audited(tools, context, tool, arguments, decision).await {
            Ok(()) => Outcome::NotSent(problem),
            Err(unwritten) => Outcome::NotSent(unwritten),
        };
    }
    // Before anybody is asked: a call that cannot be made is no question.
    if let Err(problem) = tools.validators.check(&tool.id, &tool.definition, arguments) {
        return Outcome::NotSent(problem);
    }
    let verdict = match allowed {
        Ok(verdict) => verdict,
        Err(not_allowed) => return not_allowed.outcome(),
    };
    if let Err(unwritten) = audited(tools, context, tool, arguments, Decision::of(&verdict)).await {
        return Outcome::NotSent(unwritten);
    }
    match tools.builtin(tool.id.server.as_str()) {
        Some(server) => {
            let _writing = reach(tool, &verdict).map(|reach| tools.epoch.writing(reach));
            let work = server.call_watched(&tool.id.tool, arguments, context.witness.as_ref());
            tokio::select! {
                result = work => match result {
                    Ok(result) => ended(result),
                    Err(unknown) => Outcome::NotSent(Problem::new(Code::UnknownTool, unknown.to_string())),
                },
                () = context.cancel.cancelled() => {
                    Outcome::Unknown(Problem::new(Code::Cancelled, format!("the call to `{}` was cancelled", tool.id)))
                }
            }
        }
        None => downstream(tools, context, (tool, verdict), arguments, &passing).await,
    }
}

async fn downstream(
    tools: &Toolset,
    context: &Context,
    (tool, mut verdict): (&Tool, Verdict),
    arguments: &RawValue,
    passing: &Fields<'_>,
) -> Outcome {
    let Some(slot) = tools.servers.get(&tool.id.server) else {
        return Outcome::NotSent(Problem::new(
            Code::UnknownServer,
            format!("server `{}` is gone", tool.id.server),
        ));
    };
    let within = |time: Duration| {
        let until = Instant::now() + time;
        context.deadline.map_or(until, |own| own.min(until))
    };
    let _in_use = slot.in_use();
    // A connection that was already gone has taken nothing, so one more try is safe.
    for last in [false, true] {
        let connection = match slot.connection(within(slot.settings().start_timeout), &context.cancel).await {
            Ok(connection) => connection,
            Err(unavailable) => return Outcome::NotSent(unavailable.0),
        };
        // Starting it may have told of other definitions than those the call was allowed by.
        match still_allowed(tools, context, &slot, tool, arguments).await {
            Ok(now) => verdict = now.unwrap_or(verdict),
            Err(not_allowed) => return not_allowed.outcome(),
        }
        if let Some(wait) = slot.rate_limited() {
            return not_sent(&slot, &NotSent::RateLimited(wait));
        }
        let mut params = passing.clone();
        params.set("name", raw(&tool.id.tool));
        params.lend("arguments", arguments);
        let call = Call {
            method: "tools/call",
            params,
            mirrored: mirrored(tool, arguments),
            caller: &context.caller,
            deadline: within(slot.settings().call_timeout),
            cancel: &context.cancel,
        };
        let _writing = reach(tool, &verdict).map(|reach| tools.epoch.writing(reach));
        match connection.request(call).await {
            Ok(result) => {
                slot.answered();
                return ended(result);
            }
            Err(Failure::Rpc(error)) => {
                slot.answered();
                return Outcome::ToolError(ToolError::Rpc(error));
            }
            Err(Failure::NotSent(NotSent::Closed(_) | NotSent::SessionEnded)) if !last => {}
            Err(Failure::NotSent(reason)) => return not_sent(&slot, &reason),
            Err(failure @ Failure::Unknown(_)) => {
                return Outcome::Unknown(slot.problem(&failure));
            }
        }
    }
    not_sent(&slot, &NotSent::Closed("it ended twice".to_owned()))
}

/// Whether the tool is still what it was and may still be called, now that its server runs. Says what the rules say of it
/// where that had to be asked again: what a tool says of itself need not be known where it changes nothing.
async fn still_allowed(
    tools: &Toolset,
    context: &Context,
    slot: &Slot,
    tool: &Tool,
    arguments: &RawValue,
) -> Result<Option<Verdict>, NotAllowed> {
    if let Authority::Direct(direct) = &context.authority
        && slot.settings().definitions == Definitions::Follow
        && (direct.asked_by_client.is_some() || is_auto_in_any_case(tools, &tool.id))
    {
        return Ok(None);
    }
    if !tools.settled(slot).await {
        let text = format!("`{}` may have changed, and its server does not say how", tool.id);
        let problem = Problem::new(Code::ToolChanged, text).hint("`pml doctor` checks the server");
        return Err(NotAllowed::Refused(problem));
    }
    let snapshot = tools.catalogue.snapshot();
    let tool = found(&snapshot, context, &tool.id).map_err(NotAllowed::Refused)?;
    authorize(tools, context, tool, arguments).map(Some)
}

/// Whether nobody has to be asked about a tool, whatever it may come to say of itself.
fn is_auto_in_any_case(tools: &Toolset, tool: &ToolId) -> bool {
    let worst = Annotations {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(false),
        open_world_hint: Some(true),
    };
    tools.policy().of(tool, &worst).mode == approve::Mode::Auto
}

fn not_sent(slot: &Slot, reason: &NotSent) -> Outcome {
    if let NotSent::RateLimited(wait) = reason {
        slot.limit_rate(*wait);
    }
    Outcome::NotSent(slot.problem(&Failure::NotSent(reason.clone())))
}

fn mirrored(tool: &Tool, arguments: &RawValue) -> Vec<(String, String)> {
    if tool.mirrored.is_empty() {
        return Vec::new();
    }
    let arguments = serde_json::from_str(arguments.get()).unwrap_or_default();
    tool.mirrored.iter().filter_map(|m| Some((m.header.clone(), m.value(&arguments)?))).collect()
}

fn ended(result: Box<RawValue>) -> Outcome {
    // Looked for as text first: most results are no errors and some are large.
    let is_error = result.get().contains("\"isError\"")
        && Fields::parse(result.get()).is_ok_and(|fields| fields.read("isError") == Some(true));
    if is_error { Outcome::ToolError(ToolError::Result(result)) } else { Outcome::Ok(result) }
}
