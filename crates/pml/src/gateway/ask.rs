//! Asks the user of a client what a run wants to know, where the client can ask and its user's word counts.
//!
//! A client with a session is asked while its request waits. A stateless one gets the question for its result, with a
//! state that names the run, its question and whose it is, under a mark that only this program makes: the retry goes on
//! with that run, also in another process, and nothing is planned anew.

use std::sync::Arc;

use pml_mcp::server::Incoming;
use pml_mcp::{Era, RpcError};
use pml_model::json::{Fields, canonical, raw};
use pml_model::question::{Answer, Decision, Question};
use pml_model::{Digest, RunId};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::reply::{self, reply};
use super::{Door, client_name, direct};
use crate::app::App;
use crate::approve::words;
use crate::flow::{self, By};
use crate::problem::{Code, Problem};
use crate::report::Standing;

/// The longest question a client is asked to show: nobody may allow what they have not seen, and what a client cuts
/// off is not known.
const MAX_CHARACTERS: usize = 4_000;
/// How a state of ours begins.
const OUR_STATE: &str = "pmlrun.";
/// What the question is called in a request to a stateless client.
const QUESTION: &str = "q1";

/// Which request a run came of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Began {
    /// The one that is being answered.
    ByThisRequest,
    /// An earlier one that asked for the same: its question is not this request's to take back.
    ByEarlierRequest,
}

/// As [`settle`], for a request that asked for a run. Whoever takes such a request back wants no run of it, also where it
/// waits for a person. One who is gone may come back and find the question.
///
/// # Errors
/// As of [`settle`], or the run cannot be ended.
pub(super) async fn settle_or_cancel(
    app: &Arc<App>,
    request: &Incoming,
    door: &Door,
    id: &RunId,
    standing: Standing,
    began: Began,
) -> Result<Settled, Problem> {
    let settled = settle(app, request, door, id, standing).await;
    match request.taken_back.is_cancelled() && began == Began::ByThisRequest {
        true => flow::cancel(app, &request.client.principal, id).await.map(Settled::Stands),
        false => settled,
    }
}

/// How a run stands once what this client's user can answer is answered.
///
/// # Errors
/// An answer cannot be stored, or the run cannot be gone on with.
pub(super) async fn settle(
    app: &Arc<App>,
    request: &Incoming,
    door: &Door,
    id: &RunId,
    mut standing: Standing,
) -> Result<Settled, Problem> {
    while let Standing::Waiting { question: Some((name, question)), .. } = &standing {
        let by = by(app, request, door);
        let Some(params) = to_ask(app, request, id, question, &by) else { break };
        if request.caller.era() == Era::Modern {
            return input_required(app, request, id, name, &params).await.map(Settled::Asks);
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
        take(app, id, name, decision, &by).await?;
        standing = super::runs::go_on(app, request, id, name, reserved).await?;
    }
    Ok(Settled::Stands(standing))
}

/// What became of asking.
pub(super) enum Settled {
    /// All that this client's user can answer is answered, or they do not want to.
    Stands(Standing),
    /// The question is the result.
    Asks(Box<RawValue>),
}

impl Settled {
    /// As the client is told of it. Of a direct call that is what its tool answered.
    pub(super) fn told(&self, id: &RunId) -> Box<RawValue> {
        match self {
            Settled::Stands(Standing::Over(report)) => {
                report.tool_result().map_or_else(|| reply::over(id, report), ToOwned::to_owned)
            }
            Settled::Stands(standing) => reply(id, standing),
            Settled::Asks(question) => question.clone(),
        }
    }
}

/// Answers a request that carries a state of ours: the retry of one whose result was a question. One that is repeated
/// because its reply was lost hears how the run stands. `tool` is what the request calls.
pub(super) async fn retried(
    app: &Arc<App>,
    request: &Incoming,
    door: &Door,
    tool: &str,
) -> Option<Result<Box<RawValue>, RpcError>> {
    // Looked for as text first: few requests carry one and some are large.
    if !request.params.get().contains(OUR_STATE) {
        return None;
    }
    let params = Fields::parse(request.params.get()).ok()?;
    let state: String = params.read("requestState").filter(|state: &String| state.starts_with(OUR_STATE))?;
    let is_direct = !tool.starts_with("pml_");
    let (id, name) = match opened(app, request, &state).await {
        Ok(named) => named,
        // A server behind the tool may be a PML too, and the state be its own.
        Err(_) if is_direct && !is_of_ours(app, &state).await => return None,
        Err(problem) => return Some(Err(problem.to_rpc())),
    };
    let answered = async {
        let responses = params.get("inputResponses").map_or("{}", RawValue::get);
        let responses = Fields::parse(responses).unwrap_or_default();
        let standing = match responses.get(QUESTION) {
            None => flow::standing(app, &request.client.principal, &id).await?,
            Some(answer) => match decision(answer) {
                Some(decision) => {
                    let reserved = app.runs.reserve(&id);
                    take(app, &id, &name, decision, &by(app, request, door)).await?;
                    super::runs::go_on(app, request, &id, &name, reserved).await?
                }
                // Dismissed: the question stays open.
                None => {
                    let standing = flow::standing(app, &request.client.principal, &id).await?;
                    return Ok(Settled::Stands(standing));
                }
            },
        };
        settle(app, request, door, &id, standing).await
    };
    Some(Ok(match answered.await {
        Ok(settled) if is_direct => direct::told(&settled, &id),
        Ok(settled) => settled.told(&id),
        Err(problem) if is_direct => problem.to_typed_tool_result(),
        Err(problem) => problem.to_tool_result(),
    }))
}

/// Whether a state names a run of ours, though perhaps not rightly.
async fn is_of_ours(app: &App, state: &str) -> bool {
    let named = state.strip_prefix(OUR_STATE).and_then(|rest| rest.split('.').next());
    let Some(Ok(id)) = named.map(RunId::parse) else { return false };
    !matches!(app.store.whose(&id).await, Ok(None))
}

/// By whom an answer of this client's is: its key says whether a person sits in front of it, and nothing else does.
fn by(app: &App, request: &Incoming, door: &Door) -> By {
    let key = request.client.key.and_then(|key| app.keys.get(key));
    By::Client {
        name: client_name(app, &request.client),
        person: key.is_some_and(|key| key.interactive),
        door: door.by,
    }
}

async fn take(app: &Arc<App>, id: &RunId, name: &str, decision: Decision, by: &By) -> Result<(), Problem> {
    match flow::answer(app, id, name, Answer::Approval(decision), by).await {
        // Somebody else was quicker, by another way, and the run may have gone on.
        Err(problem) if matches!(problem.code, Code::AlreadyAnswered | Code::Gone) => Ok(()),
        other => other,
    }
}

/// What the client's user is asked, if it can be asked and its user's word counts.
fn to_ask(app: &App, request: &Incoming, id: &RunId, question: &Question, by: &By) -> Option<Value> {
    let Question::Approval(asked) = question else { return None };
    let counts = !flow::needs_person(app, question, by) || matches!(by, By::Client { person: true, .. });
    let able = Fields::parse(request.caller.capabilities().get())
        .is_ok_and(|capabilities| capabilities.get("elicitation").is_some());
    let message = format!("{id} {}", words::approval(asked));
    if !counts || !able || message.chars().nth(MAX_CHARACTERS).is_some() {
        return None;
    }
    Some(json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": { "type": "string", "title": "May it?", "enum": ["allow", "deny"] },
                "reason": { "type": "string", "title": "Why (for the agent)" }
            },
            "required": ["decision"]
        }
    }))
}

/// What the user said; nothing where they did not say.
fn decision(answer: &RawValue) -> Option<Decision> {
    let fields = Fields::parse(answer.get()).ok()?;
    let content: Value = fields.read("content").unwrap_or_default();
    let decision = |approved, reason: Option<&str>| Decision {
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

/// A question as the result of a stateless client's request.
async fn input_required(
    app: &App,
    request: &Incoming,
    id: &RunId,
    name: &str,
    params: &Value,
) -> Result<Box<RawValue>, Problem> {
    let mark = mark(app, request, id, name).await?;
    let mut requests = Fields::default();
    requests.set(QUESTION, raw(&json!({ "method": "elicitation/create", "params": params })));
    let mut result = Fields::default();
    result.set("resultType", raw(&"input_required"));
    result.set("inputRequests", requests.to_raw());
    result.set("requestState", raw(&format!("{OUR_STATE}{id}.{name}.{mark}")));
    Ok(result.to_raw())
}

/// The run and the question that a state names, if it is ours, the asker's and of this request.
async fn opened(app: &App, request: &Incoming, state: &str) -> Result<(RunId, String), Problem> {
    let unknown = || {
        Problem::new(Code::InvalidRequest, "`requestState` is not one that was given for this request")
            .hint("send the request anew without it")
    };
    let mut parts = state.strip_prefix(OUR_STATE).unwrap_or_default().splitn(3, '.');
    let (Some(id), Some(name), Some(given)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(unknown());
    };
    let id = RunId::parse(id).map_err(|_| unknown())?;
    // Compared as digests, so that how long it takes tells nothing of the mark.
    let right = Digest::of(mark(app, request, &id, name).await?.as_bytes()) == Digest::of(given.as_bytes());
    if right { Ok((id, name.to_owned())) } else { Err(unknown()) }
}

async fn mark(app: &App, request: &Incoming, id: &RunId, name: &str) -> Result<String, Problem> {
    let mut asked = Fields::parse(request.params.get()).unwrap_or_default();
    for key in ["_meta", "inputResponses", "requestState"] {
        asked.remove(key);
    }
    let asked = asked.to_raw();
    let asked = canonical(asked.get()).unwrap_or_else(|_| asked.get().to_owned());
    let words = [id.to_string(), name.to_owned(), request.client.principal.0.clone(), asked];
    Ok(app.store.mark_request(&words).await?)
}
