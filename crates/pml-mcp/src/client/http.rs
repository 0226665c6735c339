//! The streamable HTTP transport of the client.

mod events;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use pml_model::json::{Fields, raw};
use reqwest::{RequestBuilder, Response as HttpResponse, StatusCode};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::caller::Caller;
use crate::client::authorizer::{AuthChallenge, Authorizer, TokenRefusal};
use crate::client::failure::{LostReason, NotSentReason, RequestFailure};
use crate::client::pending::{ConnectionEvent, PendingRequests, RequestClock};
use crate::client::stream::{answer_question, too_many_questions};
use crate::message::{self, MAX_MESSAGE_BYTES, RequestId, RpcError, RpcMessage, RpcResponse, code};
use crate::param_headers;
use crate::protocol::{Era, MODERN};
use crate::sse::SseEvent;

/// A server that is reached by URL.
#[derive(Debug, Clone)]
pub struct RemoteServer {
    /// URL of the MCP endpoint.
    pub url: String,
    /// Headers for every request, mostly credentials.
    pub headers: Vec<(String, String)>,
    /// Gives out the tokens, if the server may want some.
    pub authorizer: Option<Arc<dyn Authorizer>>,
}

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a message without a waiting caller may take to be delivered, also while the connection closes.
const SHORT_PATIENCE: Duration = Duration::from_secs(2);
/// The transport to one server; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct HttpTransport {
    inner: Arc<HttpTransportInner>,
}

#[derive(Debug)]
struct HttpTransportInner {
    http: reqwest::Client,
    url: String,
    headers: HeaderMap,
    authorizer: Option<Arc<dyn Authorizer>>,
    pending: PendingRequests,
    standing: Mutex<HttpSessionState>,
    events: mpsc::Sender<ConnectionEvent>,
    stop: CancellationToken,
    tasks: TaskTracker,
    closing: watch::Sender<Option<String>>,
}

#[derive(Debug, Default, Clone)]
struct HttpSessionState {
    session: Option<String>,
    version: Option<String>,
    /// The status of the last request that was refused.
    refused: Option<StatusCode>,
}

/// One request, with what HTTP needs to know of it.
pub(crate) struct PostRequest<'a> {
    pub(crate) id: u64,
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a RawValue>,
    /// `Mcp-Param-*` headers, for stateless servers.
    pub(crate) mirrored: &'a [(String, String)],
    pub(crate) caller: &'a Caller,
    pub(crate) clock: &'a Arc<RequestClock>,
    pub(crate) cancel: &'a CancellationToken,
}

impl HttpTransport {
    /// The transport to `remote`. Its background tasks belong to `tasks` and end when `stop` is cancelled.
    pub(crate) fn new(
        remote: &RemoteServer,
        events: mpsc::Sender<ConnectionEvent>,
        (stop, tasks): (CancellationToken, TaskTracker),
    ) -> Result<HttpTransport, String> {
        install_tls();
        let mut http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // A redirect could take credentials elsewhere, and turns a POST into a GET.
            .redirect(reqwest::redirect::Policy::none());
        if is_on_this_machine(&remote.url) {
            // A proxy would look for it on a machine of its own.
            http = http.no_proxy();
        }
        let http = http.build().map_err(|error| error.to_string())?;
        let mut headers = HeaderMap::new();
        for (name, value) in &remote.headers {
            let name: HeaderName = name.parse().map_err(|_| format!("`{name}` is not a header name"))?;
            let mut value = HeaderValue::from_str(value).map_err(|_| {
                format!("the value of header `{name}` has characters that a header cannot carry")
            })?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let inner = HttpTransportInner {
            http,
            url: remote.url.clone(),
            headers,
            authorizer: remote.authorizer.clone(),
            pending: PendingRequests::default(),
            standing: Mutex::default(),
            events,
            stop,
            tasks,
            closing: watch::Sender::new(None),
        };
        Ok(HttpTransport { inner: Arc::new(inner) })
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.inner.pending.next_id()
    }

    pub(crate) fn closed_reason(&self) -> Option<String> {
        self.inner.closing.borrow().clone()
    }

    /// Sets the negotiated version, which determines the form of all further requests.
    pub(crate) fn set_version(&self, version: &str) {
        self.standing().version = Some(version.to_owned());
    }

    /// The URL of the server.
    pub(crate) fn url(&self) -> &str {
        &self.inner.url
    }

    /// Whether the last request was refused as servers do that know only the transport of 2024-11-05.
    pub(crate) fn may_be_older(&self) -> bool {
        let handled = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS];
        self.standing().refused.is_some_and(|status| status.is_client_error() && !handled.contains(&status))
    }

    /// Posts a message to the address that an older server named.
    pub(crate) async fn post_message(
        &self,
        address: reqwest::Url,
        body: String,
    ) -> Result<HttpResponse, RequestFailure> {
        let request = self.inner.http.post(address).headers(self.inner.headers.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        self.send(request, Refused::NewToken, &Wire::default()).await
    }

    /// Returns to the state before a version was negotiated.
    pub(crate) fn forget_version(&self) {
        *self.standing() = HttpSessionState::default();
    }

    pub(crate) async fn request(&self, post: PostRequest<'_>) -> Result<Box<RawValue>, RequestFailure> {
        let inner = &self.inner;
        let wire = Wire::default();
        let mut open = HttpRequestGuard { link: self, id: post.id, answered: false, wire: &wire };
        drop(inner.pending.register(post.id, post.caller.clone(), Arc::clone(post.clock)));
        let outcome = tokio::select! {
            outcome = self.exchange(&post, &wire) => {
                open.answered = true;
                outcome
            }
            () = post.cancel.cancelled() => Err(wire.failure(NotSentReason::Cancelled, LostReason::Cancelled)),
            () = post.caller.wait_until(|| post.clock.deadline()) => {
                let waiting = "its authorization server gave no token before the deadline".to_owned();
                Err(wire.failure(NotSentReason::Connect(waiting), LostReason::Timeout))
            }
            () = inner.stop.cancelled() => {
                let why = "PML closed the connection".to_owned();
                Err(wire.failure(NotSentReason::Closed(why.clone()), LostReason::ServerEnded(why)))
            }
        };
        if let Err(RequestFailure::NotSent(reason @ NotSentReason::SessionEnded)) = &outcome {
            self.close(reason.to_string());
        }
        outcome
    }

    /// Sends a notification and waits until the server has accepted it.
    pub(crate) async fn notify(&self, method: &str, params: Option<&RawValue>) -> Result<(), RequestFailure> {
        let body = message::encode_notification(method, params);
        let response = self.post(body, (method, None), &[], &Wire::default()).await?;
        if response.status().is_success() { Ok(()) } else { Err(self.refused(response).await) }
    }

    pub(crate) fn notify_later(&self, method: &'static str, params: Box<RawValue>) {
        if self.inner.stop.is_cancelled() {
            // The session that it concerns was ended with the connection.
            return;
        }
        let link = self.clone();
        self.inner.tasks.spawn(async move {
            match tokio::time::timeout(SHORT_PATIENCE, link.notify(method, Some(&params))).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, method, "a notification did not arrive"),
                Err(_) => tracing::debug!(method, "a notification was not taken in time"),
            }
        });
    }

    /// Ends the session at the server, if there is one.
    pub(crate) async fn end_session(&self) {
        let standing = self.standing().clone();
        if let Some(session) = standing.session {
            let request = self.inner.http.delete(&self.inner.url).headers(self.inner.headers.clone());
            let request = request.header("Mcp-Session-Id", session).timeout(SHORT_PATIENCE);
            let ended =
                tokio::time::timeout(SHORT_PATIENCE, self.send(request, Refused::Final, &Wire::default()))
                    .await;
            if let Ok(Err(error)) = ended {
                tracing::debug!(%error, "a session could not be ended");
            }
        }
    }

    fn close(&self, reason: String) {
        self.inner.closing.send_replace(Some(reason.clone()));
        if self.inner.events.try_send(ConnectionEvent::Closed(reason)).is_err() {
            tracing::debug!("nobody listens to this server any more");
        }
    }

    fn era(&self) -> Era {
        if self.standing().version.as_deref().is_none_or(|version| version == MODERN) {
            Era::Modern
        } else {
            Era::Legacy
        }
    }

    fn standing(&self) -> std::sync::MutexGuard<'_, HttpSessionState> {
        self.inner.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn exchange(&self, post: &PostRequest<'_>, wire: &Wire) -> Result<Box<RawValue>, RequestFailure> {
        let body = message::encode_request(&RequestId::from_number(post.id), post.method, post.params);
        if body.len() > MAX_MESSAGE_BYTES {
            return Err(RequestFailure::NotSent(NotSentReason::TooLarge));
        }
        let response = self.post(body, (post.method, post.params), post.mirrored, wire).await?;
        if !response.status().is_success() {
            self.standing().refused = Some(response.status());
            return Err(self.refused(response).await);
        }
        if post.method == "initialize" {
            let session = response.headers().get("mcp-session-id").and_then(|value| value.to_str().ok());
            self.standing().session = session.map(str::to_owned);
        }
        if !is_event_stream(&response) {
            let mut body = read_body(response)
                .await
                .map_err(|reason| RequestFailure::Unknown(LostReason::UnusableAnswer(reason)))?;
            return match RpcMessage::parse_from_buffer(&mut body) {
                Ok(RpcMessage::Response(answer)) => self.settle(post.id, answer).await,
                Ok(_) => Err(RequestFailure::Unknown(LostReason::UnusableAnswer(
                    "no answer in the response".into(),
                ))),
                Err(error) => Err(RequestFailure::Unknown(LostReason::UnusableAnswer(error.to_string()))),
            };
        }
        self.follow(response, post.id).await
    }

    async fn take(&self, event: SseEvent, about: Option<u64>) -> Option<RpcResponse> {
        if event.data.is_empty() {
            return None;
        }
        match RpcMessage::parse_from_buffer(&mut event.data.into_bytes()) {
            Ok(RpcMessage::Response(response)) => {
                if about.is_some() && response.id.as_ref().and_then(RequestId::as_number) == about {
                    return Some(response);
                }
                tracing::debug!(id = ?response.id, "an answer on a stream it does not belong to was dropped");
            }
            Ok(RpcMessage::Notification(notification)) => {
                if let Some(event) = self.inner.pending.route_notification(&notification, about)
                    && self.inner.events.send(event).await.is_err()
                {
                    tracing::debug!("nobody listens to this server any more");
                }
            }
            Ok(RpcMessage::Request(request)) => {
                let (link, pending) = (self.clone(), &self.inner.pending);
                let caller = about.and_then(|id| pending.caller_of(id)).or_else(|| pending.only_caller());
                let Some(room) = pending.question_permit() else {
                    let body = message::encode_response(Some(&request.id), &Err(too_many_questions()));
                    if let Err(error) = self.post(body, ("", None), &[], &Wire::default()).await {
                        tracing::debug!(%error, "an answer did not reach the server");
                    }
                    return None;
                };
                self.inner.tasks.spawn(async move {
                    let _room = room;
                    let answering = async {
                        let outcome = answer_question(&request.method, request.params, caller).await;
                        let body = message::encode_response(Some(&request.id), &outcome);
                        if let Err(error) = link.post(body, ("", None), &[], &Wire::default()).await {
                            tracing::debug!(%error, "an answer did not reach the server");
                        }
                    };
                    link.inner.stop.run_until_cancelled(answering).await;
                });
            }
            Err(error) => tracing::debug!(%error, "an event that is no message was skipped"),
        }
        None
    }

    /// Passes a response through the same checks as on any other transport.
    async fn settle(&self, id: u64, mut answer: RpcResponse) -> Result<Box<RawValue>, RequestFailure> {
        // An error may come without an id; on this stream it can only concern this request.
        answer.id.get_or_insert_with(|| RequestId::from_number(id));
        if answer.id.as_ref().and_then(RequestId::as_number) != Some(id) {
            return Err(RequestFailure::Unknown(LostReason::UnusableAnswer(
                "an answer to another request".into(),
            )));
        }
        let clock = RequestClock::new(Instant::now(), None);
        let settled = self.inner.pending.register(id, Caller::silent(), clock);
        self.inner.pending.deliver_response(answer);
        settled.await.unwrap_or_else(|_| {
            Err(RequestFailure::Unknown(LostReason::ServerEnded("the connection ended".into())))
        })
    }

    async fn post(
        &self,
        body: String,
        (method, params): (&str, Option<&RawValue>),
        mirrored: &[(String, String)],
        wire: &Wire,
    ) -> Result<HttpResponse, RequestFailure> {
        let standing = self.standing().clone();
        let mut request = self
            .inner
            .http
            .post(&self.inner.url)
            .headers(self.inner.headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        if let Some(version) = &standing.version {
            request = request.header("MCP-Protocol-Version", version);
        }
        if let Some(session) = &standing.session {
            request = request.header("Mcp-Session-Id", session);
        }
        if standing.version.as_deref() == Some(MODERN) && !method.is_empty() {
            request = request.header("Mcp-Method", method);
            if let Some(name) = mirrored_name(method, params) {
                request = request.header("Mcp-Name", param_headers::encode(&name));
            }
            for (header, value) in mirrored {
                request = request.header(header, param_headers::encode(value));
            }
        }
        self.send(request.body(body), Refused::NewToken, wire).await
    }

    /// Sends a request with the token of the server, if it has one. A request that is refused for its token was not
    /// acted on, so it may be sent once more with another.
    async fn send(
        &self,
        request: RequestBuilder,
        refused: Refused,
        wire: &Wire,
    ) -> Result<HttpResponse, RequestFailure> {
        let failed = |error: reqwest::Error| unreachable_server(&error);
        let Some(authorizer) = &self.inner.authorizer else {
            wire.set_used();
            return request.send().await.map_err(failed);
        };
        let again = request.try_clone();
        let used = authorizer.token().await.map_err(|refusal| no_token(&refusal))?;
        let request = with_token(request, used.as_deref())?;
        wire.set_used();
        let response = request.send().await.map_err(failed)?;
        let challenge = challenge(&response, used.is_some()).filter(|_| refused == Refused::NewToken);
        let Some(challenge) = challenge else { return Ok(response) };
        drop(response);
        wire.set_free();
        let token = authorizer.replace(used.as_deref(), &challenge).await;
        let token = token.map_err(|refusal| no_token(&refusal))?;
        let Some(again) = again else {
            return Err(RequestFailure::NotSent(NotSentReason::Unauthorized(challenge.status)));
        };
        let again = with_token(again, Some(&token))?;
        wire.set_used();
        again.send().await.map_err(failed)
    }

    /// Asks for an event stream, after the event `last_id` if there is one.
    pub(crate) async fn get(
        &self,
        last_id: Option<&str>,
        refused: Refused,
    ) -> Result<HttpResponse, RequestFailure> {
        let standing = self.standing().clone();
        let mut request = self
            .inner
            .http
            .get(&self.inner.url)
            .headers(self.inner.headers.clone())
            .header(ACCEPT, "text/event-stream");
        for (name, value) in [
            ("Mcp-Session-Id", standing.session.as_deref()),
            ("MCP-Protocol-Version", standing.version.as_deref()),
            ("Last-Event-ID", last_id),
        ] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        self.send(request, refused, &Wire::default()).await
    }

    /// The failure that an HTTP status other than success stands for.
    pub(crate) async fn refused(&self, response: HttpResponse) -> RequestFailure {
        let status = response.status();
        let wait = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.parse().ok());
        match status {
            StatusCode::UNAUTHORIZED if self.inner.authorizer.is_some() => {
                let why = "the server refused a token that was just renewed".to_owned();
                return RequestFailure::NotSent(NotSentReason::SignInRequired(why));
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return RequestFailure::NotSent(NotSentReason::Unauthorized(status.as_u16()));
            }
            StatusCode::TOO_MANY_REQUESTS => {
                return RequestFailure::NotSent(NotSentReason::RateLimited(Duration::from_secs(
                    wait.unwrap_or(1),
                )));
            }
            StatusCode::NOT_FOUND if self.standing().session.is_some() => {
                return RequestFailure::NotSent(NotSentReason::SessionEnded);
            }
            _ => {}
        }
        let location =
            response.headers().get("location").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = read_body(response).await.unwrap_or_default();
        if let Ok(RpcMessage::Response(RpcResponse { outcome: Err(error), .. })) = RpcMessage::parse(&body) {
            return RequestFailure::Rpc(error);
        }
        if status.is_server_error() {
            return RequestFailure::Unknown(LostReason::UnusableAnswer(format!("HTTP {status}")));
        }
        let redirect = location
            .map(|to| format!(", redirecting to {}", pml_model::name::printable(&to)))
            .unwrap_or_default();
        RequestFailure::Rpc(RpcError::new(code::INTERNAL_ERROR, format!("HTTP {status}{redirect}")))
    }
}

/// What follows when a server refuses the token of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Another token is asked for, and the request is sent again.
    NewToken,
    /// The refusal is returned. Some servers refuse all requests of a kind with 401, which says nothing of the token.
    Final,
}

/// Whether a request may have reached the server. While its token is renewed it has not.
#[derive(Debug, Default)]
struct Wire(AtomicBool);

impl Wire {
    fn set_used(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn set_free(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    fn carries_request(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The failure of a request that is given up now.
    fn failure(&self, not_sent: NotSentReason, lost: LostReason) -> RequestFailure {
        if self.carries_request() { RequestFailure::Unknown(lost) } else { RequestFailure::NotSent(not_sent) }
    }
}

/// A request that is not finished. However it ends, also by being dropped, it is removed and cancelled.
struct HttpRequestGuard<'a> {
    link: &'a HttpTransport,
    id: u64,
    answered: bool,
    wire: &'a Wire,
}

impl Drop for HttpRequestGuard<'_> {
    fn drop(&mut self) {
        self.link.inner.pending.forget(self.id);
        // A stateless server sees the closed stream; a legacy one needs a notification.
        if !self.answered && self.wire.carries_request() && self.link.era() == Era::Legacy {
            let params =
                raw(&serde_json::json!({"requestId": self.id, "reason": "the caller no longer waits"}));
            self.link.notify_later("notifications/cancelled", params);
        }
    }
}

/// A request with a token in its header, which logs do not show.
fn with_token(request: RequestBuilder, token: Option<&str>) -> Result<RequestBuilder, RequestFailure> {
    let Some(token) = token else { return Ok(request) };
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| {
        RequestFailure::NotSent(NotSentReason::SignInRequired("the token does not fit into a header".into()))
    })?;
    value.set_sensitive(true);
    Ok(request.header(AUTHORIZATION, value))
}

fn no_token(refusal: &TokenRefusal) -> RequestFailure {
    RequestFailure::NotSent(match refusal {
        TokenRefusal::SignInRequired(why) => NotSentReason::SignInRequired(why.clone()),
        TokenRefusal::Unavailable(why) => NotSentReason::Connect(why.clone()),
    })
}

/// The challenge of a response that refuses the token: a 401, or a 403 that says so. Any other 403 is an answer to a
/// request whose token was good.
fn challenge(response: &HttpResponse, has_token: bool) -> Option<AuthChallenge> {
    let values = response.headers().get_all(WWW_AUTHENTICATE).iter();
    let headers: Vec<String> =
        values.filter_map(|value| value.to_str().ok()).map(ToOwned::to_owned).collect();
    let refuses = match response.status() {
        StatusCode::UNAUTHORIZED => true,
        StatusCode::FORBIDDEN => {
            !has_token && !headers.is_empty()
                || headers.iter().any(|value| value.contains("insufficient_scope"))
        }
        _ => false,
    };
    refuses.then(|| AuthChallenge { status: response.status().as_u16(), headers })
}

fn unreachable_server(error: &reqwest::Error) -> RequestFailure {
    // The text of reqwest is only "error sending request"; the cause is at the end of the chain.
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    if error.is_connect() || error.is_builder() {
        RequestFailure::NotSent(NotSentReason::Connect(cause.to_string()))
    } else {
        RequestFailure::Unknown(LostReason::ServerEnded(cause.to_string()))
    }
}

/// Whether a URL leads to this machine.
fn is_on_this_machine(url: &str) -> bool {
    let url = reqwest::Url::parse(url).ok();
    let host = url.as_ref().and_then(reqwest::Url::host_str).unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    address.is_ok_and(|address| address.is_loopback()) || host == "localhost" || host.ends_with(".localhost")
}

pub(crate) fn is_event_stream(response: &HttpResponse) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    response.status().is_success() && kind.starts_with("text/event-stream")
}

async fn read_body(response: HttpResponse) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| error.to_string())?;
        if body.len() + chunk.len() > MAX_MESSAGE_BYTES {
            return Err("a body longer than a message may be".to_owned());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The value that `Mcp-Name` mirrors.
pub(crate) fn mirrored_name(method: &str, params: Option<&RawValue>) -> Option<String> {
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    Fields::parse(params?.get()).ok()?.read(key)
}

/// Installs *ring* as the cryptography provider of the process, once.
fn install_tls() {
    // A second call finds a provider installed, which is fine.
    drop(rustls::crypto::ring::default_provider().install_default());
}
