//! Connections to downstream servers.
//!
//! A [`Connection`] hides the transport and the era of a server. It sends a request in the form that the server
//! expects, and passes messages of the server to the caller of the request.

mod authorizer;
pub mod failure;
mod http;
mod http_sse;
mod pending;
pub mod process;
mod stream;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pml_model::json::{Fields, raw};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

pub use authorizer::{AuthChallenge, Authorizer, TokenRefusal};
pub use failure::{LostReason, NotSentReason, RequestFailure};
pub use http::RemoteServer;
pub(crate) use http::mirrored_name;
pub use pending::{ConnectionEvent, ProgressExtension};
pub use process::{Launch, StderrTail};

use self::pending::RequestClock;
use crate::caller::Caller;
use crate::message::code;
use crate::protocol::{self, Era, LATEST_LEGACY, LEGACY, MODERN, McpImplementation, meta};
use crate::question;

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum ServerTarget {
    /// As a child process.
    Process(Launch),
    /// By URL.
    Remote(RemoteServer),
}

/// What a server says of itself.
#[derive(Debug, Clone)]
pub struct ServerProfile {
    /// The era of the server.
    pub era: Era,
    /// The negotiated protocol version.
    pub version: String,
    /// Name and version of the server, a JSON object.
    pub implementation: Option<Box<RawValue>>,
    /// Its MCP capabilities, a JSON object.
    pub capabilities: Box<RawValue>,
    /// Its instructions for use: data, never instructions to PML.
    pub instructions: Option<String>,
}

impl ServerProfile {
    /// Whether the server has a capability such as `tools` or `tools.listChanged`.
    pub fn has_capability(&self, capability: &str) -> bool {
        let mut value: serde_json::Value = serde_json::from_str(self.capabilities.get()).unwrap_or_default();
        for key in capability.split('.') {
            match value.get_mut(key) {
                Some(below) => value = below.take(),
                None => return false,
            }
        }
        value != serde_json::Value::Bool(false) && !value.is_null()
    }
}

/// Why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The process could not be started.
    #[error("cannot start `{command}`: {source}")]
    Spawn {
        /// The command.
        command: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The URL or a header is malformed.
    #[error("{0}")]
    Address(String),
    /// The server was not ready in time.
    #[error("it did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The server replied, but no common version was found. It supports these.
    #[error("it speaks only protocol versions {0:?}")]
    Version(Vec<String>),
    /// A request of the handshake failed.
    #[error("{}", opening(.0))]
    Failed(RequestFailure),
}

/// The reason of a failed handshake. No tool was called yet, so whether the server acted does not matter.
fn opening(failure: &RequestFailure) -> String {
    match failure {
        RequestFailure::Unknown(LostReason::ServerEnded(reason)) => reason.clone(),
        RequestFailure::Unknown(lost) => lost.to_string(),
        RequestFailure::NotSent(reason) => reason.to_string(),
        RequestFailure::Rpc(error) => error.to_string(),
    }
}

/// An open connection to one server.
#[derive(Debug)]
pub struct Connection {
    /// Display name of the server.
    name: Arc<str>,
    link: ClientTransport,
    about: ServerProfile,
    log_rank: AtomicUsize,
    /// Ends the subscription to each watched resource of a stateless server.
    listening: Mutex<HashMap<String, CancellationToken>>,
    stop: CancellationToken,
    tasks: TaskTracker,
    _stop_on_drop: DropGuard,
}

#[derive(Debug, Clone)]
enum ClientTransport {
    Stream(stream::StreamTransport),
    Http(http::HttpTransport),
}

/// One request to a server.
#[derive(Debug)]
pub struct OutgoingRequest<'a> {
    /// The JSON-RPC method.
    pub method: &'a str,
    /// The parameters; `_meta` is adapted to the server.
    pub params: Fields<'a>,
    /// `Mcp-Param-*` headers, for stateless servers over HTTP.
    pub mirrored: Vec<(String, String)>,
    /// The caller that gets notifications and questions.
    pub caller: &'a Caller,
    /// When the request times out.
    pub deadline: Instant,
    /// How progress moves that time; `None` if it does not.
    pub extension: Option<ProgressExtension>,
    /// Cancels the request before that.
    pub cancel: &'a CancellationToken,
}

/// How long a stdio server gets to reply to the stateless opening before the handshake is tried too.
const PROBE_PATIENCE: Duration = Duration::from_secs(5);
/// How long reading the rest of standard error may take after the process has ended.
const LAST_WORDS_PATIENCE: Duration = Duration::from_secs(1);
/// Maximum number of rounds in which a server may ask for more input within one request.
const MAX_ROUNDS: usize = 10;
/// Longest pause before a broken subscription is renewed.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Limits of a paginated list, in pages, items and bytes.
const MAX_PAGES: usize = 1_000;
const MAX_ITEMS: usize = 50_000;
const MAX_LIST_BYTES: usize = 64 * 1024 * 1024;

impl Connection {
    /// Starts or contacts the server with the display name `name` and negotiates a version. `known_era` is the era it
    /// spoke last time. `events` gets the events that the server reports on its own, and closes with the connection.
    ///
    /// All tasks of the connection belong to `tasks`, which must serve this connection alone. A caller that gives up
    /// opening it, or gets an error, waits for `tasks`; they end by themselves.
    ///
    /// # Errors
    /// The server cannot be started or reached, does not reply in time, or has no common version with PML.
    pub async fn open(
        name: &str,
        target: &ServerTarget,
        known_era: Option<Era>,
        patience: Duration,
        events: mpsc::Sender<ConnectionEvent>,
        tasks: &TaskTracker,
    ) -> Result<Connection, OpenError> {
        let stop = CancellationToken::new();
        let stop_on_drop = stop.clone().drop_guard();
        let last_words = StderrTail::default();
        let link = match target {
            ServerTarget::Process(launch) => {
                ClientTransport::Stream(start(launch, events.clone(), (&stop, tasks), &last_words).await?)
            }
            ServerTarget::Remote(remote) => {
                let owner = (stop.clone(), tasks.clone());
                let link = http::HttpTransport::new(remote, events.clone(), owner);
                ClientTransport::Http(link.map_err(OpenError::Address)?)
            }
        };
        let negotiating = link.negotiate(known_era, Instant::now() + patience, events, (&stop, tasks));
        let agreed = tokio::time::timeout(patience, negotiating).await;
        let (link, about) = agreed.map_err(|_| OpenError::TimedOut(patience))??;
        let connection = Connection {
            name: Arc::from(name),
            link,
            about,
            log_rank: AtomicUsize::new(usize::MAX),
            listening: Mutex::default(),
            stop,
            tasks: tasks.clone(),
            _stop_on_drop: stop_on_drop,
        };
        connection.subscribe();
        Ok(connection)
    }

    /// What the server says of itself.
    pub fn profile(&self) -> &ServerProfile {
        &self.about
    }

    /// Why the connection ended; `None` while it is open.
    pub fn closed_reason(&self) -> Option<String> {
        match &self.link {
            ClientTransport::Stream(link) => link.closed_reason(),
            ClientTransport::Http(link) => link.closed_reason(),
        }
    }

    /// Sends a request and waits for its result. If the server asks for input, a legacy client is asked at once, and a
    /// stateless one gets the question as the result.
    ///
    /// # Errors
    /// See [`RequestFailure`].
    pub async fn request(&self, call: OutgoingRequest<'_>) -> Result<Box<RawValue>, RequestFailure> {
        let caller = call.caller.for_server(&self.name);
        let mut call = OutgoingRequest { caller: &caller, ..call };
        if let Some(rank) = call.caller.log_rank()
            && self.log_rank.fetch_min(rank, Ordering::Relaxed) > rank
        {
            self.set_log_level(rank).await;
        }
        let clock = RequestClock::new(call.deadline, call.extension);
        for round in 0..MAX_ROUNDS {
            let result = match self.once(&mut call, &clock).await {
                // Earlier rounds did reach the server, so the outcome is unknown, not unsent.
                Err(RequestFailure::NotSent(reason)) if round > 0 => {
                    return Err(RequestFailure::Unknown(LostReason::ServerEnded(reason.to_string())));
                }
                other => other?,
            };
            if !protocol::is_input_required(&result) {
                return Ok(result);
            }
            if call.caller.era() == Era::Modern {
                return question::screen_result(&self.name, &result).map_err(RequestFailure::Rpc);
            }
            answer_questions(&result, &mut call).await.map_err(RequestFailure::Rpc)?;
        }
        Err(RequestFailure::Unknown(LostReason::UnusableAnswer(format!(
            "it asked for input {MAX_ROUNDS} times"
        ))))
    }

    async fn once(
        &self,
        call: &mut OutgoingRequest<'_>,
        clock: &Arc<RequestClock>,
    ) -> Result<Box<RawValue>, RequestFailure> {
        let id = self.link.next_id();
        let (caller, era) = (call.caller, self.about.era);
        protocol::edit_meta(&mut call.params, |fields| {
            if caller.wants_progress() || clock.follows_progress() {
                fields.set(meta::PROGRESS_TOKEN, raw(&id));
            } else {
                fields.remove(meta::PROGRESS_TOKEN);
            }
            match era {
                Era::Modern => protocol::add_modern_meta(fields, caller.capabilities()),
                Era::Legacy => protocol::strip_modern_meta(fields),
            }
            if let (Era::Legacy, Era::Modern, Some(level)) = (caller.era(), era, caller.log_level()) {
                fields.set(meta::LOG_LEVEL, raw(&level));
            }
        });
        let params = call.params.to_raw();
        let OutgoingRequest { method, mirrored, cancel, .. } = call;
        self.link.request(id, method, Some(&params), mirrored, caller, clock, cancel).await
    }

    /// Every item of a paginated list, such as `tools/list`.
    ///
    /// # Errors
    /// A page fails, or the list exceeds the limits.
    pub async fn list(&self, method: &str, deadline: Instant) -> Result<Vec<Box<RawValue>>, RequestFailure> {
        let (caller, cancel) = (Caller::silent(), CancellationToken::new());
        let key = if method == "resources/templates/list" {
            "resourceTemplates"
        } else {
            method.split('/').next().unwrap_or(method)
        };
        let mut items = Vec::new();
        let mut cursor: Option<String> = None;
        let mut size = 0;
        for _ in 0..MAX_PAGES {
            let mut params = Fields::default();
            if let Some(cursor) = &cursor {
                params.set("cursor", raw(cursor));
            }
            let call = OutgoingRequest {
                method,
                params,
                mirrored: Vec::new(),
                caller: &caller,
                deadline,
                extension: None,
                cancel: &cancel,
            };
            let page = self.request(call).await?;
            let garbage = |reason: String| RequestFailure::Unknown(LostReason::UnusableAnswer(reason));
            let fields = Fields::parse(page.get()).map_err(|error| garbage(error.to_string()))?;
            let more = fields.read::<Vec<Box<RawValue>>>(key);
            let more = more.ok_or_else(|| garbage(format!("`{method}` without `{key}`")))?;
            size += page.get().len();
            if items.len() + more.len() > MAX_ITEMS || size > MAX_LIST_BYTES {
                return Err(garbage(format!(
                    "`{method}` lists more than {MAX_ITEMS} items or {MAX_LIST_BYTES} bytes"
                )));
            }
            items.extend(more);
            let next: Option<String> = fields.read("nextCursor");
            if next.is_none() || next == cursor {
                return Ok(items);
            }
            cursor = next;
        }
        Err(RequestFailure::Unknown(LostReason::UnusableAnswer(format!(
            "`{method}` does not end after {MAX_PAGES} pages"
        ))))
    }

    /// Subscribes to the changes of a stateless server; a legacy one reports them without being asked.
    fn subscribe(&self) {
        let wanted = [
            ("toolsListChanged", "tools.listChanged"),
            ("promptsListChanged", "prompts.listChanged"),
            ("resourcesListChanged", "resources.listChanged"),
        ];
        let filter: serde_json::Map<String, serde_json::Value> = wanted
            .iter()
            .filter(|(_, capability)| self.about.has_capability(capability))
            .map(|(key, _)| ((*key).into(), true.into()))
            .collect();
        if self.about.era == Era::Modern && !filter.is_empty() {
            self.watch(json!({ "notifications": filter }), self.stop.clone());
        }
    }

    /// Subscribes to changes of a resource, for as long as the connection lasts.
    ///
    /// # Errors
    /// See [`RequestFailure`].
    pub async fn watch_resource(&self, uri: &str, deadline: Instant) -> Result<(), RequestFailure> {
        if self.about.era == Era::Modern {
            let stop = self.stop.child_token();
            if let Some(before) = self.listening().insert(uri.to_owned(), stop.clone()) {
                before.cancel();
            }
            self.watch(json!({ "notifications": { "resourceSubscriptions": [uri] } }), stop);
            return Ok(());
        }
        self.link.ask("resources/subscribe", &raw(&json!({ "uri": uri })), deadline).await.map(drop)
    }

    /// Ends the subscription to changes of a resource.
    ///
    /// # Errors
    /// See [`RequestFailure`].
    pub async fn unwatch_resource(&self, uri: &str, deadline: Instant) -> Result<(), RequestFailure> {
        if self.about.era == Era::Modern {
            if let Some(stop) = self.listening().remove(uri) {
                stop.cancel();
            }
            return Ok(());
        }
        self.link.ask("resources/unsubscribe", &raw(&json!({ "uri": uri })), deadline).await.map(drop)
    }

    fn listening(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps one `subscriptions/listen` request open until `stop`.
    fn watch(&self, params: serde_json::Value, stop: CancellationToken) {
        let link = self.link.clone();
        self.tasks.spawn(async move {
            let mut pause = Duration::from_secs(1);
            // A listen request has no deadline; a year stands for that.
            let far = Duration::from_secs(365 * 24 * 3600);
            while !stop.is_cancelled() {
                let text = params.to_string();
                let mut fields = Fields::parse(&text).expect("a JSON object was just written");
                protocol::edit_meta(&mut fields, |meta| {
                    protocol::add_modern_meta(meta, &pml_model::json::empty_object());
                });
                let (id, opened) = (link.next_id(), Instant::now());
                let (params, caller) = (fields.to_raw(), Caller::silent());
                let clock = RequestClock::new(opened + far, None);
                let ended = link
                    .request(id, "subscriptions/listen", Some(&params), &[], &caller, &clock, &stop)
                    .await;
                tracing::debug!(?ended, "a subscription ended");
                if let Err(RequestFailure::Rpc(_)) = ended {
                    // The server refuses the subscription, so a retry would not help.
                    return;
                }
                // A subscription that lasted was cut by something temporary, so the backoff starts over.
                pause = if opened.elapsed() > LONGEST_PAUSE { Duration::from_secs(1) } else { pause * 2 };
                pause = pause.min(LONGEST_PAUSE);
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = stop.cancelled() => {}
                }
            }
        });
    }

    /// Sets the log level of a legacy server; a stateless one gets it with each request.
    async fn set_log_level(&self, rank: usize) {
        let Some(level) = protocol::log_level(rank)
            .filter(|_| self.about.era == Era::Legacy && self.about.has_capability("logging"))
        else {
            return;
        };
        // A server that does not reply to this must not use up the time of the call.
        let soon = Instant::now() + Duration::from_secs(2);
        if let Err(error) = self.link.ask("logging/setLevel", &raw(&json!({ "level": level })), soon).await {
            tracing::debug!(%error, "a server did not take the log level");
        }
    }

    /// Closes the connection and ends the process, if there is one. Returns when both and every task have ended.
    pub async fn close(&self) {
        if let ClientTransport::Http(link) = &self.link {
            link.end_session().await;
        }
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Puts the answers to a server's questions into the next round of the same request.
async fn answer_questions(result: &RawValue, call: &mut OutgoingRequest<'_>) -> Result<(), crate::RpcError> {
    let fields = Fields::parse(result.get())
        .map_err(|error| crate::RpcError::new(code::INTERNAL_ERROR, error.to_string()))?;
    let questions = fields.get("inputRequests").map_or("{}", RawValue::get);
    let questions = Fields::parse(questions).unwrap_or_default();
    let mut answers = Fields::default();
    for (key, question) in questions.iter() {
        let question = Fields::parse(question.get()).unwrap_or_default();
        let method: String = question.read("method").unwrap_or_default();
        let answer = call.caller.ask(&method, question.get("params").map(ToOwned::to_owned)).await?;
        answers.set(key.to_owned(), answer);
    }
    call.params.set("inputResponses", answers.to_raw());
    match fields.get("requestState") {
        Some(state) => call.params.set("requestState", state.to_owned()),
        None => drop(call.params.remove("requestState")),
    }
    Ok(())
}

async fn start(
    launch: &Launch,
    events: mpsc::Sender<ConnectionEvent>,
    (stop, tasks): (&CancellationToken, &TaskTracker),
    last_words: &StderrTail,
) -> Result<stream::StreamTransport, OpenError> {
    let spawned = process::spawn_server(launch).await;
    let mut child = spawned.map_err(|source| OpenError::Spawn { command: launch.command.clone(), source })?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        unreachable!("all three streams of the child were asked for as pipes");
    };
    let mut heard = tasks.spawn(process::collect_stderr(stderr, last_words.clone()));
    let (exited, exit) = watch::channel(None);
    let link = stream::StreamTransport::start(
        stdout,
        stdin,
        events,
        (stop.clone(), tasks.clone()),
        stream::ProcessEnd { exit, stderr_tail: last_words.clone() },
    );
    let stop = stop.clone();
    tasks.spawn(async move {
        tokio::select! {
            status = child.wait() => {
                // Its last output may still be in the pipe; a pipe that another process keeps open is not waited for.
                drop(tokio::time::timeout(LAST_WORDS_PATIENCE, &mut heard).await);
                drop(exited.send(Some(process::describe_exit(status))));
            }
            () = stop.cancelled() => drop(exited.send(Some(process::end_child(&mut child).await))),
        }
        heard.abort();
    });
    Ok(link)
}

impl ClientTransport {
    fn next_id(&self) -> u64 {
        match self {
            ClientTransport::Stream(link) => link.next_id(),
            ClientTransport::Http(link) => link.next_id(),
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one place joins two transports; a struct would only rename these"
    )]
    async fn request(
        &self,
        id: u64,
        method: &str,
        params: Option<&RawValue>,
        mirrored: &[(String, String)],
        caller: &Caller,
        clock: &Arc<RequestClock>,
        cancel: &CancellationToken,
    ) -> Result<Box<RawValue>, RequestFailure> {
        match self {
            ClientTransport::Stream(link) => link.request(id, method, params, caller, clock, cancel).await,
            ClientTransport::Http(link) => {
                link.request(http::PostRequest { id, method, params, mirrored, caller, clock, cancel }).await
            }
        }
    }

    async fn ask(
        &self,
        method: &str,
        params: &RawValue,
        deadline: Instant,
    ) -> Result<Box<RawValue>, RequestFailure> {
        let (caller, cancel) = (Caller::silent(), CancellationToken::new());
        let clock = RequestClock::new(deadline, None);
        self.request(self.next_id(), method, Some(params), &[], &caller, &clock, &cancel).await
    }

    /// Negotiates the version. A server that was legacy last time gets the handshake at once; any other is tried
    /// statelessly first.
    async fn agree(&self, known_era: Option<Era>, deadline: Instant) -> Result<ServerProfile, OpenError> {
        if known_era == Some(Era::Legacy)
            && let Ok(about) = self.initialize(deadline).await
        {
            return Ok(about);
        }
        match self {
            ClientTransport::Http(link) => {
                link.set_version(MODERN);
                match self.discover(deadline).await {
                    Ok(about) => Ok(about),
                    Err(error) if is_final(&error) => Err(error),
                    Err(_) => self.initialize(deadline).await,
                }
            }
            ClientTransport::Stream(_) => {
                let discover = self.discover(deadline);
                tokio::pin!(discover);
                tokio::select! {
                    found = &mut discover => match found {
                        Ok(about) => return Ok(about),
                        Err(error) if is_final(&error) => return Err(error),
                        Err(_) => return self.initialize(deadline).await,
                    },
                    () = tokio::time::sleep(PROBE_PATIENCE) => {}
                }
                // No reply: a legacy server that ignores unknown methods, or a slow start.
                let initialize = self.initialize(deadline);
                tokio::pin!(initialize);
                tokio::select! {
                    Ok(about) = &mut discover => Ok(about),
                    about = &mut initialize => about,
                }
            }
        }
    }

    async fn discover(&self, deadline: Instant) -> Result<ServerProfile, OpenError> {
        let mut params = Fields::default();
        protocol::edit_meta(&mut params, |meta| protocol::add_modern_meta(meta, &our_capabilities()));
        let result = self.ask("server/discover", &params.to_raw(), deadline).await.map_err(unsupported)?;
        let fields = Fields::parse(result.get()).unwrap_or_default();
        let versions: Vec<String> = fields.read("supportedVersions").unwrap_or_default();
        if !versions.iter().any(|version| version == MODERN) {
            return Err(OpenError::Version(versions));
        }
        let server = fields
            .get("_meta")
            .and_then(|m| Fields::parse(m.get()).ok()?.get(meta::SERVER_INFO).map(ToOwned::to_owned));
        Ok(ServerProfile {
            era: Era::Modern,
            version: MODERN.to_owned(),
            implementation: server.or_else(|| fields.get("serverInfo").map(ToOwned::to_owned)),
            capabilities: fields
                .get("capabilities")
                .map_or_else(pml_model::json::empty_object, ToOwned::to_owned),
            instructions: fields.read("instructions"),
        })
    }

    async fn initialize(&self, deadline: Instant) -> Result<ServerProfile, OpenError> {
        if let ClientTransport::Http(link) = self {
            link.forget_version();
        }
        let params = raw(&json!({
            "protocolVersion": LATEST_LEGACY,
            "capabilities": our_capabilities(),
            "clientInfo": McpImplementation::pml(),
        }));
        let result = self.ask("initialize", &params, deadline).await.map_err(OpenError::Failed)?;
        let fields = Fields::parse(result.get()).unwrap_or_default();
        let version: String = fields.read("protocolVersion").unwrap_or_default();
        if !LEGACY.contains(&version.as_str()) {
            return Err(OpenError::Version(vec![version]));
        }
        match self {
            ClientTransport::Stream(link) => link.notify("notifications/initialized", None),
            ClientTransport::Http(link) => {
                link.set_version(&version);
                link.notify("notifications/initialized", None).await.map_err(OpenError::Failed)?;
                link.spawn_listener();
            }
        }
        Ok(ServerProfile {
            era: Era::Legacy,
            version,
            implementation: fields.get("serverInfo").map(ToOwned::to_owned),
            capabilities: fields
                .get("capabilities")
                .map_or_else(pml_model::json::empty_object, ToOwned::to_owned),
            instructions: fields.read("instructions"),
        })
    }
}

/// The capabilities of clients that PML can pass questions to. Changes of roots are not announced: a server serves
/// several clients, and learns the roots of each when it asks during a request of that client.
fn our_capabilities() -> Box<RawValue> {
    raw(&json!({ "roots": {}, "sampling": {}, "elicitation": { "form": {}, "url": {} } }))
}

/// An error that names other versions proves a stateless server.
fn unsupported(failure: RequestFailure) -> OpenError {
    if let RequestFailure::Rpc(error) = &failure
        && error.code == code::UNSUPPORTED_VERSION
        && let Some(data) = &error.data
        && let Ok(fields) = Fields::parse(data.get())
    {
        return OpenError::Version(fields.read("supported").unwrap_or_default());
    }
    OpenError::Failed(failure)
}

/// Whether trying the handshake cannot help.
fn is_final(error: &OpenError) -> bool {
    match error {
        OpenError::Version(versions) => !versions.iter().any(|version| LEGACY.contains(&version.as_str())),
        OpenError::Failed(RequestFailure::NotSent(reason)) => !matches!(reason, NotSentReason::SessionEnded),
        OpenError::Failed(RequestFailure::Unknown(LostReason::ServerEnded(_) | LostReason::Timeout)) => true,
        OpenError::Failed(_) => false,
        OpenError::Spawn { .. } | OpenError::Address(_) | OpenError::TimedOut(_) => true,
    }
}
