//! What an older client's session holds: who it is, what it was asked, what it is waiting for.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pml_model::json::Fields;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::caller::new_session;
use crate::message::{Id, Notification, Response, RpcError, code};
use crate::protocol;
use crate::server::Identity;

/// One session. A stdio connection has exactly one, opened or not.
#[derive(Debug)]
pub(crate) struct Session {
    number: u64,
    identity: Identity,
    state: Mutex<State>,
    next_question: AtomicU64,
}

type Answer = oneshot::Sender<Result<Box<RawValue>, RpcError>>;

#[derive(Debug, Default)]
struct State {
    client: Option<KnownClient>,
    questions: HashMap<u64, Answer>,
    in_flight: HashMap<Id, CallOff>,
    watched: HashSet<String>,
}

/// What a client said of itself when it opened its session.
#[derive(Debug, Clone)]
pub(crate) struct KnownClient {
    pub(crate) name: String,
    pub(crate) capabilities: Box<RawValue>,
    pub(crate) wants_logs_from: Option<usize>,
}

impl Session {
    pub(crate) fn new(identity: Identity) -> Session {
        Session { number: new_session(), identity, state: Mutex::default(), next_question: AtomicU64::new(1) }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) fn client(&self) -> Option<KnownClient> {
        self.lock().client.clone()
    }

    pub(crate) fn open(&self, name: String, capabilities: Box<RawValue>) {
        self.lock().client = Some(KnownClient { name, capabilities, wants_logs_from: None });
    }

    /// Takes note of what a request says about the session itself, before it is served.
    pub(crate) fn note(&self, method: &str, params: Option<&RawValue>) -> Result<(), RpcError> {
        let read =
            |key: &str| params.and_then(|params| Fields::parse(params.get()).ok()?.read::<String>(key));
        let mut state = self.lock();
        match method {
            "logging/setLevel" => {
                let level = read("level").unwrap_or_default();
                let unknown = || RpcError::new(code::INVALID_PARAMS, format!("`{level}` is not a log level"));
                let rank = protocol::log_rank(&level).ok_or_else(unknown)?;
                if let Some(client) = &mut state.client {
                    client.wants_logs_from = Some(rank);
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

    /// Registers a question; gives the id under which the client will answer.
    pub(crate) fn ask(&self, answer: Answer) -> Id {
        let number = self.next_question.fetch_add(1, Ordering::Relaxed);
        self.lock().questions.insert(number, answer);
        Id::number(number)
    }

    /// Takes a question back; an answer that still comes is dropped.
    pub(crate) fn withdraw(&self, id: &Id) {
        if let Some(number) = id.as_number() {
            self.lock().questions.remove(&number);
        }
    }

    /// Delivers the client's answer to the question it belongs to.
    pub(crate) fn answered(&self, response: Response) {
        let answer =
            response.id.as_ref().and_then(Id::as_number).and_then(|id| self.lock().questions.remove(&id));
        match answer {
            Some(answer) => {
                if answer.send(response.outcome).is_err() {
                    tracing::debug!("an answer came after its question was withdrawn");
                }
            }
            None => tracing::debug!(id = ?response.id, "an answer to no open question was dropped"),
        }
    }

    /// Notes a request as in flight; `None` where its id is already in use.
    pub(crate) fn begin(&self, id: &Id) -> Option<CallOff> {
        let mut state = self.lock();
        if state.in_flight.contains_key(id) {
            return None;
        }
        let off = CallOff::default();
        state.in_flight.insert(id.clone(), off.clone());
        Some(off)
    }

    pub(crate) fn finish(&self, id: &Id) {
        self.lock().in_flight.remove(id);
    }

    /// Cancels one request, on its sender's word.
    pub(crate) fn cancel(&self, id: &Id) {
        if let Some(off) = self.lock().in_flight.get(id) {
            off.word.cancel();
        }
    }

    /// Cancels every request: the client is gone.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.questions.clear();
        for (_, off) in state.in_flight.drain() {
            off.cancel.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a request is called off.
#[derive(Debug, Clone)]
pub(crate) struct CallOff {
    /// Its sender said so.
    pub(crate) word: CancellationToken,
    /// Its sender said so, or is gone.
    pub(crate) cancel: CancellationToken,
}

impl Default for CallOff {
    fn default() -> CallOff {
        let word = CancellationToken::new();
        CallOff { cancel: word.child_token(), word }
    }
}

/// The request that a notification takes back, if it does that.
pub(crate) fn cancelled(notification: &Notification) -> Option<Id> {
    let params =
        notification.params.as_deref().filter(|_| notification.method == "notifications/cancelled")?;
    Fields::parse(params.get()).ok()?.read("requestId")
}
