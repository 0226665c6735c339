//! Requests that wait for their answers, and where everything a server says about them goes.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pml_model::json::Fields;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::caller::Caller;
use crate::client::failure::{Failure, Lost};
use crate::message::{Id, Notification, Response};
use crate::protocol::meta;

/// Something a server tells on its own account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Its tools changed.
    ToolsChanged,
    /// Its prompts changed.
    PromptsChanged,
    /// Its list of resources changed.
    ResourcesChanged,
    /// One resource changed.
    ResourceUpdated(String),
    /// The connection has ended, and why.
    Closed(String),
}

type Answer = oneshot::Sender<Result<Box<RawValue>, Failure>>;

/// The requests in flight on one connection.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, (Answer, Caller)>>,
    given_up: Mutex<BTreeMap<u64, (u64, Instant)>>,
    questions: Questions,
}

/// Requests that were given up and are still remembered.
const MAX_GIVEN_UP: usize = 256;
/// How long they are.
const LINGERING: Duration = Duration::from_secs(60);

/// Questions of one server that may wait for their answers at once.
const MAX_QUESTIONS: usize = 64;

#[derive(Debug)]
struct Questions(Arc<Semaphore>);

impl Default for Questions {
    fn default() -> Questions {
        Questions(Arc::new(Semaphore::new(MAX_QUESTIONS)))
    }
}

impl Pending {
    /// A number for a new request. It is also the token under which its progress is reported.
    pub(crate) fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Registers a request; its answer arrives at the receiver.
    pub(crate) fn wait_for(
        &self,
        id: u64,
        caller: Caller,
    ) -> oneshot::Receiver<Result<Box<RawValue>, Failure>> {
        let (answer, answered) = oneshot::channel();
        self.lock().insert(id, (answer, caller));
        answered
    }

    /// Forgets a request; an answer that still comes is dropped.
    pub(crate) fn forget(&self, id: u64) {
        self.lock().remove(&id);
    }

    /// Forgets a request that the server was too slow for and may still be working on: until it answers,
    /// for a while at most, what it says without an address may be about that request.
    pub(crate) fn give_up(&self, id: u64) {
        let removed = self.lock().remove(&id);
        if let Some((_, caller)) = removed.filter(|(_, caller)| caller.is_reachable()) {
            let mut given_up = self.given_up.lock().unwrap_or_else(PoisonError::into_inner);
            given_up.insert(id, (caller.session(), Instant::now()));
            if given_up.len() > MAX_GIVEN_UP {
                given_up.pop_first();
            }
        }
    }

    /// Delivers a response to the request it answers.
    pub(crate) fn resolve(&self, response: Response) {
        let waiting = response.id.as_ref().and_then(Id::as_number).and_then(|id| self.lock().remove(&id));
        let Some((answer, _)) = waiting else {
            if let Some(id) = response.id.as_ref().and_then(Id::as_number) {
                self.given_up.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            }
            tracing::debug!(id = ?response.id, "an answer to no open request was dropped");
            return;
        };
        let outcome = match response.outcome {
            Ok(result) if pml_model::json::depth(result.get()) > pml_model::json::MAX_DEPTH => {
                Err(Failure::Unknown(Lost::Garbage("nested too deep".into())))
            }
            Ok(result) if !result.get().starts_with('{') => {
                Err(Failure::Unknown(Lost::Garbage("the result is not an object".into())))
            }
            Ok(result) => Ok(result),
            Err(error) => Err(Failure::Rpc(error)),
        };
        if answer.send(outcome).is_err() {
            tracing::debug!("an answer came after its caller had gone");
        }
    }

    /// Fails every open request.
    pub(crate) fn fail_all(&self, failure: &Failure) {
        for (_, (answer, _)) in self.lock().drain() {
            if answer.send(Err(failure.clone())).is_err() {
                tracing::trace!("a failed request had no caller left");
            }
        }
    }

    /// Room for one more question of the server, until it is dropped; none where too many are open.
    pub(crate) fn question(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.questions.0).try_acquire_owned().ok()
    }

    /// Whether a caller still waits for `id`.
    pub(crate) fn is_open(&self, id: u64) -> bool {
        self.lock().contains_key(&id)
    }

    /// The caller of one request.
    pub(crate) fn caller(&self, id: u64) -> Option<Caller> {
        self.lock().get(&id).map(|(_, caller)| caller.clone())
    }

    /// The caller that something without an address must be for: all open requests with somebody
    /// behind them are of one session. With several sessions open it could be anybody's, so it is nobody's.
    pub(crate) fn only_caller(&self) -> Option<Caller> {
        let waiting = self.lock();
        let mut callers = waiting.values().map(|(_, caller)| caller).filter(|caller| caller.is_reachable());
        let first = callers.next()?;
        let mut given_up = self.given_up.lock().unwrap_or_else(PoisonError::into_inner);
        given_up.retain(|_, (_, since)| since.elapsed() < LINGERING);
        let mut sessions = callers.map(Caller::session).chain(given_up.values().map(|(session, _)| *session));
        sessions.all(|session| session == first.session()).then(|| first.clone())
    }

    /// Sends a notification where it belongs: to the caller it is about, or up as an event.
    /// `about` is the request on whose own stream it arrived, where there is such a stream.
    pub(crate) fn route(&self, notification: &Notification, about: Option<u64>) -> Option<Event> {
        let params = notification.params.as_deref();
        let addressed = || about.and_then(|id| self.caller(id)).or_else(|| self.only_caller());
        match notification.method.as_str() {
            "notifications/progress" => {
                let token = params
                    .and_then(|p| Fields::parse(p.get()).ok())
                    .and_then(|f| f.read(meta::PROGRESS_TOKEN));
                if let (Some(params), Some(caller)) = (params, token.and_then(|id| self.caller(id))) {
                    caller.progress(params);
                }
            }
            "notifications/message" => {
                if let (Some(params), Some(caller)) = (params, addressed()) {
                    caller.log(params);
                }
            }
            "notifications/tools/list_changed" => return Some(Event::ToolsChanged),
            "notifications/prompts/list_changed" => return Some(Event::PromptsChanged),
            "notifications/resources/list_changed" => return Some(Event::ResourcesChanged),
            "notifications/resources/updated" => {
                return params
                    .and_then(|p| Fields::parse(p.get()).ok())
                    .and_then(|f| f.read("uri"))
                    .map(Event::ResourceUpdated);
            }
            "notifications/subscriptions/acknowledged" | "notifications/cancelled" => {}
            other => {
                if let Some(caller) = addressed() {
                    caller.notify(other, notification.params.clone());
                }
            }
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, (Answer, Caller)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
