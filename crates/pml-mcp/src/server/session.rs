//! The session of a legacy client: its identity, its open questions and its active requests.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pml_model::json::Fields;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::caller::new_session_number;
use crate::message::{RequestId, RpcError, RpcNotification, RpcResponse, code};
use crate::protocol;
use crate::server::{ChangeNotice, ClientIdentity};

/// One session. A stdio connection has exactly one, initialised or not.
#[derive(Debug)]
pub(crate) struct McpSession {
    number: u64,
    /// Cancelled when the session has ended.
    ended: CancellationToken,
    identity: ClientIdentity,
    state: Mutex<SessionState>,
    next_question: AtomicU64,
}

type AnswerSender = oneshot::Sender<Result<Box<RawValue>, RpcError>>;

#[derive(Debug, Default)]
struct SessionState {
    client: Option<DeclaredClient>,
    questions: HashMap<u64, AnswerSender>,
    in_flight: HashMap<RequestId, RequestCancellation>,
    watched: HashSet<String>,
}

/// What a client declared in `initialize`.
#[derive(Debug, Clone)]
pub(crate) struct DeclaredClient {
    pub(crate) name: String,
    pub(crate) capabilities: Box<RawValue>,
    /// The protocol version of the session; `None` if an id from before it was noted opened it.
    pub(crate) version: Option<String>,
    pub(crate) min_log_rank: Option<usize>,
}

impl McpSession {
    pub(crate) fn new(identity: ClientIdentity) -> McpSession {
        McpSession {
            number: new_session_number(),
            ended: CancellationToken::new(),
            identity,
            state: Mutex::default(),
            next_question: AtomicU64::new(1),
        }
    }

    /// A session that other replicas of this server may continue. Its questions have numbers of their own in each, so
    /// that an answer belongs to one question.
    pub(crate) fn numbered(identity: ClientIdentity, number: u64, first_question: u64) -> McpSession {
        McpSession {
            number,
            ended: CancellationToken::new(),
            identity,
            state: Mutex::default(),
            next_question: AtomicU64::new(first_question),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    pub(crate) fn identity(&self) -> &ClientIdentity {
        &self.identity
    }

    pub(crate) fn client(&self) -> Option<DeclaredClient> {
        self.lock().client.clone()
    }

    pub(crate) fn open(&self, name: String, capabilities: Box<RawValue>, version: Option<String>) {
        self.lock().client = Some(DeclaredClient { name, capabilities, version, min_log_rank: None });
    }

    /// Applies a request or notification about the session itself, before it is served.
    pub(crate) fn apply_session_method(
        &self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), RpcError> {
        let read =
            |key: &str| params.and_then(|params| Fields::parse(params.get()).ok()?.read::<String>(key));
        let mut state = self.lock();
        match method {
            "logging/setLevel" => {
                let level = read("level").unwrap_or_default();
                let unknown = || RpcError::new(code::INVALID_PARAMS, format!("`{level}` is not a log level"));
                let rank = protocol::log_rank(&level).ok_or_else(unknown)?;
                if let Some(client) = &mut state.client {
                    client.min_log_rank = Some(rank);
                }
            }
            "resources/subscribe" => state.watched.extend(read("uri")),
            "resources/unsubscribe" => {
                if let Some(uri) = read("uri") {
                    state.watched.remove(&uri);
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn watches(&self, uri: &str) -> bool {
        self.lock().watched.contains(uri)
    }

    /// Everything whose changes this session is told.
    pub(crate) fn all_changes(&self) -> Vec<ChangeNotice> {
        let lists = [ChangeNotice::Tools, ChangeNotice::Prompts, ChangeNotice::Resources];
        let watched = self.lock().watched.iter().cloned().map(ChangeNotice::Resource).collect::<Vec<_>>();
        lists.into_iter().chain(watched).collect()
    }

    /// Forgets a subscription that was refused.
    pub(crate) fn on_request_refused(&self, method: &str, params: Option<&RawValue>) {
        if method == "resources/subscribe"
            && let Some(uri) =
                params.and_then(|params| Fields::parse(params.get()).ok()?.read::<String>("uri"))
        {
            self.lock().watched.remove(&uri);
        }
    }

    /// Registers a question and returns the id under which the client will answer.
    pub(crate) fn register_question(&self, answer: AnswerSender) -> RequestId {
        let number = self.next_question.fetch_add(1, Ordering::Relaxed);
        self.lock().questions.insert(number, answer);
        RequestId::from_number(number)
    }

    /// Withdraws a question; a late answer is dropped.
    pub(crate) fn withdraw_question(&self, id: &RequestId) {
        if let Some(number) = id.as_number() {
            self.lock().questions.remove(&number);
        }
    }

    /// Delivers the client's answer to its question. Returns whether somebody waits for it.
    pub(crate) fn deliver_answer(&self, response: RpcResponse) -> bool {
        let answer = response
            .id
            .as_ref()
            .and_then(RequestId::as_number)
            .and_then(|id| self.lock().questions.remove(&id));
        match answer {
            Some(answer) => answer.send(response.outcome).is_ok(),
            None => false,
        }
    }

    /// Registers a request as active; `None` if its id is already in use.
    pub(crate) fn begin_request(&self, id: &RequestId) -> Option<RequestCancellation> {
        let mut state = self.lock();
        if state.in_flight.contains_key(id) {
            return None;
        }
        let off = RequestCancellation::default();
        state.in_flight.insert(id.clone(), off.clone());
        Some(off)
    }

    pub(crate) fn finish_request(&self, id: &RequestId) {
        self.lock().in_flight.remove(id);
    }

    /// Cancels one request, on behalf of its sender.
    pub(crate) fn cancel_request(&self, id: &RequestId) {
        if let Some(off) = self.lock().in_flight.get(id) {
            off.by_sender.cancel();
        }
    }

    /// Cancels every request: the client is gone.
    pub(crate) fn end(&self) {
        self.ended.cancel();
        let mut state = self.lock();
        state.questions.clear();
        for (_, off) in state.in_flight.drain() {
            off.cancel.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The cancellation tokens of a request.
#[derive(Debug, Clone)]
pub(crate) struct RequestCancellation {
    /// Cancelled when the sender cancels the request.
    pub(crate) by_sender: CancellationToken,
    /// Cancelled when the sender cancels the request or is gone.
    pub(crate) cancel: CancellationToken,
}

impl Default for RequestCancellation {
    fn default() -> RequestCancellation {
        let word = CancellationToken::new();
        RequestCancellation { cancel: word.child_token(), by_sender: word }
    }
}

/// The id of the request that a notification cancels, if it is a cancellation.
pub(crate) fn cancelled_request(notification: &RpcNotification) -> Option<RequestId> {
    let params =
        notification.params.as_deref().filter(|_| notification.method == "notifications/cancelled")?;
    Fields::parse(params.get()).ok()?.read("requestId")
}
