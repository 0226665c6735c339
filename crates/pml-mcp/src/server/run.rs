//! One request being served, and what happens while it is.
//!
//! The handler runs in a task of its own. What it tells or asks the client goes out in the form of
//! the client's era; a question to a stateless client becomes the result, and the task waits until
//! the client comes back with the answer.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pml_model::Digest;
use pml_model::json::{Fields, empty_object, raw};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::caller::{Caller, THINKING_TIME, ToCaller};
use crate::message::{self, Id, Request, RpcError, code};
use crate::pieces::Pieces;
use crate::protocol::{self, Era};
use crate::server::envelope::Sender;
use crate::server::session::{CallOff, Session};
use crate::server::{Identity, Incoming, Server};

/// A request under way. Dropping it cancels it.
#[derive(Debug)]
pub(crate) struct Running {
    method: String,
    era: Era,
    identity: Identity,
    messages: mpsc::Receiver<ToCaller>,
    /// Questions the client came back without an answer to.
    unanswered: Vec<Question>,
    task: JoinHandle<Result<Box<RawValue>, RpcError>>,
    _cancel: DropGuard,
}

/// What comes out of a request.
#[derive(Debug)]
pub(crate) enum Output {
    /// A notification or question, as a message for the client.
    Message(String),
    /// The end of it.
    Result(Result<Pieces, RpcError>),
}

/// The mark of a state that is ours; any other belongs to the server behind the tool.
const OUR_STATE: &str = "pml1.";
/// How many requests may wait for their clients.
const MAX_SUSPENDED: usize = 1_000;

impl Server {
    /// Starts serving a request, or takes one up again that waited for its client.
    pub(crate) fn start(
        &self,
        request: &Request,
        sender: Sender,
        off: &CallOff,
    ) -> Result<Running, RpcError> {
        let params = request.params.clone().unwrap_or_else(empty_object);
        let identity = Identity { principal: sender.client.principal.clone(), key: sender.client.key };
        if let Some(state) = our_state(&params) {
            return self.suspended.resume(&state, &params, &asked(request), &identity);
        }
        let era = sender.standing.era;
        let (caller, messages) = Caller::new(sender.standing);
        // A token of its own: that a request has ended must not look as if its sender had cancelled it.
        let (cancel, taken_back) = (off.cancel.child_token(), off.word.clone());
        let guard = cancel.clone().drop_guard();
        let method = request.method.clone();
        let incoming =
            Incoming { method: method.clone(), params, client: sender.client, caller, cancel, taken_back };
        let task = tokio::spawn(self.handler.handle(incoming));
        Ok(Running { method, era, identity, messages, unanswered: Vec::new(), task, _cancel: guard })
    }

    /// Carries a request to its end, handing out what it says on the way. Ends early, cancelling
    /// it, when nobody takes what it says any more.
    pub(crate) async fn drive(
        &self,
        mut running: Running,
        request: &Request,
        session: Option<&Session>,
        cancel: &CancellationToken,
        out: &mpsc::Sender<Output>,
    ) {
        if !running.unanswered.is_empty() {
            let result = self.suspended.suspend(running, asked(request));
            drop(out.send(Output::Result(Ok(result.into()))).await);
            return;
        }
        let mut asked_here = Asked { session, questions: Vec::new() };
        let result = loop {
            tokio::select! {
                biased;
                () = out.closed() => return,
                // Also for a request that was taken up again, whose own token is an earlier one's.
                () = cancel.cancelled() => return,
                Some(message) = running.messages.recv() => match (message, session) {
                    (ToCaller::Notify { method, params }, _) => {
                        let line = message::notification(&method, params.as_deref());
                        if out.send(Output::Message(line)).await.is_err() {
                            return;
                        }
                    }
                    (ToCaller::Ask { method, params, answer }, Some(session)) => {
                        let id = session.ask(answer);
                        asked_here.questions.push(id.clone());
                        let line = message::request(&id, &method, params.as_deref());
                        if out.send(Output::Message(line)).await.is_err() {
                            return;
                        }
                    }
                    (ToCaller::Ask { method, params, answer }, None) => {
                        running.unanswered.push(Question { method, params, answer });
                        let result = self.suspended.suspend(running, asked(request));
                        drop(out.send(Output::Result(Ok(result.into()))).await);
                        return;
                    }
                },
                ended = &mut running.task => break ended.unwrap_or_else(|error| {
                    tracing::error!(%error, method = running.method, "a request failed unexpectedly");
                    Err(RpcError::new(code::INTERNAL_ERROR, "the gateway failed; its log says more"))
                }),
            }
        };
        let result = result.map(|result| match running.era {
            Era::Modern => protocol::modern_result(&running.method, result, protocol::me()),
            Era::Legacy => result.into(),
        });
        // A client that is gone does not miss its answer.
        drop(out.send(Output::Result(result)).await);
    }
}

/// Questions asked for one request; withdrawn with it, so that nobody waits for their answers.
struct Asked<'a> {
    session: Option<&'a Session>,
    questions: Vec<Id>,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.session {
            self.questions.iter().for_each(|id| session.withdraw(id));
        }
    }
}

fn our_state(params: &RawValue) -> Option<String> {
    // Looked for as text first: few requests carry one and some are large.
    if !params.get().contains(OUR_STATE) {
        return None;
    }
    let state: String = Fields::parse(params.get()).ok()?.read("requestState")?;
    state.starts_with(OUR_STATE).then_some(state)
}

/// What a request asks for, without what changes from round to round.
fn asked(request: &Request) -> Digest {
    let mut fields = Fields::parse(request.params.as_deref().map_or("{}", RawValue::get)).unwrap_or_default();
    for key in ["_meta", "inputResponses", "requestState"] {
        fields.remove(key);
    }
    let raw = fields.to_raw();
    let text = pml_model::json::canonical(raw.get()).unwrap_or_else(|_| raw.get().to_owned());
    Digest::of(format!("{} {text}", request.method).as_bytes())
}

#[derive(Debug)]
struct Question {
    method: String,
    params: Option<Box<RawValue>>,
    answer: oneshot::Sender<Result<Box<RawValue>, RpcError>>,
}

/// Requests that wait for stateless clients to come back with answers.
#[derive(Debug, Default)]
pub(crate) struct Suspended {
    waiting: Mutex<HashMap<String, Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    running: Running,
    asked: Digest,
    questions: Vec<Question>,
    until: Instant,
}

impl Suspended {
    /// Puts a request aside; gives the result that carries its questions to the client.
    fn suspend(&self, mut running: Running, asked: Digest) -> Box<RawValue> {
        let mut questions = std::mem::take(&mut running.unanswered);
        while let Ok(message) = running.messages.try_recv() {
            if let ToCaller::Ask { method, params, answer } = message {
                questions.push(Question { method, params, answer });
            }
        }
        let state = new_state();
        let result = input_required(&state, &questions);
        let mut waiting = self.lock();
        let now = Instant::now();
        waiting.retain(|_, other| other.until > now);
        if waiting.len() >= MAX_SUSPENDED
            && let Some(oldest) =
                waiting.iter().min_by_key(|(_, other)| other.until).map(|(state, _)| state.clone())
        {
            waiting.remove(&oldest);
        }
        waiting.insert(state, Waiting { running, asked, questions, until: now + THINKING_TIME });
        result
    }

    /// Takes a request up again with the client's answers. Unanswered questions are asked again.
    fn resume(
        &self,
        state: &str,
        params: &RawValue,
        asked: &Digest,
        identity: &Identity,
    ) -> Result<Running, RpcError> {
        let unknown = || {
            RpcError::new(
                code::INVALID_PARAMS,
                "`requestState` is unknown or has expired; send the request anew without it",
            )
        };
        let mut waiting = {
            let mut all = self.lock();
            let found = all.get(state).ok_or_else(unknown)?;
            if found.until < Instant::now() || found.asked != *asked || found.running.identity != *identity {
                return Err(unknown());
            }
            all.remove(state).ok_or_else(unknown)?
        };
        let text = Fields::parse(params.get())
            .ok()
            .and_then(|f| f.get("inputResponses").map(|r| r.get().to_owned()));
        let answers = text.as_deref().and_then(|text| Fields::parse(text).ok()).unwrap_or_default();
        for (index, question) in waiting.questions.into_iter().enumerate() {
            match answers.get(&key(index)) {
                Some(answer) => {
                    if question.answer.send(Ok(answer.to_owned())).is_err() {
                        tracing::debug!("an answer came after its question was withdrawn");
                    }
                }
                None => waiting.running.unanswered.push(question),
            }
        }
        Ok(waiting.running)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(index: usize) -> String {
    format!("q{}", index + 1)
}

/// A state nobody can guess; what it stands for never leaves this process.
fn new_state() -> String {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    format!("{OUR_STATE}{}", URL_SAFE_NO_PAD.encode(bytes))
}

fn input_required(state: &str, questions: &[Question]) -> Box<RawValue> {
    let mut requests = Fields::default();
    for (index, question) in questions.iter().enumerate() {
        let mut request = Fields::default();
        request.set("method", raw(&question.method));
        if let Some(params) = &question.params {
            request.set("params", params.clone());
        }
        requests.set(key(index), request.to_raw());
    }
    let mut result = Fields::default();
    result.set("resultType", raw(&"input_required"));
    result.set("inputRequests", requests.to_raw());
    result.set("requestState", raw(&state));
    result.to_raw()
}
