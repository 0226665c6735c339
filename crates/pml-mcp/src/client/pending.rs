//! Pending requests, and the routing of everything a server sends about them.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pml_model::json::Fields;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::caller::Caller;
use crate::client::failure::{LostReason, RequestFailure};
use crate::message::{RequestId, RpcNotification, RpcResponse};
use crate::protocol::meta;

/// An event that a server reports on its own, or the end of its connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// Its tools changed.
    ToolsChanged,
    /// Its prompts changed.
    PromptsChanged,
    /// Its list of resources changed.
    ResourcesChanged,
    /// One resource changed.
    ResourceUpdated(String),
    /// The connection has ended, for this reason.
    Closed(String),
}

type ResultSender = oneshot::Sender<Result<Box<RawValue>, RequestFailure>>;

/// How progress moves the deadline of a request: a server that reports it is at work and not stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgressExtension {
    /// The time that each report gives the server for the next one.
    pub by: Duration,
    /// When the request times out in any case.
    pub until: Instant,
}

/// When a request times out.
#[derive(Debug)]
pub(crate) struct RequestClock {
    deadline: Mutex<Instant>,
    extension: Option<ProgressExtension>,
}

impl RequestClock {
    pub(crate) fn new(deadline: Instant, extension: Option<ProgressExtension>) -> Arc<RequestClock> {
        Arc::new(RequestClock { deadline: Mutex::new(deadline), extension })
    }

    pub(crate) fn deadline(&self) -> Instant {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether progress moves the deadline.
    pub(crate) fn follows_progress(&self) -> bool {
        self.extension.is_some()
    }

    fn note_progress(&self, caller: &Caller) {
        if let Some(ProgressExtension { by, until }) = self.extension {
            let later = caller.deadline_after(by).min(until);
            let mut deadline = self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
            *deadline = later.max(*deadline);
        }
    }
}

/// A request without a response.
#[derive(Debug)]
struct PendingRequest {
    answer: ResultSender,
    caller: Caller,
    clock: Arc<RequestClock>,
}

/// The pending requests of one connection.
#[derive(Debug, Default)]
pub(crate) struct PendingRequests {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, PendingRequest>>,
    given_up: Mutex<BTreeMap<u64, (u64, Instant)>>,
    questions: QuestionPermits,
}

/// Maximum number of abandoned requests that are remembered.
const MAX_GIVEN_UP: usize = 256;
/// How long they are remembered.
const LINGERING: Duration = Duration::from_secs(60);

/// Maximum number of open questions of one server.
const MAX_QUESTIONS: usize = 64;

#[derive(Debug)]
struct QuestionPermits(Arc<Semaphore>);

impl Default for QuestionPermits {
    fn default() -> QuestionPermits {
        QuestionPermits(Arc::new(Semaphore::new(MAX_QUESTIONS)))
    }
}

impl PendingRequests {
    /// A number for a new request. It is also the progress token of the request.
    pub(crate) fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Registers a request; the receiver gets its response.
    pub(crate) fn register(
        &self,
        id: u64,
        caller: Caller,
        clock: Arc<RequestClock>,
    ) -> oneshot::Receiver<Result<Box<RawValue>, RequestFailure>> {
        let (answer, answered) = oneshot::channel();
        self.lock().insert(id, PendingRequest { answer, caller, clock });
        answered
    }

    /// Removes a request; a late response is dropped.
    pub(crate) fn forget(&self, id: u64) {
        self.lock().remove(&id);
    }

    /// Removes a request that timed out, and remembers it for [`LINGERING`] or until its response. The server may
    /// still be working on it, so messages without a request id may concern it.
    pub(crate) fn give_up(&self, id: u64) {
        let removed = self.lock().remove(&id);
        if let Some(request) = removed.filter(|request| request.caller.is_reachable()) {
            let mut given_up = self.given_up.lock().unwrap_or_else(PoisonError::into_inner);
            given_up.insert(id, (request.caller.session(), Instant::now()));
            if given_up.len() > MAX_GIVEN_UP {
                given_up.pop_first();
            }
        }
    }

    /// Delivers a response to its request.
    pub(crate) fn deliver_response(&self, response: RpcResponse) {
        let waiting =
            response.id.as_ref().and_then(RequestId::as_number).and_then(|id| self.lock().remove(&id));
        let Some(PendingRequest { answer, .. }) = waiting else {
            if let Some(id) = response.id.as_ref().and_then(RequestId::as_number) {
                self.given_up.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            }
            tracing::debug!(id = ?response.id, "an answer to no open request was dropped");
            return;
        };
        let outcome = match response.outcome {
            Ok(result) if pml_model::json::nesting_depth(result.get()) > pml_model::json::MAX_DEPTH => {
                Err(RequestFailure::Unknown(LostReason::UnusableAnswer("nested too deep".into())))
            }
            Ok(result) if !result.get().starts_with('{') => {
                Err(RequestFailure::Unknown(LostReason::UnusableAnswer("the result is not an object".into())))
            }
            Ok(result) => Ok(result),
            Err(error) => Err(RequestFailure::Rpc(error)),
        };
        if answer.send(outcome).is_err() {
            tracing::debug!("an answer came after its caller had gone");
        }
    }

    /// Fails one pending request.
    pub(crate) fn fail(&self, id: u64, failure: RequestFailure) {
        if let Some(request) = self.lock().remove(&id)
            && request.answer.send(Err(failure)).is_err()
        {
            tracing::trace!("a failed request had no caller left");
        }
    }

    /// Fails every pending request.
    pub(crate) fn fail_all(&self, failure: &RequestFailure) {
        for (_, request) in self.lock().drain() {
            if request.answer.send(Err(failure.clone())).is_err() {
                tracing::trace!("a failed request had no caller left");
            }
        }
    }

    /// A permit for one more question of the server; `None` if too many are open.
    pub(crate) fn question_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.questions.0).try_acquire_owned().ok()
    }

    /// Whether a caller still waits for request `id`.
    pub(crate) fn is_open(&self, id: u64) -> bool {
        self.lock().contains_key(&id)
    }

    /// The caller of request `id`.
    pub(crate) fn caller_of(&self, id: u64) -> Option<Caller> {
        self.lock().get(&id).map(|request| request.caller.clone())
    }

    fn clock_of(&self, id: u64) -> Option<(Caller, Arc<RequestClock>)> {
        self.lock().get(&id).map(|request| (request.caller.clone(), Arc::clone(&request.clock)))
    }

    /// The caller that a message without a request id must be for: the only session with pending or recently abandoned
    /// requests. `None` if there are several, because the message could be for any of them.
    pub(crate) fn only_caller(&self) -> Option<Caller> {
        let waiting = self.lock();
        let mut callers =
            waiting.values().map(|request| &request.caller).filter(|caller| caller.is_reachable());
        let first = callers.next()?;
        let mut given_up = self.given_up.lock().unwrap_or_else(PoisonError::into_inner);
        given_up.retain(|_, (_, since)| since.elapsed() < LINGERING);
        let mut sessions = callers.map(Caller::session).chain(given_up.values().map(|(session, _)| *session));
        sessions.all(|session| session == first.session()).then(|| first.clone())
    }

    /// Routes a notification: to the caller it concerns, or as an event. `about` is the request on whose stream it
    /// arrived, if requests have streams of their own.
    pub(crate) fn route_notification(
        &self,
        notification: &RpcNotification,
        about: Option<u64>,
    ) -> Option<ConnectionEvent> {
        let params = notification.params.as_deref();
        let addressed = || about.and_then(|id| self.caller_of(id)).or_else(|| self.only_caller());
        match notification.method.as_str() {
            "notifications/progress" => {
                let token = params
                    .and_then(|p| Fields::parse(p.get()).ok())
                    .and_then(|f| f.read(meta::PROGRESS_TOKEN));
                if let (Some(params), Some((caller, clock))) =
                    (params, token.and_then(|id| self.clock_of(id)))
                {
                    clock.note_progress(&caller);
                    caller.forward_progress(params);
                }
            }
            "notifications/message" => {
                if let (Some(params), Some(caller)) = (params, addressed()) {
                    caller.forward_log(params);
                }
            }
            "notifications/tools/list_changed" => return Some(ConnectionEvent::ToolsChanged),
            "notifications/prompts/list_changed" => return Some(ConnectionEvent::PromptsChanged),
            "notifications/resources/list_changed" => return Some(ConnectionEvent::ResourcesChanged),
            "notifications/resources/updated" => {
                return params
                    .and_then(|p| Fields::parse(p.get()).ok())
                    .and_then(|f| f.read("uri"))
                    .map(ConnectionEvent::ResourceUpdated);
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

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, PendingRequest>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
