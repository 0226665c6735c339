//! The life cycle of one downstream server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pml_mcp::client::{
    Authorizer, Connection, ConnectionEvent, Launch, OpenError, ProgressExtension, RemoteServer,
    RequestFailure, ServerTarget,
};
use pml_model::name::printable;
use pml_model::{Digest, ServerName};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ServerSpec;
use super::listing::{StartFailure, ToolListing, list, needs_sign_in};
use super::usage::{CallPurpose, ServerUsage};
use super::watched::WatchedResources;
use crate::config::{self, ServerTransport, StartPolicy};
use crate::problem::{ErrorCode, Problem};
use crate::sanitise::Sanitiser;

/// Something that happened to a server.
#[derive(Debug)]
pub struct ServerEvent {
    /// The name of the server.
    pub server: ServerName,
    /// The kind of event.
    pub kind: ServerEventKind,
}

/// The kinds of events.
#[derive(Debug)]
pub enum ServerEventKind {
    /// The server is ready, and its tools were listed.
    Listed {
        /// The launch digest of the server.
        launch: Digest,
        /// When the list was requested.
        asked_at: Instant,
        /// The listed tools and the server's profile.
        opened: Box<ToolListing>,
    },
    /// The status of the server changed.
    Status,
    /// The list of prompts changed.
    Prompts,
    /// The list of resources changed.
    Resources,
    /// The resource with this URI changed.
    Resource(String),
}

/// The status of a server.
#[derive(Debug, Clone)]
pub enum ServerStatus {
    /// Not started, because no request needed it yet.
    Idle,
    /// Being started.
    Starting,
    /// Usable.
    Ready(Arc<Connection>),
    /// Ended or unreachable; not retried before `until`.
    Down {
        /// The reason, as text.
        reason: String,
        /// When it may be retried.
        until: Instant,
    },
    /// Its command waits for a person's acceptance.
    AwaitingAcceptance,
    /// It waits for a person to sign in.
    SignInRequired {
        /// The reason, as text.
        reason: String,
    },
    /// Removed from the configuration, or the program is ending.
    Closed,
}

/// The error for a server that cannot be used.
#[derive(Debug, Clone)]
pub struct ServerUnavailable(pub Problem);

/// The handle of one server.
#[derive(Debug)]
pub struct ServerHandle {
    spec: ServerSpec,
    /// Removes the server's own secrets from messages about it: its last output, and why it could not be reached.
    sanitiser: Sanitiser,
    launch: Digest,
    status: watch::Sender<ServerStatus>,
    /// The number of failures since the last success; the backoff grows with it.
    failures: AtomicU32,
    usage: ServerUsage,
    /// The resources that clients watch.
    pub watched: WatchedResources,
    rate_limit: watch::Sender<Option<Instant>>,
    /// Since when its tools may differ from the last list: when it was started, or announced a change.
    changed_at: watch::Sender<Instant>,
    told: mpsc::Sender<ServerEvent>,
    stop: CancellationToken,
    /// Its connections' tasks: mostly one, two while a failed one is ending and the next has started.
    lives: TaskTracker,
}

/// 1 s: how long a call waits for a server that is about to be retried.
const SHORT_WAIT: Duration = Duration::from_secs(1);
/// The backoff after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest backoff.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The shortest interval between two tool lists of a server, however often its tools change.
const LISTING_PAUSE: Duration = Duration::from_millis(100);

impl ServerHandle {
    pub(super) fn new(spec: ServerSpec, told: mpsc::Sender<ServerEvent>) -> ServerHandle {
        let status = if spec.accepted { ServerStatus::Idle } else { ServerStatus::AwaitingAcceptance };
        ServerHandle {
            launch: config::launch_digest(&spec.settings),
            sanitiser: Sanitiser::new(spec.settings.secrets.iter().cloned()),
            spec,
            status: watch::Sender::new(status),
            failures: AtomicU32::new(0),
            usage: ServerUsage::new(),
            watched: WatchedResources::default(),
            rate_limit: watch::Sender::new(None),
            changed_at: watch::Sender::new(Instant::now()),
            told,
            stop: CancellationToken::new(),
            lives: TaskTracker::new(),
        }
    }

    /// Whether the handle already matches the specification.
    pub(super) fn is_for(&self, wanted: &ServerSpec) -> bool {
        // The era is what the server spoke last, not what is wanted of it.
        let spec = &self.spec;
        spec.settings == wanted.settings && spec.env == wanted.env && spec.accepted == wanted.accepted
    }

    /// Name of the server.
    pub fn name(&self) -> &ServerName {
        &self.spec.settings.name
    }

    /// The configuration of the server.
    pub fn settings(&self) -> &config::ServerConfig {
        &self.spec.settings
    }

    /// How progress moves the deadline of a request, to `until` at the latest.
    pub fn progress_extension(&self, until: Instant) -> ProgressExtension {
        ProgressExtension { by: self.settings().call_timeout, until }
    }

    /// The digest of how the server is started.
    pub fn launch_digest(&self) -> &Digest {
        &self.launch
    }

    /// The current status.
    pub fn status(&self) -> ServerStatus {
        self.status.borrow().clone()
    }

    /// Returns a live connection and starts the server if necessary. The start continues if the caller gives up.
    ///
    /// # Errors
    /// The server is not accepted, down, or not ready before the deadline.
    pub async fn connection(
        self: &Arc<Self>,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Arc<Connection>, ServerUnavailable> {
        self.usage.touch();
        let mut status = self.status.subscribe();
        let mut tried_sign_in = false;
        loop {
            let now = status.borrow_and_update().clone();
            match now {
                ServerStatus::Ready(connection) => match connection.closed_reason() {
                    None => return Ok(connection),
                    Some(reason) => self.fail(&reason, |status| is_life(status, &connection)),
                },
                ServerStatus::Idle => self.begin(),
                ServerStatus::Down { until, .. } if until <= Instant::now() => self.begin(),
                ServerStatus::Down { reason, until } => {
                    let wait = until.saturating_duration_since(Instant::now());
                    if wait > SHORT_WAIT || until > deadline {
                        return Err(self.down(&reason, wait));
                    }
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = cancel.cancelled() => return Err(self.not_ready()),
                    }
                }
                ServerStatus::AwaitingAcceptance => return Err(self.held()),
                ServerStatus::SignInRequired { reason } => {
                    // A person may have signed in since, in any process.
                    if tried_sign_in || !self.has_token().await {
                        return Err(self.signed_out(&reason));
                    }
                    tried_sign_in = true;
                    self.begin();
                }
                ServerStatus::Closed => return Err(self.removed()),
                ServerStatus::Starting => {
                    let changed = tokio::time::timeout_at(deadline.into(), status.changed());
                    tokio::select! {
                        changed = changed => match changed {
                            Ok(Ok(())) => {}
                            Ok(Err(_)) | Err(_) => return Err(self.not_ready()),
                        },
                        () = cancel.cancelled() => return Err(self.not_ready()),
                    }
                }
            }
        }
    }

    /// Marks a call as under way until the guard is dropped, so that the server is not stopped as idle meanwhile.
    pub fn mark_in_use(self: &Arc<Self>, purpose: CallPurpose) -> ServerUseGuard {
        self.usage.begin_call(purpose);
        ServerUseGuard { server: Arc::clone(self), purpose }
    }

    /// The number of calls under way that somebody waits for.
    pub(crate) fn requested_calls(&self) -> u32 {
        self.usage.requested_calls()
    }

    /// Records a successful call, which resets the backoff.
    pub fn note_success(&self) {
        self.failures.store(0, Ordering::Relaxed);
    }

    /// Delays requests to this server, because it sent a rate limit.
    pub fn limit_rate(&self, wait: Duration) {
        self.rate_limit.send_replace(Some(Instant::now() + wait.min(Duration::from_secs(3600))));
    }

    /// The remaining time of the rate limit.
    pub fn rate_limit_wait(&self) -> Option<Duration> {
        let until = (*self.rate_limit.borrow())?;
        until.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero())
    }

    /// Since when its tools may differ from the last list.
    pub fn changed_at(&self) -> Instant {
        *self.changed_at.borrow()
    }

    /// Starts the server if it is configured to run always.
    pub fn start_if_eager(self: &Arc<Self>) {
        if self.spec.settings.start == StartPolicy::Eager {
            self.start();
        }
    }

    /// Starts the server unless it runs, is not accepted, or its backoff has not passed.
    pub fn start(self: &Arc<Self>) {
        let due = match &*self.status.borrow() {
            ServerStatus::Idle => true,
            ServerStatus::Down { until, .. } => *until <= Instant::now(),
            ServerStatus::Starting
            | ServerStatus::Ready(_)
            | ServerStatus::AwaitingAcceptance
            | ServerStatus::SignInRequired { .. }
            | ServerStatus::Closed => false,
        };
        if due {
            self.begin();
        }
    }

    /// Ends the connection, if there is one, and starts the server anew, whatever its backoff. Calls under way fail.
    /// Returns whether it may be started at all.
    pub async fn restart(self: &Arc<Self>) -> bool {
        self.failures.store(0, Ordering::Relaxed);
        match self.status() {
            ServerStatus::AwaitingAcceptance | ServerStatus::Closed => return false,
            ServerStatus::Ready(connection) => {
                // No caller may find the connection that is about to end.
                self.status.send_if_modified(|status| {
                    let ends = is_life(status, &connection);
                    if ends {
                        *status = ServerStatus::Idle;
                    }
                    ends
                });
                connection.close().await;
            }
            ServerStatus::Idle
            | ServerStatus::Starting
            | ServerStatus::SignInRequired { .. }
            | ServerStatus::Down { .. } => {}
        }
        self.begin();
        true
    }

    /// Waits until a due or running start has finished. Returns whether the server is ready.
    pub async fn wait_until_started(&self) -> bool {
        let mut status = self.status.subscribe();
        let tried =
            status.wait_for(|status| !matches!(status, ServerStatus::Idle | ServerStatus::Starting)).await;
        tried.is_ok_and(|status| matches!(*status, ServerStatus::Ready(_)))
    }

    /// Ends the server for good. Returns when its process is gone, even if it was still starting.
    pub async fn close(&self) {
        self.stop.cancel();
        self.status.send_replace(ServerStatus::Closed);
        self.lives.close();
        self.lives.wait().await;
        if let Some(authorizer) = &self.spec.authorizer {
            authorizer.close().await;
        }
    }

    fn begin(self: &Arc<Self>) {
        let started = self.status.send_if_modified(|status| match status {
            ServerStatus::Idle | ServerStatus::Down { .. } | ServerStatus::SignInRequired { .. } => {
                *status = ServerStatus::Starting;
                true
            }
            ServerStatus::Starting
            | ServerStatus::Ready(_)
            | ServerStatus::AwaitingAcceptance
            | ServerStatus::Closed => false,
        });
        if started {
            self.changed_at.send_replace(Instant::now());
            let slot = Arc::clone(self);
            self.lives.spawn(async move {
                let tasks = TaskTracker::new();
                slot.live(&tasks).await;
                // If no connection was made, its process is still ending.
                tasks.close();
                tasks.wait().await;
                slot.retry_if_needed().await;
            });
        }
    }

    /// One life of the server, from its start to its end. `tasks` tracks the tasks of its connection.
    async fn live(&self, tasks: &TaskTracker) {
        self.tell(ServerEventKind::Status).await;
        let (events, mut heard) = mpsc::channel(64);
        let asked_at = Instant::now();
        let opening = self.open(events, tasks);
        tokio::pin!(opening);
        let mut stale = false;
        let opened = loop {
            tokio::select! {
                biased;
                opened = &mut opening => break opened,
                // Events are taken at once: the tool list arrives on the stream that unread events would block.
                Some(event) = heard.recv() => if event == ConnectionEvent::ToolsChanged {
                    self.changed_at.send_replace(Instant::now());
                    stale = true;
                },
                () = self.stop.cancelled() => return,
            }
        };
        let (connection, opened) = match opened {
            Ok(opened) => opened,
            Err(StartFailure::SignInRequired(reason)) => {
                self.wait_for_sign_in(&reason);
                return self.tell(ServerEventKind::Status).await;
            }
            Err(StartFailure::Failed(reason)) => {
                self.fail(&reason, |status| matches!(status, ServerStatus::Starting));
                return self.tell(ServerEventKind::Status).await;
            }
        };
        let connection = Arc::new(connection);
        self.tell_tools(asked_at, opened).await;
        let ready = self.status.send_if_modified(|status| {
            let ready = matches!(status, ServerStatus::Starting);
            if ready {
                *status = ServerStatus::Ready(Arc::clone(&connection));
            }
            ready
        });
        if !ready {
            return connection.close().await;
        }
        self.tell(ServerEventKind::Status).await;
        let reason = self.attend(&connection, &mut heard, stale).await;
        // The status changes before the process is gone, which may take seconds: no caller may find the dead
        // connection.
        if let Some(reason) = reason {
            self.fail(&reason, |status| is_life(status, &connection));
        }
        self.tell(ServerEventKind::Status).await;
        connection.close().await;
    }

    /// Retries a server that is configured to run always, or of which a client watches a resource.
    async fn retry_if_needed(self: &Arc<Self>) {
        if (self.spec.settings.start == StartPolicy::Eager || self.watched.has_watchers())
            && let ServerStatus::Down { until, .. } = self.status()
        {
            tokio::select! {
                () = tokio::time::sleep_until(until.into()) => self.begin(),
                () = self.stop.cancelled() => {}
            }
        }
    }

    /// Opens a connection and lists the tools.
    async fn open(
        &self,
        events: mpsc::Sender<ConnectionEvent>,
        tasks: &TaskTracker,
    ) -> Result<(Connection, ToolListing), StartFailure> {
        let patience = self.spec.settings.start_timeout;
        let deadline = Instant::now() + patience;
        let (name, target) = (self.name().as_str(), self.target());
        let opened = Connection::open(name, &target, self.spec.era, patience, events, tasks).await;
        let connection = opened.map_err(|error| match error {
            OpenError::Failed(failure) if needs_sign_in(&failure) => StartFailure::of(&failure),
            other => StartFailure::Failed(printable(&other.to_string())),
        })?;
        match list(&connection, deadline).await {
            Ok(opened) => Ok((connection, opened)),
            Err(failure) => {
                connection.close().await;
                Err(failure)
            }
        }
    }

    /// Follows a live connection until it ends. `stale` says that the tools changed while they were listed. Returns the
    /// reason for the end, or `None` if the server was stopped as idle.
    async fn attend(
        &self,
        connection: &Arc<Connection>,
        heard: &mut mpsc::Receiver<ConnectionEvent>,
        stale: bool,
    ) -> Option<String> {
        // Tools are listed concurrently with receiving events: the list arrives on the stream that unread events would
        // block.
        let changed = Notify::new();
        if stale {
            changed.notify_one();
        }
        let listing =
            async { tokio::join!(self.renew_watched(connection), self.keep_listed(connection, &changed)) };
        tokio::pin!(listing);
        loop {
            let event = tokio::select! {
                event = heard.recv() => event,
                _ = &mut listing => None,
                () = self.idle() => {
                    if self.rest(connection) {
                        return None;
                    }
                    continue;
                }
                () = self.stop.cancelled() => return Some("it was removed from the configuration".to_owned()),
            };
            match event {
                None => {
                    return Some(
                        connection.closed_reason().unwrap_or_else(|| "the connection ended".to_owned()),
                    );
                }
                Some(ConnectionEvent::Closed(reason)) => return Some(reason),
                Some(ConnectionEvent::ToolsChanged) => {
                    self.changed_at.send_replace(Instant::now());
                    changed.notify_one();
                }
                Some(ConnectionEvent::PromptsChanged) => self.tell(ServerEventKind::Prompts).await,
                Some(ConnectionEvent::ResourcesChanged) => self.tell(ServerEventKind::Resources).await,
                Some(ConnectionEvent::ResourceUpdated(uri)) => {
                    self.tell(ServerEventKind::Resource(uri)).await;
                }
            }
        }
    }

    /// Subscribes again to what clients watched before the server was restarted, and says that it may have changed.
    async fn renew_watched(&self, connection: &Connection) {
        for uri in self.watched.renew(connection).await {
            self.tell(ServerEventKind::Resource(uri)).await;
        }
    }

    /// Lists the tools again whenever `changed` is notified, at most once per [`LISTING_PAUSE`]; runs until dropped.
    async fn keep_listed(&self, connection: &Connection, changed: &Notify) {
        loop {
            changed.notified().await;
            let asked_at = Instant::now();
            match list(connection, asked_at + self.spec.settings.call_timeout).await {
                Ok(opened) => self.tell_tools(asked_at, opened).await,
                Err(StartFailure::SignInRequired(error) | StartFailure::Failed(error)) => {
                    tracing::warn!(server = %self.name(), error, "the changed tools could not be listed");
                }
            }
            tokio::time::sleep(LISTING_PAUSE).await;
        }
    }

    /// Returns when the server has been unused for the configured idle time.
    async fn idle(&self) {
        let Some(allowed) = self.spec.settings.idle_stop else { return std::future::pending().await };
        loop {
            let unused = self.usage.unused_for();
            if unused >= allowed && !self.is_needed() {
                return;
            }
            tokio::time::sleep(allowed.saturating_sub(unused).max(Duration::from_millis(100))).await;
        }
    }

    /// Whether a call is under way, or a client watches a resource, which only a running server can report on.
    fn is_needed(&self) -> bool {
        self.usage.is_in_use() || self.watched.has_watchers()
    }

    fn target(&self) -> ServerTarget {
        match &self.spec.settings.transport {
            ServerTransport::Stdio { command, args, cwd, .. } => ServerTarget::Process(Launch {
                command: command.clone(),
                args: args.clone(),
                env: self.spec.env.clone(),
                cwd: cwd.clone(),
                guard: guard(),
            }),
            ServerTransport::Http { url, headers } => ServerTarget::Remote(RemoteServer {
                url: url.to_string(),
                headers: headers
                    .iter()
                    .map(|(name, value)| (name.clone(), value.reveal().to_owned()))
                    .collect(),
                authorizer: self.spec.authorizer.clone().map(|authorizer| authorizer as Arc<dyn Authorizer>),
            }),
        }
    }

    /// The error for a failed request.
    pub fn problem(&self, failure: &RequestFailure) -> Problem {
        let problem = Problem::of_failure(self.name().as_str(), failure);
        Problem { message: self.sanitiser.clean_text(&problem.message).into_owned(), ..problem }
    }

    /// Marks the server as down, with a growing backoff, if `ended` matches its present status.
    fn fail(&self, reason: &str, ended: impl FnOnce(&ServerStatus) -> bool) {
        self.status.send_if_modified(|status| {
            let ended = ended(status);
            if ended {
                let failures = self.failures.fetch_add(1, Ordering::Relaxed);
                let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST_PAUSE);
                let reason = self.sanitiser.clean_text(reason).into_owned();
                *status = ServerStatus::Down { reason, until: Instant::now() + pause };
            }
            ended
        });
    }

    /// Marks a server that was starting as waiting for a person. There is no backoff: each call looks for a sign-in.
    fn wait_for_sign_in(&self, reason: &str) {
        let reason = self.sanitiser.clean_text(reason).into_owned();
        self.status.send_if_modified(|status| {
            let starting = matches!(status, ServerStatus::Starting);
            if starting {
                *status = ServerStatus::SignInRequired { reason };
            }
            starting
        });
    }

    async fn has_token(&self) -> bool {
        match &self.spec.authorizer {
            Some(authorizer) => matches!(authorizer.token().await, Ok(Some(_))),
            None => false,
        }
    }

    /// Marks the server as idle unless it is in use. A later caller finds it idle, and an earlier caller already counts
    /// as a user, so no caller is left with a connection that is about to close.
    fn rest(&self, connection: &Arc<Connection>) -> bool {
        self.status.send_if_modified(|status| {
            let rests = is_life(status, connection) && !self.is_needed();
            if rests {
                *status = ServerStatus::Idle;
            }
            rests
        })
    }

    async fn tell_tools(&self, asked_at: Instant, opened: ToolListing) {
        let launch = self.launch.clone();
        self.tell(ServerEventKind::Listed { launch, asked_at, opened: Box::new(opened) }).await;
    }

    async fn tell(&self, what: ServerEventKind) {
        if self.told.send(ServerEvent { server: self.name().clone(), kind: what }).await.is_err() {
            tracing::debug!(server = %self.name(), "nobody keeps the catalogue any more");
        }
    }

    fn down(&self, reason: &str, wait: Duration) -> ServerUnavailable {
        let problem =
            Problem::new(ErrorCode::ServerDown, format!("server `{}` is down: {reason}", self.name()));
        let hint =
            format!("it is tried again in {:.0} s; `pml doctor` checks it now", wait.as_secs_f64().ceil());
        ServerUnavailable(problem.hint(hint))
    }

    /// Why the tools of a server that was never connected are unknown.
    pub fn why_unready(&self) -> Problem {
        match self.status() {
            ServerStatus::Idle | ServerStatus::Starting | ServerStatus::Ready(_) => {
                let text =
                    format!("server `{}` is still starting and has not listed its tools yet", self.name());
                Problem::new(ErrorCode::ServerStarting, text)
                    .hint("try again in a moment; `pml list` shows its state")
            }
            ServerStatus::Down { reason, until } => {
                self.down(&reason, until.saturating_duration_since(Instant::now())).0
            }
            ServerStatus::AwaitingAcceptance => self.held().0,
            ServerStatus::SignInRequired { reason } => self.signed_out(&reason).0,
            ServerStatus::Closed => self.removed().0,
        }
    }

    fn not_ready(&self) -> ServerUnavailable {
        let problem =
            Problem::new(ErrorCode::ServerStarting, format!("server `{}` is still starting", self.name()));
        let time = self.spec.settings.start_timeout.as_secs();
        ServerUnavailable(
            problem.hint(format!(
                "try again in a moment; `start_timeout` ({time} s) sets how long a call waits"
            )),
        )
    }

    fn signed_out(&self, reason: &str) -> ServerUnavailable {
        ServerUnavailable(Problem::sign_in_required(self.name().as_str(), reason))
    }

    fn removed(&self) -> ServerUnavailable {
        let text = format!("server `{}` was removed from the configuration", self.name());
        ServerUnavailable(
            Problem::new(ErrorCode::UnknownServer, text).hint("`pml list` shows the servers there are"),
        )
    }

    fn held(&self) -> ServerUnavailable {
        let problem = Problem::new(
            ErrorCode::NotAccepted,
            format!("the command of server `{}` is new and not accepted yet", self.name()),
        );
        ServerUnavailable(problem.hint(format!("look at it and run `pml accept {}`", self.name())))
    }
}

/// Whether a status belongs to the life of `connection`.
fn is_life(status: &ServerStatus, connection: &Arc<Connection>) -> bool {
    matches!(status, ServerStatus::Ready(current) if Arc::ptr_eq(current, connection))
}

/// Marks a call as under way until dropped.
#[derive(Debug)]
pub struct ServerUseGuard {
    server: Arc<ServerHandle>,
    purpose: CallPurpose,
}

impl ServerUseGuard {
    /// The server in use.
    pub fn server(&self) -> &ServerHandle {
        &self.server
    }
}

impl Drop for ServerUseGuard {
    fn drop(&mut self) {
        self.server.usage.end_call(self.purpose);
    }
}

/// The executable that guards the processes of servers.
fn guard() -> Option<std::path::PathBuf> {
    if cfg!(unix) { crate::runtime::program_of_parts().ok() } else { None }
}
