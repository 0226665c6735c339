//! The caller: the client whose request is served, as far as it can still be reached.
//!
//! A downstream server may report progress, log, or ask (for input, a completion, the roots) while it works. All of
//! that concerns one request of one client, so the caller travels with that request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pml_model::json::{Fields, empty_object, raw};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::message::{RpcError, code};
use crate::protocol::Era;
use crate::question::{self, ELICITATION};

/// A message to the caller.
#[derive(Debug)]
pub enum CallerMessage {
    /// A notification about its request.
    Notify {
        /// The JSON-RPC method.
        method: String,
        /// The parameters: a JSON object, if there are any.
        params: Option<Box<RawValue>>,
    },
    /// A question that its request waits for.
    Ask {
        /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
        method: String,
        /// The parameters: a JSON object, if there are any.
        params: Option<Box<RawValue>>,
        /// Channel for the answer.
        answer: oneshot::Sender<Result<Box<RawValue>, RpcError>>,
    },
}

/// Handle of the caller of one request. Clones reach the same caller.
#[derive(Debug, Clone)]
pub struct Caller {
    inner: Arc<CallerInner>,
    /// The downstream server that uses this handle; `None` for PML itself.
    server: Option<Arc<str>>,
    era: Era,
    messages: ForwardedMessages,
}

/// Which messages of a server reach the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForwardedMessages {
    All,
    /// Questions, but no progress and no log messages.
    Questions,
}

#[derive(Debug)]
struct CallerInner {
    session: u64,
    session_end: CancellationToken,
    capabilities: Box<RawValue>,
    progress_token: Option<Box<RawValue>>,
    wants_logs_from: Option<usize>,
    outgoing: Option<mpsc::Sender<CallerMessage>>,
    asked: Mutex<ThinkingClock>,
    progress: Mutex<MonotonicProgress>,
}

/// Makes the progress of one request monotonic, as the protocol requires. When a source starts again from the
/// beginning (another phase, layer, attempt or task), its values are added to the last one sent.
#[derive(Debug, Default)]
struct MonotonicProgress {
    /// Last value that was reported.
    reported: Option<f64>,
    /// Last value that was sent.
    sent: Option<f64>,
    /// Offset added to both progress and total.
    base: f64,
    /// The last total, with the offset.
    total: Option<f64>,
    /// When a value was sent last.
    sent_at: Option<tokio::time::Instant>,
}

impl MonotonicProgress {
    /// The value to send for a reported one; `None` if it would not grow.
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
        grows.then(|| {
            self.sent_at = Some(tokio::time::Instant::now());
            *self.sent.insert(value)
        })
    }

    /// A value a little above the last one, and below the total if there is one.
    fn beat(&mut self) -> f64 {
        let sent = self.sent.unwrap_or(0.0);
        let left = self.total.map(|total| total - sent).filter(|left| *left > 0.0);
        let value = sent + left.map_or(HEARTBEAT_STEP, |left| (left / 2.0).min(1.0) * HEARTBEAT_STEP);
        self.sent_at = Some(tokio::time::Instant::now());
        *self.sent.insert(value)
    }
}

/// How much a heartbeat raises the progress: so little that the next value of the source is still higher.
const HEARTBEAT_STEP: f64 = 0.001;

/// Total time for which questions to the caller have been open.
#[derive(Debug, Default)]
struct ThinkingClock {
    open: u32,
    since: Option<Instant>,
    before: Duration,
}

impl ThinkingClock {
    fn total(&self) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// What is known of a caller when its request arrives.
#[derive(Debug)]
pub struct CallerInfo {
    /// Number of the session. A message without a request id may go to any request of the same session.
    pub session: u64,
    /// Cancelled when the session has ended.
    pub session_end: CancellationToken,
    /// The era of the client.
    pub era: Era,
    /// Its declared MCP capabilities, a JSON object.
    pub capabilities: Box<RawValue>,
    /// Its progress token; `None` if it wants no progress.
    pub progress_token: Option<Box<RawValue>>,
    /// Rank of the lowest level of log messages it wants; `None` for no log messages.
    pub min_log_rank: Option<usize>,
}

/// How long a client may take to answer a question.
pub(crate) const THINKING_TIME: Duration = Duration::from_secs(600);

/// Maximum number of notifications that wait for a slow caller; further ones are dropped.
const BACKLOG: usize = 256;

/// A session number that is unique in this process.
pub fn new_session_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Caller {
    /// A caller, and the receiver of its messages.
    pub fn new(standing: CallerInfo) -> (Caller, mpsc::Receiver<CallerMessage>) {
        let (outgoing, incoming) = mpsc::channel(BACKLOG);
        (Caller::with(standing, Some(outgoing)), incoming)
    }

    /// A caller that cannot be reached, for example for a background refresh.
    pub fn silent() -> Caller {
        Caller::silent_until(CancellationToken::new())
    }

    /// The same, of a session that ends with `session_end`.
    pub(crate) fn silent_until(session_end: CancellationToken) -> Caller {
        let standing = CallerInfo {
            session: new_session_number(),
            session_end,
            era: Era::Modern,
            capabilities: empty_object(),
            progress_token: None,
            min_log_rank: None,
        };
        Caller::with(standing, None)
    }

    fn with(standing: CallerInfo, outgoing: Option<mpsc::Sender<CallerMessage>>) -> Caller {
        let CallerInfo { session, session_end, era, .. } = standing;
        let CallerInfo { capabilities, progress_token, min_log_rank: wants_logs_from, .. } = standing;
        Caller {
            era,
            inner: Arc::new(CallerInner {
                session,
                session_end,
                capabilities,
                progress_token,
                wants_logs_from,
                outgoing,
                asked: Mutex::default(),
                progress: Mutex::default(),
            }),
            server: None,
            messages: ForwardedMessages::All,
        }
    }

    /// This caller as `server` may reach it: questions of that server are screened first and name it.
    #[must_use]
    pub(crate) fn for_server(&self, server: &Arc<str>) -> Caller {
        Caller { server: Some(Arc::clone(server)), ..self.clone() }
    }

    /// Number of its session.
    pub fn session(&self) -> u64 {
        self.inner.session
    }

    /// Cancelled when its session has ended.
    pub fn session_end(&self) -> &CancellationToken {
        &self.inner.session_end
    }

    /// Whether the caller can receive messages.
    pub fn is_reachable(&self) -> bool {
        self.inner.outgoing.is_some()
    }

    /// The era of the client.
    pub fn era(&self) -> Era {
        self.era
    }

    /// This caller, but asked a server's questions while the call goes on, even if its era would get the question as
    /// the result: for calls whose result does not go to the client directly.
    #[must_use]
    pub fn with_inline_questions(&self) -> Caller {
        Caller { era: Era::Legacy, ..self.clone() }
    }

    /// This caller, but only for questions, asked as by [`Caller::with_inline_questions`]: for calls that a program
    /// makes, whose progress is not that of the request.
    #[must_use]
    pub fn for_questions_only(&self) -> Caller {
        Caller { era: Era::Legacy, messages: ForwardedMessages::Questions, ..self.clone() }
    }

    /// Whether it still waits and can be asked to fill in a form.
    pub fn can_be_asked(&self) -> bool {
        self.supports("elicitation", None)
            && self.inner.outgoing.as_ref().is_some_and(|outgoing| !outgoing.is_closed())
    }

    /// Its declared MCP capabilities.
    pub fn capabilities(&self) -> &RawValue {
        &self.inner.capabilities
    }

    /// Whether it wants progress notifications.
    pub fn wants_progress(&self) -> bool {
        let forwarded = self.messages == ForwardedMessages::All;
        forwarded && self.inner.progress_token.is_some() && self.inner.outgoing.is_some()
    }

    /// Rank of the lowest level of log messages it wants.
    pub fn log_rank(&self) -> Option<usize> {
        self.inner.wants_logs_from.filter(|_| self.messages == ForwardedMessages::All)
    }

    /// Lowest level of log messages it wants.
    pub fn log_level(&self) -> Option<&'static str> {
        self.log_rank().and_then(crate::protocol::log_level)
    }

    /// Forwards a progress notification under the caller's own token. Values grow strictly; a notification that would
    /// not is dropped.
    pub fn forward_progress(&self, params: &RawValue) {
        let (Some(token), Ok(mut fields)) = (&self.inner.progress_token, Fields::parse(params.get())) else {
            return;
        };
        if self.messages != ForwardedMessages::All {
            return;
        }
        let Some(reported) = fields.read::<f64>("progress") else { return };
        // Held until it is sent: concurrent reports must not overtake each other.
        let mut rising = self.lock_progress();
        let Some(value) = rising.next(reported) else { return };
        rising.total = fields.read::<f64>("total").map(|total| total + rising.base);
        if rising.base != 0.0 {
            fields.set("progress", raw(&value));
            if let Some(total) = fields.read::<f64>("total") {
                fields.set("total", raw(&(total + rising.base)));
            }
        }
        fields.set("progressToken", token.clone());
        self.notify("notifications/progress", Some(fields.to_raw()));
    }

    /// Sends progress whenever none was sent for `interval`, so that a client that gives up on silent requests goes on
    /// waiting. Runs until dropped; without end for a client that wants no progress.
    pub async fn send_heartbeats(&self, interval: Duration) {
        let Some(token) = self.inner.progress_token.as_ref().filter(|_| self.wants_progress()) else {
            return std::future::pending().await;
        };
        let began = tokio::time::Instant::now();
        loop {
            let last = self.lock_progress().sent_at.unwrap_or(began);
            tokio::time::sleep_until(last + interval).await;
            let mut rising = self.lock_progress();
            if rising.sent_at.unwrap_or(began) != last {
                continue;
            }
            let mut fields = Fields::default();
            fields.set("progress", raw(&rising.beat()));
            if let Some(total) = rising.total {
                fields.set("total", raw(&total));
            }
            fields.set("progressToken", token.clone());
            self.notify("notifications/progress", Some(fields.to_raw()));
        }
    }

    fn lock_progress(&self) -> MutexGuard<'_, MonotonicProgress> {
        self.inner.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forwards a log message, if the caller wants messages of its level.
    pub fn forward_log(&self, params: &RawValue) {
        let level =
            Fields::parse(params.get()).ok().and_then(|f| f.read::<String>("level")).unwrap_or_default();
        let rank = crate::protocol::log_rank(&level);
        if self.log_rank().is_some_and(|wanted| rank.is_some_and(|rank| rank >= wanted)) {
            self.notify("notifications/message", Some(params.to_owned()));
        }
    }

    /// Sends a notification to the caller. If the caller is too slow it is dropped: one slow reader must not stall the
    /// connection that other callers share.
    pub fn notify(&self, method: &str, params: Option<Box<RawValue>>) {
        if let Some(outgoing) = &self.inner.outgoing
            && outgoing.try_send(CallerMessage::Notify { method: method.to_owned(), params }).is_err()
        {
            tracing::debug!(method, "a notification was dropped: its caller is gone or slow");
        }
    }

    /// Returns at `deadline`, extended by the time for which questions to the caller are open: a person may take
    /// longer than a server may.
    pub async fn wait_until_deadline(&self, deadline: Instant) {
        self.wait_until(|| deadline).await;
    }

    /// As [`Caller::wait_until_deadline`], with a deadline that may move to a later time.
    pub(crate) async fn wait_until(&self, deadline: impl Fn() -> Instant) {
        loop {
            let thought = self.inner.lock().total();
            let wait = (deadline() + thought).saturating_duration_since(Instant::now());
            if wait.is_zero() {
                return;
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Returns after `patience`, extended by the time for which questions to the caller are open meanwhile.
    pub async fn wait_while_answering(&self, patience: Duration) {
        self.wait_until_deadline(self.deadline_after(patience)).await;
    }

    /// The deadline for [`Caller::wait_until_deadline`] that ignores the questions that were open before now.
    pub fn deadline_after(&self, patience: Duration) -> Instant {
        let plain = Instant::now() + patience;
        plain.checked_sub(self.inner.lock().total()).unwrap_or(plain)
    }

    /// Asks the caller a question and waits for the answer.
    ///
    /// # Errors
    /// The caller cannot be asked this, is gone, or replied with an error.
    pub async fn ask(&self, method: &str, params: Option<Box<RawValue>>) -> Result<Box<RawValue>, RpcError> {
        match &self.server {
            Some(server) if method == ELICITATION => {
                let (params, originals) = question::screen_question(server, params.as_deref())?;
                Ok(originals.restore(self.put(method, Some(params)).await?))
            }
            Some(_) | None => self.put(method, params).await,
        }
    }

    /// Whether the caller can be asked a question that needs `capability`, and of its parts `mode`. A client that names
    /// no mode of elicitation fills in forms only.
    fn supports(&self, capability: &str, mode: Option<&str>) -> bool {
        let Ok(all) = Fields::parse(self.inner.capabilities.get()) else { return false };
        let Some(declared) = all.get(capability) else { return false };
        let modes = Fields::parse(declared.get()).unwrap_or_default();
        match (capability, mode) {
            (_, Some(mode)) => modes.get(mode).is_some(),
            ("elicitation", None) => modes.get("form").is_some() || modes.get("url").is_none(),
            (_, None) => true,
        }
    }

    /// Sends a question to the caller without screening it.
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
        let is_url = method == ELICITATION && question::is_url_mode(params.as_deref());
        let able = self.supports(capability, is_url.then_some("url"));
        let Some(outgoing) = self.inner.outgoing.as_ref().filter(|_| able) else {
            let wanted = if is_url { "elicitation.url" } else { capability };
            let message = format!("the client behind this gateway does not support `{wanted}`");
            return Err(RpcError::new(code::METHOD_NOT_FOUND, message));
        };
        let _thinking = ThinkingGuard::begin(&self.inner);
        let (answer, answered) = oneshot::channel();
        let question = CallerMessage::Ask { method: method.to_owned(), params, answer };
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

impl CallerInner {
    fn lock(&self) -> MutexGuard<'_, ThinkingClock> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a question as open until it is dropped.
struct ThinkingGuard<'a>(&'a CallerInner);

impl ThinkingGuard<'_> {
    fn begin(inner: &CallerInner) -> ThinkingGuard<'_> {
        let mut asked = inner.lock();
        asked.open += 1;
        asked.since.get_or_insert_with(Instant::now);
        ThinkingGuard(inner)
    }
}

impl Drop for ThinkingGuard<'_> {
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

    fn caller(capabilities: &str) -> (Caller, mpsc::Receiver<CallerMessage>) {
        Caller::new(CallerInfo {
            session: new_session_number(),
            session_end: CancellationToken::new(),
            era: Era::Legacy,
            capabilities: RawValue::from_string(capabilities.into()).unwrap(),
            progress_token: Some(raw(&"mine")),
            min_log_rank: crate::protocol::log_rank("warning"),
        })
    }

    #[tokio::test]
    async fn progress_comes_back_under_the_callers_token() {
        let (caller, mut incoming) = caller("{}");
        caller.forward_progress(
            &RawValue::from_string(r#"{"progressToken":77,"progress":0.5}"#.into()).unwrap(),
        );
        let Some(CallerMessage::Notify { params: Some(params), .. }) = incoming.recv().await else {
            panic!()
        };
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
            caller.forward_progress(&raw(&serde_json::json!({ "progress": progress, "total": total })));
        }
        drop(caller);
        let mut sent = Vec::new();
        while let Some(CallerMessage::Notify { params: Some(params), .. }) = incoming.recv().await {
            let params: serde_json::Value = serde_json::from_str(params.get()).unwrap();
            sent.push((params["progress"].as_f64().unwrap(), params["total"].as_f64()));
        }
        let expected = [(1.0, Some(4.0)), (3.0, Some(4.0)), (4.0, Some(5.0)), (5.0, None), (5.5, Some(6.0))];
        assert_eq!(sent, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_broken_by_progress_that_the_source_still_exceeds() {
        let (caller, mut incoming) = caller("{}");
        let beating = caller.clone();
        let beats = tokio::spawn(async move { beating.send_heartbeats(Duration::from_secs(10)).await });
        let mut sent = Vec::new();
        for reported in [Some((0.0, 4.0)), None, None, Some((1.0, 4.0)), None] {
            if let Some((progress, total)) = reported {
                caller.forward_progress(&raw(&serde_json::json!({ "progress": progress, "total": total })));
            }
            let Some(CallerMessage::Notify { params: Some(params), .. }) = incoming.recv().await else {
                panic!()
            };
            let params: serde_json::Value = serde_json::from_str(params.get()).unwrap();
            assert_eq!((&params["progressToken"], &params["total"]), (&"mine".into(), &4.0.into()));
            sent.push(params["progress"].as_f64().unwrap());
        }
        beats.abort();
        assert_eq!(sent, [0.0, 0.001, 0.002, 1.0, 1.001]);
    }

    #[tokio::test]
    async fn a_client_that_only_fills_in_forms_opens_no_pages() {
        let url =
            || Some(raw(&serde_json::json!({ "mode": "url", "message": "?", "url": "https://a.example" })));
        for (declared, pages) in [
            (r#"{"elicitation":{}}"#, false),
            (r#"{"elicitation":{"form":{}}}"#, false),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, true),
            (r#"{"elicitation":{"url":{}}}"#, true),
        ] {
            let (caller, mut incoming) = caller(declared);
            let answering = tokio::spawn(async move {
                if let Some(CallerMessage::Ask { answer, .. }) = incoming.recv().await {
                    answer.send(Ok(empty_object())).unwrap();
                }
            });
            let asked = caller.ask(ELICITATION, url()).await;
            assert_eq!(asked.is_ok(), pages, "{declared}");
            if let Err(refused) = asked {
                assert!(refused.message.contains("does not support `elicitation.url`"), "{refused}");
            }
            drop(caller);
            answering.await.unwrap();
        }
        let (caller, _incoming) = caller(r#"{"elicitation":{"url":{}}}"#);
        caller.ask(ELICITATION, Some(raw(&serde_json::json!({ "message": "?" })))).await.unwrap_err();
    }

    #[tokio::test]
    async fn logs_below_the_wanted_level_stay_away() {
        let (caller, mut incoming) = caller("{}");
        for level in ["debug", "warning", "nonsense", "error"] {
            caller.forward_log(&raw(&serde_json::json!({"level": level, "data": level})));
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
            let Some(CallerMessage::Ask { answer, .. }) = incoming.recv().await else { panic!() };
            answer.send(Ok(empty_object())).unwrap();
        });
        assert_eq!(caller.ask("elicitation/create", None).await.unwrap().get(), "{}");
        answering.await.unwrap();
    }
}
