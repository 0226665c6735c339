//! Asks the user of a client for the approval that a run needs, where the client supports elicitation and its user's
//! answer counts.
//!
//! A client with a session is asked while its request waits. A stateless client gets the question as the result of
//! its request, with a `requestState` that names the run and the question. The state carries a signature over run,
//! question, principal and request that only this installation can make. The retry continues that run, in another
//! process too; nothing is planned again.

use std::sync::Arc;

use pml_mcp::server::IncomingRequest;
use pml_mcp::{Era, RpcError};
use pml_model::Role;
use pml_model::json::{Fields, canonical_json, raw};
use pml_model::question::{Answer, ApprovalDecision, Question};
use pml_model::{Digest, RunId};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::reply::{self, status_result};
use super::wait::resume_and_wait;
use super::{ClientAccess, client_name, task_reply};
use crate::app::App;
use crate::approve::words;
use crate::flow::{self, AnswerChannel};
use crate::problem::{ErrorCode, Problem};
use crate::report::RunStatus;

/// The longest question, in characters, that a client is asked to show. A client may cut off a longer text, and
/// nobody may approve what they have not seen.
const MAX_CHARACTERS: usize = 4_000;
/// The prefix of a `requestState` made by PML.
const OUR_STATE: &str = "pmlrun.";
/// The key of the question in `inputRequests`.
const QUESTION: &str = "q1";

/// Which request started a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunOrigin {
    /// The request that is being answered.
    ThisRequest,
    /// An earlier request for the same work: this request must not withdraw its question.
    EarlierRequest,
}

/// As [`ask_user`], for a request that may have started the run. A client that cancels such a request wants no run,
/// even one that waits for a person. A client that merely disconnected may come back and find the question.
///
/// # Errors
/// As [`ask_user`], or the run cannot be cancelled.
pub(super) async fn ask_user_or_cancel(
    app: &Arc<App>,
    request: &IncomingRequest,
    door: &ClientAccess,
    id: &RunId,
    standing: RunStatus,
    began: RunOrigin,
) -> Result<AskOutcome, Problem> {
    let settled = ask_user(app, request, door, id, standing).await;
    match request.cancelled_by_sender.is_cancelled() && began == RunOrigin::ThisRequest {
        true => flow::cancel(app, &request.client.principal, id).await.map(AskOutcome::Status),
        false => settled,
    }
}

/// Asks this client's user every question they can answer, resumes the run after each answer, and returns the status.
///
/// # Errors
/// An answer cannot be stored, or the run cannot be resumed.
pub(super) async fn ask_user(
    app: &Arc<App>,
    request: &IncomingRequest,
    door: &ClientAccess,
    id: &RunId,
    mut standing: RunStatus,
) -> Result<AskOutcome, Problem> {
    while let RunStatus::Waiting { question: Some((name, question)), .. } = &standing {
        let by = client_answerer(app, request, door);
        let Some(params) = elicitation_params(app, request, id, question, &by) else { break };
        if request.caller.era() == Era::Modern {
            return input_required(app, request, id, name, &params).await.map(AskOutcome::InputRequired);
        }
        let answer = match request.caller.ask("elicitation/create", Some(raw(&params))).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::debug!(%error, "a client's user was not asked");
                break;
            }
        };
        let Some(decision) = decision(&answer) else { break };
        let reserved = app.runs.reserve(id);
        store_decision(app, id, name, decision, &by).await?;
        standing = resume_and_wait(app, (request, door.patience), id, name, reserved).await?;
    }
    Ok(AskOutcome::Status(standing))
}

/// The outcome of asking a client's user.
pub(super) enum AskOutcome {
    /// Every question that this client's user can answer is answered, or they declined to answer.
    Status(RunStatus),
    /// The question, as the result of a stateless client's request.
    InputRequired(Box<RawValue>),
}

impl AskOutcome {
    /// The status of the run, if that is what came of it.
    pub(super) fn status(&self) -> Option<&RunStatus> {
        match self {
            AskOutcome::Status(standing) => Some(standing),
            _ => None,
        }
    }

    /// The tool result for the client. For the run of a direct call that is the result of its tool.
    pub(super) fn to_tool_result(&self, id: &RunId) -> Box<RawValue> {
        match self {
            AskOutcome::Status(RunStatus::Finished(report)) => {
                report.tool_result().map_or_else(|| reply::report_result(id, report), ToOwned::to_owned)
            }
            AskOutcome::Status(standing) => status_result(id, standing),
            AskOutcome::InputRequired(question) => question.clone(),
        }
    }

    /// The tool result for the client that called a tool by name, when that call became a run.
    pub(super) fn told_of_direct_call(&self, id: &RunId) -> Box<RawValue> {
        match self {
            AskOutcome::Status(standing) => reply::of_direct_call(id, standing),
            AskOutcome::InputRequired(question) => question.clone(),
        }
    }
}

/// Answers a request that carries a `requestState` of ours: the retry of a request whose result was a question. A
/// request repeated because its reply was lost gets the status of the run. `tool` is the name that the request calls.
pub(super) async fn answer_retry(
    app: &Arc<App>,
    request: &IncomingRequest,
    door: &ClientAccess,
    tool: &str,
) -> Option<Result<Box<RawValue>, RpcError>> {
    // A cheap text search first: few requests carry a state and some are large.
    if !request.params.get().contains(OUR_STATE) {
        return None;
    }
    let params = Fields::parse(request.params.get()).ok()?;
    let state: String = params.read("requestState").filter(|state: &String| state.starts_with(OUR_STATE))?;
    let is_direct = !tool.starts_with("pml_");
    let (id, name) = match verify_state(app, request, &state).await {
        Ok(named) => named,
        // The server behind the tool may be a PML too, and the state its own.
        Err(_) if is_direct && !names_own_run(app, &state).await => return None,
        Err(problem) => return Some(Err(problem.to_rpc())),
    };
    let answered = async {
        let responses = params.get("inputResponses").map_or("{}", RawValue::get);
        let responses = Fields::parse(responses).unwrap_or_default();
        let standing = match responses.get(QUESTION) {
            None => flow::run_status(app, &request.client.principal, &id).await?,
            Some(answer) => match decision(answer) {
                Some(decision) => {
                    let reserved = app.runs.reserve(&id);
                    store_decision(app, &id, &name, decision, &client_answerer(app, request, door)).await?;
                    resume_and_wait(app, (request, door.patience), &id, &name, reserved).await?
                }
                // The user dismissed the dialog: the question stays open.
                None => {
                    let standing = flow::run_status(app, &request.client.principal, &id).await?;
                    return Ok(AskOutcome::Status(standing));
                }
            },
        };
        ask_user(app, request, door, &id, standing).await
    };
    Some(Ok(match answered.await {
        Ok(settled) => match task_reply::created(app, request, &id, settled.status()).await {
            Some(task) => task,
            None if is_direct => settled.told_of_direct_call(&id),
            None => settled.to_tool_result(&id),
        },
        Err(problem) if is_direct => problem.to_typed_tool_result(),
        Err(problem) => problem.to_tool_result(),
    }))
}

/// Whether a state names a run of ours, whether or not its signature is right.
async fn names_own_run(app: &App, state: &str) -> bool {
    let named = state.strip_prefix(OUR_STATE).and_then(|rest| rest.split('.').next());
    let Some(Ok(id)) = named.map(RunId::parse) else { return false };
    !matches!(app.store.run_principal(&id).await, Ok(None))
}

/// The channel of an answer from this client. Only its key can say that a person sits in front of it.
pub(super) fn client_answerer(app: &App, request: &IncomingRequest, door: &ClientAccess) -> AnswerChannel {
    let key = request.client.key.and_then(|key| app.keys.get(key));
    AnswerChannel::Client {
        name: client_name(app, &request.client),
        person: key.is_some_and(|key| key.interactive),
        door: door.default_answerer,
        role: door.role,
    }
}

pub(super) async fn store_decision(
    app: &Arc<App>,
    id: &RunId,
    name: &str,
    decision: ApprovalDecision,
    by: &AnswerChannel,
) -> Result<(), Problem> {
    match flow::answer(app, id, name, Answer::Approval(decision), by).await {
        // Another channel answered first, and the run may have continued.
        Err(problem) if matches!(problem.code, ErrorCode::AlreadyAnswered | ErrorCode::Gone) => Ok(()),
        other => other,
    }
}

/// The parameters of `elicitation/create`; `None` where the client cannot ask or its user's answer does not count.
pub(super) fn elicitation_params(
    app: &App,
    request: &IncomingRequest,
    id: &RunId,
    question: &Question,
    by: &AnswerChannel,
) -> Option<Value> {
    let Question::Approval(asked) = question else { return None };
    let counts =
        !flow::needs_person(app, question, by) || matches!(by, AnswerChannel::Client { person: true, .. });
    let able = Fields::parse(request.caller.capabilities().get())
        .is_ok_and(|capabilities| capabilities.get("elicitation").is_some());
    let message = format!("{id} {}", words::approval(asked));
    let may = matches!(by, AnswerChannel::Client { role, .. } if *role >= Role::Approver);
    if !may || !counts || !able || message.chars().nth(MAX_CHARACTERS).is_some() {
        return None;
    }
    Some(json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": { "type": "string", "title": "Allow this?", "enum": ["allow", "deny"] },
                "reason": { "type": "string", "title": "Why (for the agent)" }
            },
            "required": ["decision"]
        }
    }))
}

/// The decision in the client's reply; `None` where the user dismissed the dialog.
pub(super) fn decision(answer: &RawValue) -> Option<ApprovalDecision> {
    let fields = Fields::parse(answer.get()).ok()?;
    let content: Value = fields.read("content").unwrap_or_default();
    let decision = |approved, reason: Option<&str>| ApprovalDecision {
        approved,
        reason: reason.map(str::to_owned).filter(|reason| !reason.is_empty()),
        any_arguments: None,
        remember: None,
        by: String::new(),
    };
    match (fields.read::<String>("action").as_deref(), content["decision"].as_str()) {
        (Some("accept"), Some("allow")) => Some(decision(true, None)),
        (Some("accept"), Some("deny")) => Some(decision(false, content["reason"].as_str())),
        (Some("decline"), _) => Some(decision(false, None)),
        (_, _) => None,
    }
}

/// The question as the result of a stateless client's request.
async fn input_required(
    app: &App,
    request: &IncomingRequest,
    id: &RunId,
    name: &str,
    params: &Value,
) -> Result<Box<RawValue>, Problem> {
    let mark = sign_state(app, request, id, name).await?;
    let mut requests = Fields::default();
    requests.set(QUESTION, raw(&json!({ "method": "elicitation/create", "params": params })));
    let mut result = Fields::default();
    result.set("resultType", raw(&"input_required"));
    result.set("inputRequests", requests.to_raw());
    result.set("requestState", raw(&format!("{OUR_STATE}{id}.{name}.{mark}")));
    Ok(result.to_raw())
}

/// The run and the question that a state names, if we signed it for this principal and this request.
async fn verify_state(app: &App, request: &IncomingRequest, state: &str) -> Result<(RunId, String), Problem> {
    let unknown = || {
        Problem::new(ErrorCode::InvalidRequest, "`requestState` is not one that was given for this request")
            .hint("send the request anew without it")
    };
    let mut parts = state.strip_prefix(OUR_STATE).unwrap_or_default().splitn(3, '.');
    let (Some(id), Some(name), Some(given)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(unknown());
    };
    let id = RunId::parse(id).map_err(|_| unknown())?;
    // Comparing digests keeps the timing from revealing anything about the signature.
    let right =
        Digest::of(sign_state(app, request, &id, name).await?.as_bytes()) == Digest::of(given.as_bytes());
    if right { Ok((id, name.to_owned())) } else { Err(unknown()) }
}

async fn sign_state(app: &App, request: &IncomingRequest, id: &RunId, name: &str) -> Result<String, Problem> {
    let mut asked = Fields::parse(request.params.get()).unwrap_or_default();
    for key in ["_meta", "inputResponses", "requestState"] {
        asked.remove(key);
    }
    let asked = asked.to_raw();
    let asked = canonical_json(asked.get()).unwrap_or_else(|_| asked.get().to_owned());
    let words = [id.to_string(), name.to_owned(), request.client.principal.0.clone(), asked];
    Ok(app.store.mark_request(&words).await?)
}
