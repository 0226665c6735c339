//! A connection to a server over streamable HTTP.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use pml_model::json::{Fields, raw};
use reqwest::{Response as HttpResponse, StatusCode};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::caller::Caller;
use crate::client::failure::{Failure, Lost, NotSent};
use crate::client::pending::{Event, Pending};
use crate::client::stream::{answer, too_many_questions};
use crate::message::{self, Id, MAX_MESSAGE_BYTES, Message, Response, RpcError, code};
use crate::param_headers;
use crate::protocol::{Era, MODERN};
use crate::sse;

/// A server that is reached by URL.
#[derive(Debug, Clone)]
pub struct Remote {
    /// The MCP endpoint.
    pub url: String,
    /// Sent with every request: credentials, mostly.
    pub headers: Vec<(String, String)>,
}

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest an idle stream of a server is left before it is opened again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The way to one server; clones are the same link.
#[derive(Debug, Clone)]
pub(crate) struct HttpLink {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    http: reqwest::Client,
    url: String,
    headers: HeaderMap,
    pending: Pending,
    standing: Mutex<Standing>,
    events: mpsc::Sender<Event>,
    stop: CancellationToken,
    closing: watch::Sender<Option<String>>,
}

#[derive(Debug, Default, Clone)]
struct Standing {
    session: Option<String>,
    version: Option<String>,
}

/// One request, as far as HTTP must know it.
pub(crate) struct Post<'a> {
    pub(crate) id: u64,
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a RawValue>,
    /// `Mcp-Param-*`, for stateless servers.
    pub(crate) mirrored: &'a [(String, String)],
    pub(crate) caller: &'a Caller,
    pub(crate) deadline: Instant,
    pub(crate) cancel: &'a CancellationToken,
}

impl HttpLink {
    pub(crate) fn new(
        remote: &Remote,
        events: mpsc::Sender<Event>,
        stop: CancellationToken,
    ) -> Result<HttpLink, String> {
        install_tls();
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // A redirect could take credentials elsewhere, and turns a POST into a GET.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| error.to_string())?;
        let mut headers = HeaderMap::new();
        for (name, value) in &remote.headers {
            let name: HeaderName = name.parse().map_err(|_| format!("`{name}` is not a header name"))?;
            let mut value = HeaderValue::from_str(value).map_err(|_| {
                format!("the value of header `{name}` has characters that a header cannot carry")
            })?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let inner = Inner {
            http,
            url: remote.url.clone(),
            headers,
            pending: Pending::default(),
            standing: Mutex::default(),
            events,
            stop,
            closing: watch::Sender::new(None),
        };
        Ok(HttpLink { inner: Arc::new(inner) })
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.inner.pending.next_id()
    }

    pub(crate) fn closed(&self) -> Option<String> {
        self.inner.closing.borrow().clone()
    }

    /// Fixes the version that was agreed on, and with it the form of all further requests.
    pub(crate) fn agree(&self, version: &str) {
        self.standing().version = Some(version.to_owned());
    }

    /// Goes back to the time before a version was agreed on.
    pub(crate) fn forget_version(&self) {
        *self.standing() = Standing::default();
    }

    pub(crate) async fn request(&self, post: Post<'_>) -> Result<Box<RawValue>, Failure> {
        let inner = &self.inner;
        let mut open = Open { link: self, id: post.id, answered: false };
        drop(inner.pending.wait_for(post.id, post.caller.clone()));
        let outcome = tokio::select! {
            outcome = self.exchange(&post) => {
                open.answered = true;
                outcome
            }
            () = post.cancel.cancelled() => Err(Failure::Unknown(Lost::Cancelled)),
            () = post.caller.patience(post.deadline) => Err(Failure::Unknown(Lost::Timeout)),
            () = inner.stop.cancelled() => Err(Failure::Unknown(Lost::Died("PML closed the connection".into()))),
        };
        if let Err(Failure::NotSent(reason @ NotSent::SessionEnded)) = &outcome {
            self.close(reason.to_string());
        }
        outcome
    }

    /// Sends a notification and waits until the server has taken it.
    pub(crate) async fn notify(&self, method: &str, params: Option<&RawValue>) -> Result<(), Failure> {
        let body = message::notification(method, params);
        let response = self.post(body, method, None, &[]).await?;
        if response.status().is_success() { Ok(()) } else { Err(self.refused(response).await) }
    }

    pub(crate) fn notify_later(&self, method: &'static str, params: Box<RawValue>) {
        let link = self.clone();
        tokio::spawn(async move {
            if let Err(error) = link.notify(method, Some(&params)).await {
                tracing::debug!(%error, method, "a notification did not arrive");
            }
        });
    }

    /// Opens the stream on which an older server speaks on its own account, if it has one.
    pub(crate) fn listen(&self) {
        let link = self.clone();
        tokio::spawn(async move {
            let stop = link.inner.stop.clone();
            tokio::select! {
                () = link.keep_listening() => {}
                () = stop.cancelled() => {}
            }
        });
    }

    async fn keep_listening(&self) {
        let mut last_id = None;
        let mut pause = Duration::from_secs(1);
        loop {
            let Ok(response) = self.get(last_id.as_deref()).await else { return };
            if !is_event_stream(&response) {
                return;
            }
            let mut decoder = sse::Decoder::default();
            if self.read_events(response, &mut decoder, None).await.is_err() {
                return;
            }
            last_id = decoder.last_id().map(str::to_owned).or(last_id);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Ends the session at the server, as far as it has one.
    pub(crate) async fn farewell(&self) {
        let standing = self.standing().clone();
        if let Some(session) = standing.session {
            let request = self.inner.http.delete(&self.inner.url).headers(self.inner.headers.clone());
            let request = request.header("Mcp-Session-Id", session).timeout(Duration::from_secs(2));
            if let Err(error) = request.send().await {
                tracing::debug!(%error, "a session could not be ended");
            }
        }
    }

    fn close(&self, reason: String) {
        self.inner.closing.send_replace(Some(reason.clone()));
        if self.inner.events.try_send(Event::Closed(reason)).is_err() {
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

    fn standing(&self) -> std::sync::MutexGuard<'_, Standing> {
        self.inner.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn exchange(&self, post: &Post<'_>) -> Result<Box<RawValue>, Failure> {
        let body = message::request(&Id::number(post.id), post.method, post.params);
        if body.len() > MAX_MESSAGE_BYTES {
            return Err(Failure::NotSent(NotSent::TooLarge));
        }
        let response = self.post(body, post.method, post.params, post.mirrored).await?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        if post.method == "initialize" {
            let session = response.headers().get("mcp-session-id").and_then(|value| value.to_str().ok());
            self.standing().session = session.map(str::to_owned);
        }
        if !is_event_stream(&response) {
            let mut body =
                read_body(response).await.map_err(|reason| Failure::Unknown(Lost::Garbage(reason)))?;
            return match Message::take(&mut body) {
                Ok(Message::Response(answer)) => self.settle(post.id, answer).await,
                Ok(_) => Err(Failure::Unknown(Lost::Garbage("no answer in the response".into()))),
                Err(error) => Err(Failure::Unknown(Lost::Garbage(error.to_string()))),
            };
        }
        self.follow(response, post.id).await
    }

    /// Reads the stream that answers a request, and takes it up again where it was cut.
    async fn follow(&self, mut response: HttpResponse, id: u64) -> Result<Box<RawValue>, Failure> {
        loop {
            let mut decoder = sse::Decoder::default();
            let read = self.read_events(response, &mut decoder, Some(id)).await;
            if let Some(answer) = read.map_err(|reason| Failure::Unknown(Lost::Garbage(reason)))?.answer {
                return self.settle(id, answer).await;
            }
            let Some(last_id) = decoder.last_id() else {
                return Err(Failure::Unknown(Lost::Died("it ended the stream without an answer".into())));
            };
            tokio::time::sleep(Duration::from_millis(decoder_pause(&decoder))).await;
            // The request itself was taken: whatever goes wrong now, the server may have acted on it.
            let resumed = self.get(Some(last_id)).await;
            response = resumed.map_err(|failure| Failure::Unknown(Lost::Died(failure.to_string())))?;
            if !is_event_stream(&response) {
                return Err(Failure::Unknown(Lost::Died(
                    "it cut the stream and did not take it up again".into(),
                )));
            }
        }
    }

    /// Reads events until the stream ends or the answer to `id` came.
    async fn read_events(
        &self,
        response: HttpResponse,
        decoder: &mut sse::Decoder,
        id: Option<u64>,
    ) -> Result<Read, String> {
        let mut chunks = response.bytes_stream();
        let mut events = Vec::new();
        while let Some(chunk) = chunks.next().await {
            // A stream that breaks off is one that ended: it may be taken up again.
            let Ok(chunk) = chunk else { break };
            let pushed = decoder.push(&chunk, MAX_MESSAGE_BYTES, |event| events.push(event));
            pushed.map_err(|sse::TooLong| "an event longer than a message may be".to_owned())?;
            for event in events.drain(..) {
                if let Some(answer) = self.take(event, id).await {
                    return Ok(Read { answer: Some(answer) });
                }
            }
        }
        Ok(Read { answer: None })
    }

    async fn take(&self, event: sse::Event, about: Option<u64>) -> Option<Response> {
        if event.data.is_empty() {
            return None;
        }
        match Message::take(&mut event.data.into_bytes()) {
            Ok(Message::Response(response)) => {
                if about.is_some() && response.id.as_ref().and_then(Id::as_number) == about {
                    return Some(response);
                }
                tracing::debug!(id = ?response.id, "an answer on a stream it does not belong to was dropped");
            }
            Ok(Message::Notification(notification)) => {
                if let Some(event) = self.inner.pending.route(&notification, about)
                    && self.inner.events.send(event).await.is_err()
                {
                    tracing::debug!("nobody listens to this server any more");
                }
            }
            Ok(Message::Request(request)) => {
                let (link, pending) = (self.clone(), &self.inner.pending);
                let caller = about.and_then(|id| pending.caller(id)).or_else(|| pending.only_caller());
                let Some(room) = pending.question() else {
                    let body = message::response(Some(&request.id), &Err(too_many_questions()));
                    if let Err(error) = self.post(body, "", None, &[]).await {
                        tracing::debug!(%error, "an answer did not reach the server");
                    }
                    return None;
                };
                tokio::spawn(async move {
                    let _room = room;
                    let outcome = answer(&request.method, request.params, caller).await;
                    let body = message::response(Some(&request.id), &outcome);
                    if let Err(error) = link.post(body, "", None, &[]).await {
                        tracing::debug!(%error, "an answer did not reach the server");
                    }
                });
            }
            Err(error) => tracing::debug!(%error, "an event that is no message was skipped"),
        }
        None
    }

    /// Passes an answer through the same checks as on any other link.
    async fn settle(&self, id: u64, mut answer: Response) -> Result<Box<RawValue>, Failure> {
        // A refusal may come without an id; on this stream it can only be about this request.
        answer.id.get_or_insert_with(|| Id::number(id));
        if answer.id.as_ref().and_then(Id::as_number) != Some(id) {
            return Err(Failure::Unknown(Lost::Garbage("an answer to another request".into())));
        }
        let settled = self.inner.pending.wait_for(id, Caller::silent());
        self.inner.pending.resolve(answer);
        settled.await.unwrap_or_else(|_| Err(Failure::Unknown(Lost::Died("the connection ended".into()))))
    }

    async fn post(
        &self,
        body: String,
        method: &str,
        params: Option<&RawValue>,
        mirrored: &[(String, String)],
    ) -> Result<HttpResponse, Failure> {
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
            if let Some(name) = name_of(method, params) {
                request = request.header("Mcp-Name", param_headers::encode(&name));
            }
            for (header, value) in mirrored {
                request = request.header(header, param_headers::encode(value));
            }
        }
        request.body(body).send().await.map_err(|error| unreachable_server(&error))
    }

    async fn get(&self, last_id: Option<&str>) -> Result<HttpResponse, Failure> {
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
        request.send().await.map_err(|error| unreachable_server(&error))
    }

    /// What a status other than success means.
    async fn refused(&self, response: HttpResponse) -> Failure {
        let status = response.status();
        let wait = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.parse().ok());
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return Failure::NotSent(NotSent::Unauthorized(status.as_u16()));
            }
            StatusCode::TOO_MANY_REQUESTS => {
                return Failure::NotSent(NotSent::RateLimited(Duration::from_secs(wait.unwrap_or(1))));
            }
            StatusCode::NOT_FOUND if self.standing().session.is_some() => {
                return Failure::NotSent(NotSent::SessionEnded);
            }
            _ => {}
        }
        let location =
            response.headers().get("location").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = read_body(response).await.unwrap_or_default();
        if let Ok(Message::Response(Response { outcome: Err(error), .. })) = Message::parse(&body) {
            return Failure::Rpc(error);
        }
        if status.is_server_error() {
            return Failure::Unknown(Lost::Garbage(format!("HTTP {status}")));
        }
        let redirect = location
            .map(|to| format!(", redirecting to {}", pml_model::name::printable(&to)))
            .unwrap_or_default();
        Failure::Rpc(RpcError::new(code::INTERNAL_ERROR, format!("HTTP {status}{redirect}")))
    }
}

/// A request that is under way. However it ends, also by being dropped, it is not left behind.
struct Open<'a> {
    link: &'a HttpLink,
    id: u64,
    answered: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.link.inner.pending.forget(self.id);
        // A stateless server sees the closed stream; an older one has to be told.
        if !self.answered && self.link.era() == Era::Legacy {
            let params =
                raw(&serde_json::json!({"requestId": self.id, "reason": "the caller no longer waits"}));
            self.link.notify_later("notifications/cancelled", params);
        }
    }
}

struct Read {
    answer: Option<Response>,
}

fn decoder_pause(decoder: &sse::Decoder) -> u64 {
    decoder.retry_ms().unwrap_or(500).clamp(50, 30_000)
}

fn unreachable_server(error: &reqwest::Error) -> Failure {
    // reqwest's own text is only "error sending request"; what happened is at the end of the chain.
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    if error.is_connect() || error.is_builder() {
        Failure::NotSent(NotSent::Connect(cause.to_string()))
    } else {
        Failure::Unknown(Lost::Died(cause.to_string()))
    }
}

fn is_event_stream(response: &HttpResponse) -> bool {
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

/// What `Mcp-Name` mirrors.
pub(crate) fn name_of(method: &str, params: Option<&RawValue>) -> Option<String> {
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return None,
    };
    Fields::parse(params?.get()).ok()?.read(key)
}

/// Makes *ring* the process's cryptography, once.
fn install_tls() {
    // A second call finds a provider installed, which is what was wanted.
    drop(rustls::crypto::ring::default_provider().install_default());
}
