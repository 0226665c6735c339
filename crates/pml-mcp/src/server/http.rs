//! The streamable HTTP transport of the server, both eras on one endpoint.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::{Stream, StreamExt as _};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use pml_model::Digest;
use pml_model::json::{Fields, empty_object};
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::client::mirrored_name;
use crate::message::{
    self, MAX_MESSAGE_BYTES, RequestId, RpcError, RpcMessage, RpcNotification, RpcRequest, code,
};
use crate::param_headers;
use crate::pieces::ChunkedText;
use crate::protocol::{LATEST_LEGACY, LEGACY, MODERN};
use crate::server::body;
use crate::server::connections::{Connections, Socket, WatchedService};
use crate::server::envelope::{self, RequestSender};
use crate::server::listen::{SubscriptionFilter, session_message};
use crate::server::replay::{EventStreams, SessionReply, record};
use crate::server::reply_limits::{KEEP_ALIVE, PART_BYTES, QUIET};
use crate::server::run::{RequestOutput, RunningRequest};
use crate::server::session::{self, McpSession, RequestCancellation};
use crate::server::session_id;
use crate::server::{ChangeNotice, ClientIdentity, McpServer, RequestTransport, changes_to_announce};
use crate::sse;

/// How long a session may stay unused before it ends.
const SESSION_IDLE: Duration = Duration::from_secs(3600);
/// Maximum number of sessions.
const MAX_SESSIONS: usize = 1_000;
/// How long a client may take to send its headers, and how long a connection may be idle between requests.
const HEADER_PATIENCE: Duration = Duration::from_secs(10);
/// Maximum size of all headers of a request, in bytes.
const MAX_HEADER_BYTES: usize = 16 * 1024;
/// The id of the events of changes. They are not numbered: a client that comes back learns what can have changed.
const CHANGES: &str = "changes";

/// The MCP endpoint at `/mcp`. The access check of the whole program must stand in front of it.
pub fn router(server: McpServer, stop: CancellationToken) -> Router {
    let endpoint = Arc::new(McpEndpoint {
        server,
        sessions: Mutex::default(),
        ended: Mutex::default(),
        streams: Arc::default(),
        stop,
    });
    Router::new().route("/mcp", post(take).get(stream).delete(end)).with_state(endpoint)
}

/// How long open requests get to end once the listener stops.
const FAREWELL: Duration = Duration::from_secs(5);

/// Serves `router` on `listener` until `stop`. Open requests then get `FAREWELL` to end, and the rest are cut.
/// [`McpServer::close`] ends the tasks that requests have started.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let mut builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_PATIENCE)
        .max_buf_size(MAX_HEADER_BYTES);
    let builder = Arc::new(builder.http1_only());
    let connections = Connections::for_this_process();
    let mut tasks = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = tasks.join_next() => continue,
            () = stop.cancelled() => break,
        };
        let Ok((socket, _)) = accepted else {
            // The cause is mostly too many open files, and connections that close make room.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "a socket is gone already");
        }
        // The socket is closed without a reply: there is no room to read the request first.
        let Some(peer) = connections.admit_connection() else { continue };
        let inner = hyper_util::service::TowerToHyperService::new(router.clone());
        let service = WatchedService { inner, peer: Arc::clone(&peer) };
        let (builder, stop) = (Arc::clone(&builder), stop.clone());
        tasks.spawn(async move {
            let connection = builder.serve_connection(TokioIo::new(Socket::new(socket)), service);
            tokio::pin!(connection);
            let served = tokio::select! {
                served = connection.as_mut() => served,
                () = peer.evicted() => return,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = served {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }
    let ending = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(FAREWELL, ending).await.is_err() {
        tracing::debug!("connections were cut at the end");
        tasks.shutdown().await;
    }
}

struct McpEndpoint {
    server: McpServer,
    sessions: Mutex<HashMap<String, HttpSessionEntry>>,
    /// The ids of the sessions that their clients ended last: an id alone would bring its session back.
    ended: Mutex<VecDeque<Digest>>,
    /// What the requests of sessions have sent, for clients whose connections broke.
    streams: Arc<EventStreams>,
    stop: CancellationToken,
}

struct HttpSessionEntry {
    session: Arc<McpSession>,
    used: Instant,
}

async fn take(
    State(endpoint): State<Arc<McpEndpoint>>,
    Extension(identity): Extension<ClientIdentity>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if !body::has_content_type(&headers, "application/json") {
        return body::BodyRefusal::NotJson.into_response();
    }
    if !accepts_answers(&headers) {
        return (StatusCode::NOT_ACCEPTABLE, "accept application/json and text/event-stream").into_response();
    }
    let body = match body::collect_body(&headers, body, MAX_MESSAGE_BYTES).await {
        Ok(body) => body,
        Err(refused) => return refused.into_response(),
    };
    let message = match RpcMessage::parse(&body) {
        Ok(message) => message,
        Err(error) => {
            return refuse(
                StatusCode::BAD_REQUEST,
                RpcMessage::salvage_id(&body).as_ref(),
                error.to_rpc_error(),
            );
        }
    };
    let version = header(&headers, "mcp-protocol-version");
    let stateless = match &message {
        RpcMessage::Request(request) => {
            envelope::declared_version(request.params.as_deref()).is_some()
                || version.is_some_and(|version| !LEGACY.contains(&version))
        }
        RpcMessage::Notification(_) | RpcMessage::Response(_) => version == Some(MODERN),
    };
    match message {
        RpcMessage::Request(request) if stateless => endpoint.modern(request, &identity, &headers).await,
        RpcMessage::Request(request) if request.method == "initialize" => {
            endpoint.initialize(&request, identity)
        }
        RpcMessage::Request(request) => endpoint.legacy(request, &identity, &headers).await,
        RpcMessage::Notification(_) if stateless => StatusCode::ACCEPTED.into_response(),
        RpcMessage::Notification(notification) => endpoint.notified(&notification, &identity, &headers),
        RpcMessage::Response(_) if stateless => StatusCode::BAD_REQUEST.into_response(),
        RpcMessage::Response(response) => match endpoint.session(&identity, &headers) {
            Ok(session) => match session.deliver_answer(response) {
                true => StatusCode::ACCEPTED.into_response(),
                false => refuse(StatusCode::BAD_REQUEST, None, no_such_question()),
            },
            Err(refusal) => *refusal,
        },
    }
}

/// The error for an answer that nobody waits for. Its sender must not believe that it counts: the question may be open
/// at another gateway.
fn no_such_question() -> RpcError {
    RpcError::new(
        code::INVALID_REQUEST,
        "no question with this id is open at this gateway; send the answer to the gateway that asked, or answer by \
         another way: the approval of a run takes it with `pml_continue` at any gateway",
    )
}

impl McpEndpoint {
    async fn modern(&self, request: RpcRequest, identity: &ClientIdentity, headers: &HeaderMap) -> Response {
        let params = request.params.as_deref();
        let sender = match self.modern_sender(&request, identity, headers) {
            Ok(sender) => sender,
            Err(error) => return refuse(modern_status(&error), Some(&request.id), error),
        };
        match request.method.as_str() {
            "server/discover" => json(&request.id, Ok(self.server.discover(&sender.client))),
            "subscriptions/listen" => {
                let filter = self
                    .server
                    .accept_subscription(SubscriptionFilter::from_params(params), &sender.client)
                    .await;
                let first = filter.acknowledgement(&request.id);
                let id = request.id;
                self.events(vec![sse::encode_event(None, first)], move |change| {
                    Some(sse::encode_event(None, filter.message(change, &id)?))
                })
            }
            method if envelope::is_session_method(method) => {
                refuse(StatusCode::NOT_FOUND, Some(&request.id), envelope::method_not_found(method))
            }
            _ => {
                let off = RequestCancellation::default();
                match self.server.start_request(&request, sender, RequestTransport::Tcp, &off) {
                    Ok(running) => self.respond(running, request, off.cancel, handler_status).await,
                    Err(error) => refuse(modern_status(&error), Some(&request.id), error),
                }
            }
        }
    }

    /// Reads the sender, and checks that the headers, by which proxies may have routed the request, match the body.
    fn modern_sender(
        &self,
        request: &RpcRequest,
        identity: &ClientIdentity,
        headers: &HeaderMap,
    ) -> Result<RequestSender, RpcError> {
        let params = request.params.as_deref();
        let mismatch = |text: String| Err(RpcError::new(code::HEADER_MISMATCH, text));
        let version = header(headers, "mcp-protocol-version");
        let declared = envelope::declared_version(params);
        if let Some(declared) = &declared
            && version != Some(declared)
        {
            return mismatch(format!(
                "header `MCP-Protocol-Version` is {version:?}, the body says {declared:?}"
            ));
        }
        if let (Some(version), None) = (version, &declared)
            && version != MODERN
        {
            return Err(envelope::unsupported_version(version));
        }
        let sender = envelope::modern_sender(params, identity)?;
        if envelope::is_session_method(&request.method) {
            return Err(envelope::method_not_found(&request.method));
        }
        if header(headers, "mcp-method").map(str::trim) != Some(request.method.as_str()) {
            return mismatch(format!("header `Mcp-Method` is missing or does not say `{}`", request.method));
        }
        if let Some(name) = mirrored_name(&request.method, params)
            && header(headers, "mcp-name").and_then(param_headers::decode).as_deref() != Some(name.as_str())
        {
            return mismatch(format!("header `Mcp-Name` is missing or does not say `{name}`"));
        }
        self.check_mirrored(request, &sender, headers)?;
        Ok(sender)
    }

    fn check_mirrored(
        &self,
        request: &RpcRequest,
        sender: &RequestSender,
        headers: &HeaderMap,
    ) -> Result<(), RpcError> {
        if request.method != "tools/call" {
            return Ok(());
        }
        let fields = Fields::parse(request.params.as_deref().map_or("{}", RawValue::get)).unwrap_or_default();
        let name: String = fields.read("name").unwrap_or_default();
        let mirrored = self.server.handler.mirrored_parameters(&sender.client, &name);
        if mirrored.is_empty() {
            return Ok(());
        }
        let arguments: serde_json::Value = fields.read("arguments").unwrap_or_default();
        for parameter in mirrored {
            let in_header = headers
                .get(&parameter.header)
                .map(|value| value.to_str().ok().and_then(param_headers::decode));
            let agree = match (parameter.value(&arguments), in_header) {
                (Some(argument), Some(Some(header))) => param_headers::is_same_value(&header, &argument),
                (None, None) => true,
                _ => false,
            };
            if !agree {
                let text = format!(
                    "header `{}` is missing, malformed or differs from the argument",
                    parameter.header
                );
                return Err(RpcError::new(code::HEADER_MISMATCH, text));
            }
        }
        Ok(())
    }

    fn initialize(&self, request: &RpcRequest, identity: ClientIdentity) -> Response {
        let session = Arc::new(session_id::new_session(identity, session_id::random_number()));
        let outcome = self.server.initialize(request.params.as_deref(), &session);
        let opened = outcome.is_ok();
        let mut response = json(&request.id, outcome);
        if opened {
            let id = session_id::make(&*self.server.handler, &session, now_ms());
            response
                .headers_mut()
                .insert("mcp-session-id", HeaderValue::from_str(&id).expect("base64 is a header value"));
            self.remember(id, session);
        }
        response
    }

    async fn legacy(&self, request: RpcRequest, identity: &ClientIdentity, headers: &HeaderMap) -> Response {
        let session = match self.session(identity, headers) {
            Ok(session) => session,
            Err(refusal) => return *refusal,
        };
        let params = request.params.as_deref();
        if request.method == "ping" {
            return json(&request.id, Ok(empty_object().into()));
        }
        if let Err(error) = session.apply_session_method(&request.method, params) {
            return json(&request.id, Err(error));
        }
        let Some(off) = session.begin_request(&request.id) else {
            let error = RpcError::new(code::INVALID_REQUEST, format!("request id {} is in use", request.id));
            return refuse(StatusCode::BAD_REQUEST, Some(&request.id), error);
        };
        let started = envelope::legacy_sender(params, &session)
            .and_then(|sender| self.server.start_request(&request, sender, RequestTransport::Tcp, &off));
        match started {
            Ok(running) => {
                let primed = header(headers, "mcp-protocol-version") == Some(LATEST_LEGACY);
                self.respond_in_session(running, session, request, off.cancel, primed).await
            }
            Err(error) => {
                session.finish_request(&request.id);
                json(&request.id, Err(error))
            }
        }
    }

    /// Replies with JSON if the result comes first and within [`QUIET`], with an event stream otherwise.
    async fn respond(
        &self,
        running: RunningRequest,
        request: RpcRequest,
        cancel: CancellationToken,
        status: fn(&RpcError) -> StatusCode,
    ) -> Response {
        let (out, mut outputs) = mpsc::channel(64);
        let server = self.server.clone();
        let id = request.id.clone();
        self.server.requests.spawn(async move {
            server.drive_request(running, &request, None, &cancel, &out).await;
        });
        let first = match tokio::time::timeout(QUIET, outputs.recv()).await {
            Ok(Some(RequestOutput::Result(outcome))) => {
                let status = outcome.as_ref().err().map_or(StatusCode::OK, status);
                return (status, json(&id, outcome)).into_response();
            }
            Ok(Some(RequestOutput::Message(line))) => sse::encode_event(None, line),
            // The client cancelled the request and expects no reply.
            Ok(None) => return event_stream(futures_util::stream::empty()),
            Err(_) => sse::keep_alive(),
        };
        let rest = futures_util::stream::unfold(Some((outputs, id)), |open| async move {
            let (mut outputs, id) = open?;
            match tokio::time::timeout(KEEP_ALIVE, outputs.recv()).await {
                Ok(Some(RequestOutput::Message(line))) => {
                    Some((sse::encode_event(None, line), Some((outputs, id))))
                }
                Ok(Some(RequestOutput::Result(outcome))) => {
                    Some((sse::encode_event(None, message::encode_answer(&id, outcome)), None))
                }
                Ok(None) => None,
                Err(_) => Some((sse::keep_alive(), Some((outputs, id)))),
            }
        });
        event_stream(futures_util::stream::iter([first]).chain(rest).flat_map(parts))
    }

    /// As [`Self::respond`], for a request in a session: its event stream can be resumed, and the request goes on when
    /// the connection breaks.
    async fn respond_in_session(
        &self,
        running: RunningRequest,
        session: Arc<McpSession>,
        request: RpcRequest,
        cancel: CancellationToken,
        primed: bool,
    ) -> Response {
        let (out, outputs) = mpsc::channel(64);
        let (reply, replied) = oneshot::channel();
        let (server, id, number) = (self.server.clone(), request.id.clone(), session.number());
        self.server.requests.spawn(async move {
            server.drive_request(running, &request, Some(&session), &cancel, &out).await;
            session.finish_request(&request.id);
        });
        self.server.requests.spawn(record(
            Arc::clone(&self.streams),
            number,
            primed,
            id.clone(),
            outputs,
            reply,
        ));
        match replied.await {
            Ok(SessionReply::Json(outcome)) => json(&id, outcome),
            Ok(SessionReply::Stream(stream)) => event_stream(stream.read(0)),
            Err(_) => refuse(
                StatusCode::SERVICE_UNAVAILABLE,
                Some(&id),
                RpcError::new(code::INTERNAL_ERROR, "the gateway ends"),
            ),
        }
    }

    /// An event stream of changes, each encoded by `message`.
    fn events(
        &self,
        first: Vec<ChunkedText>,
        message: impl Fn(&ChangeNotice) -> Option<ChunkedText> + Send + 'static,
    ) -> Response {
        let (changes, stop) = (self.server.handler.changes(), self.stop.clone());
        let rest = futures_util::stream::unfold(
            (changes, stop, message),
            |(mut changes, stop, message)| async move {
                loop {
                    let change = tokio::select! {
                        change = changes.recv() => change,
                        () = tokio::time::sleep(KEEP_ALIVE) => return Some((sse::keep_alive(), (changes, stop, message))),
                        () = stop.cancelled() => return None,
                    };
                    let events: Vec<ChunkedText> =
                        changes_to_announce(change)?.iter().filter_map(&message).collect();
                    let all = events.into_iter().reduce(|mut all, event| {
                        all.append(event);
                        all
                    });
                    if let Some(all) = all {
                        return Some((all, (changes, stop, message)));
                    }
                }
            },
        );
        event_stream(futures_util::stream::iter(first).chain(rest).flat_map(parts))
    }

    fn notified(
        &self,
        notification: &RpcNotification,
        identity: &ClientIdentity,
        headers: &HeaderMap,
    ) -> Response {
        let session = match self.session(identity, headers) {
            Ok(session) => session,
            Err(refusal) => return *refusal,
        };
        if let Some(id) = session::cancelled_request(notification) {
            session.cancel_request(&id);
        }
        StatusCode::ACCEPTED.into_response()
    }

    /// The session of a request. A session of another client is treated as unknown.
    fn session(
        &self,
        identity: &ClientIdentity,
        headers: &HeaderMap,
    ) -> Result<Arc<McpSession>, Box<Response>> {
        if let Some(version) = header(headers, "mcp-protocol-version")
            && !LEGACY.contains(&version)
        {
            return Err(Box::new(refuse(
                StatusCode::BAD_REQUEST,
                None,
                envelope::unsupported_version(version),
            )));
        }
        let Some(id) = header(headers, "mcp-session-id") else {
            let error = RpcError::new(
                code::INVALID_REQUEST,
                "header `Mcp-Session-Id` is missing; send `initialize` first",
            );
            return Err(Box::new(refuse(StatusCode::BAD_REQUEST, None, error)));
        };
        if let Some(known) = self.sessions().get_mut(id)
            && known.session.identity() == identity
        {
            known.used = Instant::now();
            return Ok(Arc::clone(&known.session));
        }
        self.continue_session(id, identity).ok_or_else(|| {
            let error =
                RpcError::new(code::INVALID_REQUEST, "this session has ended; send `initialize` again");
            Box::new(refuse(StatusCode::NOT_FOUND, None, error))
        })
    }

    /// Continues a session that another replica has opened, or this one before a start.
    fn continue_session(&self, id: &str, identity: &ClientIdentity) -> Option<Arc<McpSession>> {
        if self.ended().contains(&Digest::of(id.as_bytes())) {
            return None;
        }
        let session = Arc::new(session_id::open(&*self.server.handler, id, identity, now_ms())?);
        // Two requests may come at once; both belong to the same session.
        if let Some(known) = self.sessions().get(id) {
            return (known.session.identity() == identity).then(|| Arc::clone(&known.session));
        }
        self.remember(id.to_owned(), Arc::clone(&session));
        Some(session)
    }

    fn ended(&self) -> MutexGuard<'_, VecDeque<Digest>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, id: String, session: Arc<McpSession>) {
        let mut sessions = self.sessions();
        let now = Instant::now();
        sessions.retain(|_, known| {
            let keep = now.duration_since(known.used) < SESSION_IDLE || Arc::strong_count(&known.session) > 1;
            if !keep {
                known.session.end();
            }
            keep
        });
        if sessions.len() >= MAX_SESSIONS
            && let Some(oldest) =
                sessions.iter().min_by_key(|(_, known)| known.used).map(|(id, _)| id.clone())
            && let Some(known) = sessions.remove(&oldest)
        {
            known.session.end();
        }
        sessions.insert(id, HttpSessionEntry { session, used: now });
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, HttpSessionEntry>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the event stream on which a session receives changes, or resumes the one of a request.
async fn stream(
    State(endpoint): State<Arc<McpEndpoint>>,
    Extension(identity): Extension<ClientIdentity>,
    headers: HeaderMap,
) -> Response {
    if header(&headers, "mcp-session-id").is_none() {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let session = match endpoint.session(&identity, &headers) {
        Ok(session) => session,
        Err(refusal) => return *refusal,
    };
    let encode = |line| sse::encode_event(Some(CHANGES), line);
    let missed = match header(&headers, "last-event-id") {
        None => Vec::new(),
        // Which changes it missed is not known, so it learns of all that can have changed.
        Some(CHANGES) => {
            session.all_changes().iter().filter_map(|change| session_message(change, &session)).collect()
        }
        Some(last) => {
            let Some((stream, event)) = endpoint.streams.find(last, session.number()) else {
                let text = format!("there is nothing to resume after event `{last}`; send the request again");
                return refuse(StatusCode::BAD_REQUEST, None, RpcError::new(code::INVALID_REQUEST, text));
            };
            return event_stream(stream.read(event + 1));
        }
    };
    endpoint.events(missed.into_iter().map(encode).collect(), move |change| {
        Some(encode(session_message(change, &session)?))
    })
}

/// Ends a session.
async fn end(
    State(endpoint): State<Arc<McpEndpoint>>,
    Extension(identity): Extension<ClientIdentity>,
    headers: HeaderMap,
) -> Response {
    let Some(id) = header(&headers, "mcp-session-id") else {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    };
    match endpoint.session(&identity, &headers) {
        Ok(session) => {
            session.end();
            endpoint.streams.end_session(session.number());
            endpoint.sessions().remove(id);
            let mut ended = endpoint.ended();
            if ended.len() >= MAX_SESSIONS {
                ended.pop_front();
            }
            ended.push_back(Digest::of(id.as_bytes()));
            StatusCode::NO_CONTENT.into_response()
        }
        Err(refusal) => *refusal,
    }
}

fn event_stream(events: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    let headers = [
        (CONTENT_TYPE.as_str(), "text/event-stream"),
        (CACHE_CONTROL.as_str(), "no-store"),
        ("x-accel-buffering", "no"),
    ];
    (headers, Body::from_stream(events)).into_response()
}

fn json(id: &RequestId, outcome: Result<ChunkedText, RpcError>) -> Response {
    let pieces = message::encode_answer(id, outcome);
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CONTENT_LENGTH, HeaderValue::from(pieces.len())),
    ];
    (headers, Body::from_stream(parts(pieces))).into_response()
}

/// Text as chunks of a body.
fn parts(pieces: ChunkedText) -> impl Stream<Item = Result<Bytes, Infallible>> {
    futures_util::stream::iter(pieces.into_parts(PART_BYTES).map(Ok))
}

fn refuse(status: StatusCode, id: Option<&RequestId>, error: RpcError) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], message::encode_response(id, &Err(error))).into_response()
}

/// The HTTP status that the stateless protocol requires for an error.
fn modern_status(error: &RpcError) -> StatusCode {
    match error.code {
        code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        code::INVALID_PARAMS
        | code::HEADER_MISMATCH
        | code::MISSING_CAPABILITY
        | code::UNSUPPORTED_VERSION => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// As [`modern_status`], for an error of the handler: its refusal of parameters is an ordinary reply.
fn handler_status(error: &RpcError) -> StatusCode {
    if error.code == code::INVALID_PARAMS { StatusCode::OK } else { modern_status(error) }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn accepts_answers(headers: &HeaderMap) -> bool {
    let accepted = header(headers, ACCEPT.as_str()).unwrap_or("*/*").to_ascii_lowercase();
    accepted.contains("*/*")
        || (accepted.contains("application/json") && accepted.contains("text/event-stream"))
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
