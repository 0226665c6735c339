//! One request while it is served.
//!
//! The handler runs in its own task. Its notifications and questions go out in the form of the client's era. A
//! question to a stateless client becomes the result of the request, and the task is suspended until the client comes
//! back with the answer.

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

use crate::caller::{Caller, CallerMessage, THINKING_TIME};
use crate::message::{self, RequestId, RpcError, RpcRequest, code};
use crate::pieces::ChunkedText;
use crate::protocol::{self, Era};
use crate::server::envelope::RequestSender;
use crate::server::session::{McpSession, RequestCancellation};
use crate::server::{ClientIdentity, IncomingRequest, McpServer, RequestTransport, RequestWire};

/// An active request. Dropping it cancels the request.
#[derive(Debug)]
pub(crate) struct RunningRequest {
    method: String,
    era: Era,
    identity: ClientIdentity,
    messages: mpsc::Receiver<CallerMessage>,
    /// Questions that the client did not answer when it came back.
    unanswered: Vec<ClientQuestion>,
    task: JoinHandle<Option<Result<Box<RawValue>, RpcError>>>,
    _cancel: DropGuard,
}

/// Output of an active request.
#[derive(Debug)]
pub(crate) enum RequestOutput {
    /// A notification or question, encoded for the client.
    Message(String),
    /// The result, which ends the request.
    Result(Result<ChunkedText, RpcError>),
}

/// Prefix of the states that PML issues; any other state belongs to the server behind the tool.
const OUR_STATE: &str = "pml1.";
/// Maximum number of suspended requests.
const MAX_SUSPENDED: usize = 1_000;

impl McpServer {
    /// Starts serving a request, or resumes one that waited for its client.
    pub(crate) fn start_request(
        &self,
        request: &RpcRequest,
        sender: RequestSender,
        transport: RequestTransport,
        off: &RequestCancellation,
    ) -> Result<RunningRequest, RpcError> {
        let params = request.params.clone().unwrap_or_else(empty_object);
        let identity = ClientIdentity { principal: sender.client.principal.clone(), key: sender.client.key };
        if let Some(state) = our_state(&params) {
            return self.suspended.resume(&state, &params, &asked(request), &identity);
        }
        let era = sender.info.era;
        let (caller, messages) = Caller::new(sender.info);
        // A child token: the end of a request must not look like a cancellation by its sender.
        let (cancel, taken_back) = (off.cancel.child_token(), off.by_sender.clone());
        let guard = cancel.clone().drop_guard();
        let method = request.method.clone();
        let incoming = IncomingRequest {
            method: method.clone(),
            params,
            client: sender.client,
            caller,
            cancel,
            cancelled_by_sender: taken_back,
            wire: Some(RequestWire { id: request.id.to_string(), version: sender.version, transport }),
        };
        let task = self.requests.spawn(self.handler.handle(incoming));
        Ok(RunningRequest { method, era, identity, messages, unanswered: Vec::new(), task, _cancel: guard })
    }

    /// Drives a request to its end and passes its output on. Ends early and cancels the request when nobody receives
    /// the output any more.
    pub(crate) async fn drive_request(
        &self,
        mut running: RunningRequest,
        request: &RpcRequest,
        session: Option<&McpSession>,
        cancel: &CancellationToken,
        out: &mpsc::Sender<RequestOutput>,
    ) {
        if !running.unanswered.is_empty() {
            let result = self.suspended.suspend(running, asked(request));
            drop(out.send(RequestOutput::Result(Ok(result.into()))).await);
            return;
        }
        let mut asked_here = RequestQuestions { session, questions: Vec::new() };
        let result = loop {
            tokio::select! {
                // In this order: messages that precede the result must go out before it.
                biased;
                () = out.closed() => return,
                // Needed also for a resumed request, whose own token is that of an earlier request.
                () = cancel.cancelled() => return,
                Some(message) = running.messages.recv() => match (message, session) {
                    (CallerMessage::Notify { method, params }, _) => {
                        let line = message::encode_notification(&method, params.as_deref());
                        if out.send(RequestOutput::Message(line)).await.is_err() {
                            return;
                        }
                    }
                    (CallerMessage::Ask { method, params, answer }, Some(session)) => {
                        let id = session.register_question(answer);
                        asked_here.questions.push(id.clone());
                        let line = message::encode_request(&id, &method, params.as_deref());
                        if out.send(RequestOutput::Message(line)).await.is_err() {
                            return;
                        }
                    }
                    (CallerMessage::Ask { method, params, answer }, None) => {
                        running.unanswered.push(ClientQuestion { method, params, answer });
                        let result = self.suspended.suspend(running, asked(request));
                        drop(out.send(RequestOutput::Result(Ok(result.into()))).await);
                        return;
                    }
                },
                ended = &mut running.task => break match ended {
                    Ok(Some(result)) => result,
                    Ok(None) => Err(RpcError::new(code::INTERNAL_ERROR, "the gateway ends")),
                    Err(error) => {
                        tracing::error!(%error, method = running.method, "a request failed unexpectedly");
                        Err(RpcError::new(code::INTERNAL_ERROR, "the gateway failed; its log says more"))
                    }
                },
            }
        };
        if let (Err(_), Some(session)) = (&result, session) {
            session.on_request_refused(&request.method, request.params.as_deref());
        }
        let result = result.map(|result| match running.era {
            Era::Modern => {
                protocol::to_modern_result(&running.method, result, protocol::own_implementation())
            }
            Era::Legacy => result.into(),
        });
        // A client that is gone does not miss its reply.
        drop(out.send(RequestOutput::Result(result)).await);
    }
}

/// The questions of one request. They are withdrawn with it, so that nobody waits for their answers.
struct RequestQuestions<'a> {
    session: Option<&'a McpSession>,
    questions: Vec<RequestId>,
}

impl Drop for RequestQuestions<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.session {
            self.questions.iter().for_each(|id| session.withdraw_question(id));
        }
    }
}

fn our_state(params: &RawValue) -> Option<String> {
    // A text search comes first: few requests carry a state, and some are large.
    if !params.get().contains(OUR_STATE) {
        return None;
    }
    let state: String = Fields::parse(params.get()).ok()?.read("requestState")?;
    state.starts_with(OUR_STATE).then_some(state)
}

/// Digest of a request without the members that change from round to round.
fn asked(request: &RpcRequest) -> Digest {
    let mut fields = Fields::parse(request.params.as_deref().map_or("{}", RawValue::get)).unwrap_or_default();
    for key in ["_meta", "inputResponses", "requestState"] {
        fields.remove(key);
    }
    let raw = fields.to_raw();
    let text = pml_model::json::canonical_json(raw.get()).unwrap_or_else(|_| raw.get().to_owned());
    Digest::of(format!("{} {text}", request.method).as_bytes())
}

#[derive(Debug)]
struct ClientQuestion {
    method: String,
    params: Option<Box<RawValue>>,
    answer: oneshot::Sender<Result<Box<RawValue>, RpcError>>,
}

/// Requests that wait for stateless clients to come back with answers.
#[derive(Debug, Default)]
pub(crate) struct SuspendedRequests {
    waiting: Mutex<HashMap<String, SuspendedRequest>>,
}

#[derive(Debug)]
struct SuspendedRequest {
    running: RunningRequest,
    asked: Digest,
    questions: Vec<ClientQuestion>,
    until: Instant,
}

impl SuspendedRequests {
    /// Suspends a request and returns the result that carries its questions to the client.
    fn suspend(&self, mut running: RunningRequest, asked: Digest) -> Box<RawValue> {
        let mut questions = std::mem::take(&mut running.unanswered);
        while let Ok(message) = running.messages.try_recv() {
            if let CallerMessage::Ask { method, params, answer } = message {
                questions.push(ClientQuestion { method, params, answer });
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
        waiting.insert(state, SuspendedRequest { running, asked, questions, until: now + THINKING_TIME });
        result
    }

    /// Resumes a request with the client's answers. Unanswered questions are asked again.
    fn resume(
        &self,
        state: &str,
        params: &RawValue,
        asked: &Digest,
        identity: &ClientIdentity,
    ) -> Result<RunningRequest, RpcError> {
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

    /// Cancels every suspended request.
    pub(super) fn cancel_all(&self) {
        // Taken out first: dropping them must not happen while the lock is held.
        let waiting = std::mem::take(&mut *self.lock());
        drop(waiting);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, SuspendedRequest>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(index: usize) -> String {
    format!("q{}", index + 1)
}

/// A random state that cannot be guessed; what it stands for never leaves this process.
fn new_state() -> String {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    format!("{OUR_STATE}{}", URL_SAFE_NO_PAD.encode(bytes))
}

fn input_required(state: &str, questions: &[ClientQuestion]) -> Box<RawValue> {
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
