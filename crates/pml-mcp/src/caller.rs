//! The one whose request is being served, as far as it can still be told or asked something.
//!
//! A downstream server may report progress, log, or ask (for input, a completion, the roots) while
//! it works. All of that is about one request of one client, so it travels with that request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pml_model::json::{Fields, empty_object, raw};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use crate::message::{RpcError, code};
use crate::protocol::Era;
use crate::question::{self, ELICITATION};

/// Something for the caller.
#[derive(Debug)]
pub enum ToCaller {
    /// An event that concerns its request.
    Notify {
        /// Which.
        method: String,
        /// A JSON object, or nothing.
        params: Option<Box<RawValue>>,
    },
    /// A question that its request waits for.
    Ask {
        /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
        method: String,
        /// A JSON object, or nothing.
        params: Option<Box<RawValue>>,
        /// Where the answer goes.
        answer: oneshot::Sender<Result<Box<RawValue>, RpcError>>,
    },
}

/// A handle on the caller of one request. Clones are the same caller.
#[derive(Debug, Clone)]
pub struct Caller {
    inner: Arc<Inner>,
    /// The downstream server that asks and tells through this handle, if it is not PML itself.
    server: Option<Arc<str>>,
    era: Era,
}

#[derive(Debug)]
struct Inner {
    session: u64,
    capabilities: Box<RawValue>,
    progress_token: Option<Box<RawValue>>,
    wants_logs_from: Option<usize>,
    outgoing: Option<mpsc::Sender<ToCaller>>,
    asked: Mutex<Asked>,
    progress: Mutex<Rising>,
}

/// Keeps the progress of one request growing, as the protocol demands of every notification. Whoever counts from the
/// beginning again (another phase, layer or try, another task) counts on from what the client has heard.
#[derive(Debug, Default)]
struct Rising {
    /// What was last reported to us.
    reported: Option<f64>,
    /// What was last sent.
    sent: Option<f64>,
    /// What is added to both progress and total.
    base: f64,
}

impl Rising {
    /// The progress to send for one that was reported; nothing where it would not grow.
    fn next(&mut self, reported: f64) -> Option<f64> {
        if !reported.is_finite() {
            return None;
        }
        if self.reported.is_some_and(|before| reported < before) {
            self.base = self.sent.unwrap_or(0.0);
        }
        self.reported = Some(reported);
        let value = self.base + reported;
        let grows = value.is_finite() && self.sent.is_none_or(|sent| value > sent);
        grows.then(|| *self.sent.insert(value))
    }
}

/// How long the caller has been thinking about questions.
#[derive(Debug, Default)]
struct Asked {
    open: u32,
    since: Option<Instant>,
    before: Duration,
}

impl Asked {
    fn total(&self) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// What is known of a caller when its request arrives.
#[derive(Debug)]
pub struct Standing {
    /// Calls of one session may be taken for one another when a question must be placed.
    pub session: u64,
    /// How it speaks.
    pub era: Era,
    /// Its declared capabilities, a JSON object.
    pub capabilities: Box<RawValue>,
    /// The token it wants progress under.
    pub progress_token: Option<Box<RawValue>>,
    /// The rank of the level from which it wants log messages.
    pub wants_logs_from: Option<usize>,
}

/// How long a client may think about a question.
pub(crate) const THINKING_TIME: Duration = Duration::from_secs(600);

/// Notifications that may wait for a slow caller before further ones are dropped.
const BACKLOG: usize = 256;

/// A number no other session of this process has.
pub fn new_session() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Caller {
    /// A caller and the end at which its messages come out.
    pub fn new(standing: Standing) -> (Caller, mpsc::Receiver<ToCaller>) {
        let (outgoing, incoming) = mpsc::channel(BACKLOG);
        (Caller::with(standing, Some(outgoing)), incoming)
    }

    /// A caller that cannot be reached, such as a background refresh.
    pub fn silent() -> Caller {
        let standing = Standing {
            session: new_session(),
            era: Era::Modern,
            capabilities: empty_object(),
            progress_token: None,
            wants_logs_from: None,
        };
        Caller::with(standing, None)
    }

    fn with(standing: Standing, outgoing: Option<mpsc::Sender<ToCaller>>) -> Caller {
        let Standing { session, era, capabilities, progress_token, wants_logs_from } = standing;
        Caller {
            era,
            inner: Arc::new(Inner {
                session,
                capabilities,
                progress_token,
                wants_logs_from,
                outgoing,
                asked: Mutex::default(),
                progress: Mutex::default(),
            }),
            server: None,
        }
    }

    /// The same caller as `server` may reach it: what that server asks is screened first, and named as its question.
    #[must_use]
    pub(crate) fn for_server(&self, server: &Arc<str>) -> Caller {
        Caller { server: Some(Arc::clone(server)), ..self.clone() }
    }

    /// Which session it belongs to.
    pub fn session(&self) -> u64 {
        self.inner.session
    }

    /// Whether there is anybody to tell or ask.
    pub fn is_reachable(&self) -> bool {
        self.inner.outgoing.is_some()
    }

    /// How it speaks.
    pub fn era(&self) -> Era {
        self.era
    }

    /// The same caller, who is asked a server's questions while the call goes on, also where its era would
    /// give it the question for a result: for calls whose result goes to somebody else first.
    #[must_use]
    pub fn asked_meanwhile(&self) -> Caller {
        Caller { era: Era::Legacy, ..self.clone() }
    }

    /// Its declared capabilities.
    pub fn capabilities(&self) -> &RawValue {
        &self.inner.capabilities
    }

    /// Whether it asked to hear of progress.
    pub fn wants_progress(&self) -> bool {
        self.inner.progress_token.is_some() && self.inner.outgoing.is_some()
    }

    /// The rank of that level.
    pub fn log_rank(&self) -> Option<usize> {
        self.inner.wants_logs_from
    }

    /// The level from which it wants log messages.
    pub fn log_level(&self) -> Option<&'static str> {
        self.inner.wants_logs_from.and_then(crate::protocol::log_level)
    }

    /// Passes a progress notification on under the caller's own token. Each has a larger value than the one before; what
    /// would have none is left out.
    pub fn progress(&self, params: &RawValue) {
        let (Some(token), Ok(mut fields)) = (&self.inner.progress_token, Fields::parse(params.get())) else {
            return;
        };
        let Some(reported) = fields.read::<f64>("progress") else { return };
        // Held until it is sent: two reports at once must not overtake each other.
        let mut rising = self.inner.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(value) = rising.next(reported) else { return };
        if rising.base != 0.0 {
            fields.set("progress", raw(&value));
            if let Some(total) = fields.read::<f64>("total") {
                fields.set("total", raw(&(total + rising.base)));
            }
        }
        fields.set("progressToken", token.clone());
        self.notify("notifications/progress", Some(fields.to_raw()));
    }

    /// Passes a log message on, if the caller wants ones of that level.
    pub fn log(&self, params: &RawValue) {
        let level =
            Fields::parse(params.get()).ok().and_then(|f| f.read::<String>("level")).unwrap_or_default();
        let rank = crate::protocol::log_rank(&level);
        if self.inner.wants_logs_from.is_some_and(|wanted| rank.is_some_and(|rank| rank >= wanted)) {
            self.notify("notifications/message", Some(params.to_owned()));
        }
    }

    /// Tells the caller something. A caller too slow to take it misses it: one slow reader must not
    /// stall the connection that other callers share.
    pub fn notify(&self, method: &str, params: Option<Box<RawValue>>) {
        if let Some(outgoing) = &self.inner.outgoing
            && outgoing.try_send(ToCaller::Notify { method: method.to_owned(), params }).is_err()
        {
            tracing::debug!(method, "a notification was dropped: its caller is gone or slow");
        }
    }

    /// Returns at `deadline`, put off by the time the caller spends on answering questions: a person
    /// may think longer than a server may work.
    pub async fn patience(&self, deadline: Instant) {
        loop {
            let thought = self.inner.lock().total();
            let wait = (deadline + thought).saturating_duration_since(Instant::now());
            if wait.is_zero() {
                return;
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Asks the caller something and waits for the answer.
    ///
    /// # Errors
    /// It cannot or may not be asked that, it is gone, or it answered with an error.
    pub async fn ask(&self, method: &str, params: Option<Box<RawValue>>) -> Result<Box<RawValue>, RpcError> {
        match &self.server {
            Some(server) if method == ELICITATION => {
                let (params, originals) = question::screened(server, params.as_deref())?;
                Ok(originals.restore(self.put(method, Some(params)).await?))
            }
            Some(_) | None => self.put(method, params).await,
        }
    }

    /// Puts a question to the caller as it is.
    async fn put(&self, method: &str, params: Option<Box<RawValue>>) -> Result<Box<RawValue>, RpcError> {
        let capability = match method {
            ELICITATION => "elicitation",
            "sampling/createMessage" => "sampling",
            "roots/list" => "roots",
            _ => {
                return Err(RpcError::new(
                    code::METHOD_NOT_FOUND,
                    format!("a client cannot be asked `{method}`"),
                ));
            }
        };
        let able = Fields::parse(self.inner.capabilities.get()).is_ok_and(|c| c.get(capability).is_some());
        let Some(outgoing) = self.inner.outgoing.as_ref().filter(|_| able) else {
            let message = format!("the client behind this gateway does not support `{capability}`");
            return Err(RpcError::new(code::METHOD_NOT_FOUND, message));
        };
        let _thinking = Thinking::begin(&self.inner);
        let (answer, answered) = oneshot::channel();
        let question = ToCaller::Ask { method: method.to_owned(), params, answer };
        let gone = || RpcError::new(code::INTERNAL_ERROR, "the client behind this gateway is gone");
        outgoing.send(question).await.map_err(|_| gone())?;
        match tokio::time::timeout(THINKING_TIME, answered).await {
            Ok(answer) => answer.map_err(|_| gone())?,
            Err(_) => {
                Err(RpcError::new(code::INTERNAL_ERROR, "the client behind this gateway did not answer"))
            }
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that is open.
struct Thinking<'a>(&'a Inner);

impl Thinking<'_> {
    fn begin(inner: &Inner) -> Thinking<'_> {
        let mut asked = inner.lock();
        asked.open += 1;
        asked.since.get_or_insert_with(Instant::now);
        Thinking(inner)
    }
}

impl Drop for Thinking<'_> {
    fn drop(&mut self) {
        let mut asked = self.0.lock();
        asked.open -= 1;
        if asked.open == 0
            && let Some(since) = asked.since.take()
        {
            asked.before += since.elapsed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(capabilities: &str) -> (Caller, mpsc::Receiver<ToCaller>) {
        Caller::new(Standing {
            session: new_session(),
            era: Era::Legacy,
            capabilities: RawValue::from_string(capabilities.into()).unwrap(),
            progress_token: Some(raw(&"mine")),
            wants_logs_from: crate::protocol::log_rank("warning"),
        })
    }

    #[tokio::test]
    async fn progress_comes_back_under_the_callers_token() {
        let (caller, mut incoming) = caller("{}");
        caller.progress(&RawValue::from_string(r#"{"progressToken":77,"progress":0.5}"#.into()).unwrap());
        let Some(ToCaller::Notify { params: Some(params), .. }) = incoming.recv().await else { panic!() };
        assert_eq!(params.get(), r#"{"progress":0.5,"progressToken":"mine"}"#);
    }

    #[tokio::test]
    async fn progress_only_grows_whatever_is_reported() {
        let (caller, mut incoming) = caller("{}");
        let reports = [
            (Some(1.0), Some(4.0)),
            (Some(1.0), Some(4.0)), // the same again
            (Some(3.0), Some(4.0)),
            (Some(0.0), Some(2.0)), // another phase
            (Some(1.0), Some(2.0)),
            (Some(2.0), None),
            (Some(-7.0), Some(2.0)),
            (None, Some(2.0)),
            (Some(0.5), Some(1.0)),
        ];
        for (progress, total) in reports {
            caller.progress(&raw(&serde_json::json!({ "progress": progress, "total": total })));
        }
        drop(caller);
        let mut sent = Vec::new();
        while let Some(ToCaller::Notify { params: Some(params), .. }) = incoming.recv().await {
            let params: serde_json::Value = serde_json::from_str(params.get()).unwrap();
            sent.push((params["progress"].as_f64().unwrap(), params["total"].as_f64()));
        }
        let expected = [(1.0, Some(4.0)), (3.0, Some(4.0)), (4.0, Some(5.0)), (5.0, None), (5.5, Some(6.0))];
        assert_eq!(sent, expected);
    }

    #[tokio::test]
    async fn logs_below_the_wanted_level_stay_away() {
        let (caller, mut incoming) = caller("{}");
        for level in ["debug", "warning", "nonsense", "error"] {
            caller.log(&raw(&serde_json::json!({"level": level, "data": level})));
        }
        drop(caller);
        let mut seen = 0;
        while incoming.recv().await.is_some() {
            seen += 1;
        }
        assert_eq!(seen, 2);
    }

    #[tokio::test]
    async fn a_client_is_asked_only_what_it_can_answer() {
        let (caller, mut incoming) = caller(r#"{"elicitation":{}}"#);
        assert!(
            caller
                .ask("sampling/createMessage", None)
                .await
                .unwrap_err()
                .message
                .contains("does not support `sampling`")
        );
        let answering = tokio::spawn(async move {
            let Some(ToCaller::Ask { answer, .. }) = incoming.recv().await else { panic!() };
            answer.send(Ok(empty_object())).unwrap();
        });
        assert_eq!(caller.ask("elicitation/create", None).await.unwrap().get(), "{}");
        answering.await.unwrap();
    }
}
