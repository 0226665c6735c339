//! One downstream server through its life.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pml_mcp::client::{Connection, Event, Failure, Launch, Remote, Target};
use pml_mcp::{Era, client::About};
use pml_model::name::printable;
use pml_model::{Definition, Digest, ServerName};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::Wanted;
use crate::config::{self, Start, Transport};
use crate::problem::{Code, Problem};
use crate::sanitise::Sanitiser;

/// Something that happened to a server.
#[derive(Debug)]
pub struct Told {
    /// Which.
    pub server: ServerName,
    /// What.
    pub what: What,
}

/// What may happen.
#[derive(Debug)]
pub enum What {
    /// It is ready, and these are its tools.
    Listed {
        /// How it was started.
        launch: Digest,
        /// When it was asked for them.
        asked_at: Instant,
        /// What it told.
        opened: Box<Opened>,
    },
    /// Its state changed.
    Status,
    /// Its prompts changed.
    Prompts,
    /// Its list of resources changed.
    Resources,
    /// One of its resources changed.
    Resource(String),
}

/// What a server told when it was opened, or when its tools changed.
#[derive(Debug, Clone)]
pub struct Opened {
    /// What it says of itself.
    pub about: About,
    /// Its tools.
    pub tools: Vec<Definition>,
    /// Definitions that could not be taken in, and why.
    pub refused: Vec<String>,
}

/// How a server is.
#[derive(Debug, Clone)]
pub enum Status {
    /// Not started: nobody needed it yet.
    Idle,
    /// Being started.
    Starting,
    /// Usable.
    Ready(Arc<Connection>),
    /// Ended or not reached; not tried again before `until`.
    Down {
        /// Why.
        reason: String,
        /// When it may be tried again.
        until: Instant,
    },
    /// Its command waits for a person's word.
    Held,
    /// Removed from the configuration, or we are ending.
    Closed,
}

/// Why a server cannot be used.
#[derive(Debug, Clone)]
pub struct Unavailable(pub Problem);

/// One server.
#[derive(Debug)]
pub struct Slot {
    name: ServerName,
    settings: config::Server,
    /// Takes its own secrets out of what is told of it: what it says when it ends, and how it could not be reached.
    sanitiser: Sanitiser,
    launch: Digest,
    env: std::collections::BTreeMap<String, String>,
    accepted: bool,
    era: Option<Era>,
    status: watch::Sender<Status>,
    failures: AtomicU32,
    in_use: AtomicU32,
    used_ms: AtomicU64,
    born: Instant,
    rate_limit: watch::Sender<Option<Instant>>,
    /// Since when its tools may be others than were listed before: it was started, or said so.
    changed_at: watch::Sender<Instant>,
    told: mpsc::Sender<Told>,
    stop: CancellationToken,
}

/// How long a call waits for a server that is about to be tried again.
const SHORT_WAIT: Duration = Duration::from_secs(1);
/// The pause after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The shortest time between two listings of a server's tools, however often they change.
const LISTING_PAUSE: Duration = Duration::from_millis(100);

impl Slot {
    pub(super) fn new(wanted: Wanted, told: mpsc::Sender<Told>) -> Slot {
        let status = if wanted.accepted { Status::Idle } else { Status::Held };
        Slot {
            name: wanted.settings.name.clone(),
            launch: config::launch_digest(&wanted.settings),
            sanitiser: Sanitiser::new(wanted.settings.secrets.iter().cloned()),
            settings: wanted.settings,
            env: wanted.env,
            accepted: wanted.accepted,
            era: wanted.era,
            status: watch::Sender::new(status),
            failures: AtomicU32::new(0),
            in_use: AtomicU32::new(0),
            used_ms: AtomicU64::new(0),
            born: Instant::now(),
            rate_limit: watch::Sender::new(None),
            changed_at: watch::Sender::new(Instant::now()),
            told,
            stop: CancellationToken::new(),
        }
    }

    /// Whether this slot is already what is wanted.
    pub(super) fn is_for(&self, wanted: &Wanted) -> bool {
        self.settings == wanted.settings && self.env == wanted.env && self.accepted == wanted.accepted
    }

    /// Its name.
    pub fn name(&self) -> &ServerName {
        &self.name
    }

    /// Its settings.
    pub fn settings(&self) -> &config::Server {
        &self.settings
    }

    /// How it is started: a digest of it.
    pub fn launch(&self) -> &Digest {
        &self.launch
    }

    /// How it is now.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// A live connection, starting the server if need be. Starting goes on if the caller gives up.
    ///
    /// # Errors
    /// It is held, down, or not ready before the deadline.
    pub async fn connection(
        self: &Arc<Self>,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Arc<Connection>, Unavailable> {
        self.used_ms.store(self.since_born(), Ordering::Relaxed);
        let mut status = self.status.subscribe();
        loop {
            let now = status.borrow_and_update().clone();
            match now {
                Status::Ready(connection) => match connection.closed() {
                    None => return Ok(connection),
                    Some(reason) => self.fail(&reason, |status| is_life(status, &connection)),
                },
                Status::Idle => self.begin(),
                Status::Down { until, .. } if until <= Instant::now() => self.begin(),
                Status::Down { reason, until } => {
                    let wait = until.saturating_duration_since(Instant::now());
                    if wait > SHORT_WAIT || until > deadline {
                        return Err(self.down(&reason, wait));
                    }
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = cancel.cancelled() => return Err(self.not_ready()),
                    }
                }
                Status::Held => return Err(self.held()),
                Status::Closed => return Err(self.removed()),
                Status::Starting => {
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

    /// Notes that a call is under way until the value is dropped, so that the server is not
    /// stopped as idle meanwhile.
    pub fn in_use(self: &Arc<Self>) -> InUse {
        self.in_use.fetch_add(1, Ordering::SeqCst);
        InUse(Arc::clone(self))
    }

    /// Notes that it answered a call: whatever went wrong before is over.
    pub fn answered(&self) {
        self.failures.store(0, Ordering::Relaxed);
    }

    /// Holds back requests to this server for a while, because it asked for that.
    pub fn limit_rate(&self, wait: Duration) {
        self.rate_limit.send_replace(Some(Instant::now() + wait.min(Duration::from_secs(3600))));
    }

    /// How long the server still wants no requests.
    pub fn rate_limited(&self) -> Option<Duration> {
        let until = (*self.rate_limit.borrow())?;
        until.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero())
    }

    /// Since when its tools may be others than were listed before.
    pub fn changed_at(&self) -> Instant {
        *self.changed_at.borrow()
    }

    /// Starts the server if it should run without being asked.
    pub fn start_if_eager(self: &Arc<Self>) {
        if self.settings.start == Start::Eager {
            self.start();
        }
    }

    /// Starts the server unless it runs, is held or must wait.
    pub fn start(self: &Arc<Self>) {
        let due = match &*self.status.borrow() {
            Status::Idle => true,
            Status::Down { until, .. } => *until <= Instant::now(),
            Status::Starting | Status::Ready(_) | Status::Held | Status::Closed => false,
        };
        if due {
            self.begin();
        }
    }

    /// Waits until a start that is due or under way has come to something; says whether it is ready.
    pub async fn tried(&self) -> bool {
        let mut status = self.status.subscribe();
        let tried = status.wait_for(|status| !matches!(status, Status::Idle | Status::Starting)).await;
        tried.is_ok_and(|status| matches!(*status, Status::Ready(_)))
    }

    /// Ends the server for good.
    pub async fn close(&self) {
        self.stop.cancel();
        let before = self.status.send_replace(Status::Closed);
        if let Status::Ready(connection) = before {
            connection.close().await;
        }
    }

    fn begin(self: &Arc<Self>) {
        let started = self.status.send_if_modified(|status| match status {
            Status::Idle | Status::Down { .. } => {
                *status = Status::Starting;
                true
            }
            Status::Starting | Status::Ready(_) | Status::Held | Status::Closed => false,
        });
        if started {
            self.changed_at.send_replace(Instant::now());
            let slot = Arc::clone(self);
            tokio::spawn(async move { slot.live().await });
        }
    }

    /// One life of the server, from its start to its end.
    async fn live(self: Arc<Self>) {
        self.tell(What::Status).await;
        let (events, mut heard) = mpsc::channel(64);
        let asked_at = Instant::now();
        let opening = self.open(events);
        tokio::pin!(opening);
        let mut stale = false;
        let opened = loop {
            tokio::select! {
                biased;
                opened = &mut opening => break opened,
                // Taken at once: the list of tools comes on the stream that these would block.
                Some(event) = heard.recv() => if event == Event::ToolsChanged {
                    self.changed_at.send_replace(Instant::now());
                    stale = true;
                },
                () = self.stop.cancelled() => return,
            }
        };
        let (connection, opened) = match opened {
            Ok(opened) => opened,
            Err(reason) => {
                self.fail(&reason, |status| matches!(status, Status::Starting));
                self.tell(What::Status).await;
                return self.try_again_if_eager().await;
            }
        };
        let connection = Arc::new(connection);
        self.tell_tools(asked_at, opened).await;
        let ready = self.status.send_if_modified(|status| {
            let ready = matches!(status, Status::Starting);
            if ready {
                *status = Status::Ready(Arc::clone(&connection));
            }
            ready
        });
        if !ready {
            return connection.close().await;
        }
        self.tell(What::Status).await;
        let reason = self.attend(&connection, &mut heard, stale).await;
        // Before the process is gone, which may take it seconds: nobody shall find the dead connection.
        if let Some(reason) = reason {
            self.fail(&reason, |status| is_life(status, &connection));
        }
        self.tell(What::Status).await;
        connection.close().await;
        self.try_again_if_eager().await;
    }

    /// One that should always run is tried again without being asked.
    async fn try_again_if_eager(self: &Arc<Self>) {
        if self.settings.start == Start::Eager
            && let Status::Down { until, .. } = self.status()
        {
            tokio::select! {
                () = tokio::time::sleep_until(until.into()) => self.begin(),
                () = self.stop.cancelled() => {}
            }
        }
    }

    /// Opens a connection and asks for the tools.
    async fn open(&self, events: mpsc::Sender<Event>) -> Result<(Connection, Opened), String> {
        let patience = self.settings.start_timeout;
        let deadline = Instant::now() + patience;
        let opened = Connection::open(self.name.as_str(), &self.target(), self.era, patience, events).await;
        let connection = opened.map_err(|error| printable(&error.to_string()))?;
        match list(&connection, deadline).await {
            Ok(opened) => Ok((connection, opened)),
            Err(reason) => {
                connection.close().await;
                Err(reason)
            }
        }
    }

    /// Follows a live connection, whose tools are `stale` if they changed while they were listed; gives the reason of its end, or `None` when it was stopped as idle.
    async fn attend(
        &self,
        connection: &Arc<Connection>,
        heard: &mut mpsc::Receiver<Event>,
        stale: bool,
    ) -> Option<String> {
        // Tools are listed beside hearing events: the answer comes on the stream that events would block.
        let changed = Notify::new();
        if stale {
            changed.notify_one();
        }
        let listing = self.keep_listed(connection, &changed);
        tokio::pin!(listing);
        loop {
            let event = tokio::select! {
                event = heard.recv() => event,
                () = &mut listing => None,
                () = self.idle() => {
                    if self.rest(connection) {
                        return None;
                    }
                    continue;
                }
                () = self.stop.cancelled() => return Some("it was removed from the configuration".to_owned()),
            };
            match event {
                None => return Some("the connection ended".to_owned()),
                Some(Event::Closed(reason)) => return Some(reason),
                Some(Event::ToolsChanged) => {
                    self.changed_at.send_replace(Instant::now());
                    changed.notify_one();
                }
                Some(Event::PromptsChanged) => self.tell(What::Prompts).await,
                Some(Event::ResourcesChanged) => self.tell(What::Resources).await,
                Some(Event::ResourceUpdated(uri)) => self.tell(What::Resource(uri)).await,
            }
        }
    }

    /// Lists the tools again whenever `changed` says so, however often it does; runs until dropped.
    async fn keep_listed(&self, connection: &Connection, changed: &Notify) {
        loop {
            changed.notified().await;
            let asked_at = Instant::now();
            match list(connection, asked_at + self.settings.call_timeout).await {
                Ok(opened) => self.tell_tools(asked_at, opened).await,
                Err(error) => {
                    tracing::warn!(server = %self.name, error, "the changed tools could not be listed");
                }
            }
            tokio::time::sleep(LISTING_PAUSE).await;
        }
    }

    /// Returns when the server has been unused for as long as the configuration allows.
    async fn idle(&self) {
        let Some(allowed) = self.settings.idle_stop else { return std::future::pending().await };
        loop {
            let used = Duration::from_millis(self.used_ms.load(Ordering::Relaxed));
            let unused = self.born.elapsed().saturating_sub(used);
            if unused >= allowed && self.in_use.load(Ordering::SeqCst) == 0 {
                return;
            }
            tokio::time::sleep(allowed.saturating_sub(unused).max(Duration::from_millis(100))).await;
        }
    }

    fn target(&self) -> Target {
        match &self.settings.transport {
            Transport::Stdio { command, args, cwd, .. } => Target::Process(Launch {
                command: command.clone(),
                args: args.clone(),
                env: self.env.clone(),
                cwd: cwd.clone(),
                guard: guard(),
            }),
            Transport::Http { url, headers } => Target::Remote(Remote {
                url: url.to_string(),
                headers: headers
                    .iter()
                    .map(|(name, value)| (name.clone(), value.reveal().to_owned()))
                    .collect(),
            }),
        }
    }

    /// What is told of a request that failed.
    pub fn problem(&self, failure: &Failure) -> Problem {
        let problem = Problem::of_failure(self.name.as_str(), failure);
        Problem { message: self.sanitiser.text(&problem.message).into_owned(), ..problem }
    }

    /// Puts the server down, and for longer each time, if its state is the one that has just ended.
    fn fail(&self, reason: &str, ended: impl FnOnce(&Status) -> bool) {
        self.status.send_if_modified(|status| {
            let ended = ended(status);
            if ended {
                let failures = self.failures.fetch_add(1, Ordering::Relaxed);
                let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST_PAUSE);
                let reason = self.sanitiser.text(reason).into_owned();
                *status = Status::Down { reason, until: Instant::now() + pause };
            }
            ended
        });
    }

    /// Lets the server be idle unless somebody uses it. Whoever comes later finds it idle, and
    /// whoever came before has counted as a user, so nobody is left with a connection about to close.
    fn rest(&self, connection: &Arc<Connection>) -> bool {
        self.status.send_if_modified(|status| {
            let rests = is_life(status, connection) && self.in_use.load(Ordering::SeqCst) == 0;
            if rests {
                *status = Status::Idle;
            }
            rests
        })
    }

    async fn tell_tools(&self, asked_at: Instant, opened: Opened) {
        let launch = self.launch.clone();
        self.tell(What::Listed { launch, asked_at, opened: Box::new(opened) }).await;
    }

    async fn tell(&self, what: What) {
        if self.told.send(Told { server: self.name.clone(), what }).await.is_err() {
            tracing::debug!(server = %self.name, "nobody keeps the catalogue any more");
        }
    }

    fn since_born(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn down(&self, reason: &str, wait: Duration) -> Unavailable {
        let problem = Problem::new(Code::ServerDown, format!("server `{}` is down: {reason}", self.name));
        let hint =
            format!("it is tried again in {:.0} s; `pml doctor` checks it now", wait.as_secs_f64().ceil());
        Unavailable(problem.hint(hint))
    }

    /// Why the tools of a server that was never met are not known.
    pub fn unready(&self) -> Problem {
        match self.status() {
            Status::Idle | Status::Starting | Status::Ready(_) => {
                let text =
                    format!("server `{}` is still starting and has not listed its tools yet", self.name);
                Problem::new(Code::ServerStarting, text)
                    .hint("try again in a moment; `pml list` shows its state")
            }
            Status::Down { reason, until } => {
                self.down(&reason, until.saturating_duration_since(Instant::now())).0
            }
            Status::Held => self.held().0,
            Status::Closed => self.removed().0,
        }
    }

    fn not_ready(&self) -> Unavailable {
        let problem = Problem::new(Code::ServerStarting, format!("server `{}` is still starting", self.name));
        let time = self.settings.start_timeout.as_secs();
        Unavailable(
            problem.hint(format!(
                "try again in a moment; `start_timeout` ({time} s) sets how long a call waits"
            )),
        )
    }

    fn removed(&self) -> Unavailable {
        let text = format!("server `{}` was removed from the configuration", self.name);
        Unavailable(Problem::new(Code::UnknownServer, text).hint("`pml list` shows the servers there are"))
    }

    fn held(&self) -> Unavailable {
        let problem = Problem::new(
            Code::NotAccepted,
            format!("the command of server `{}` is new and not accepted yet", self.name),
        );
        Unavailable(problem.hint(format!("look at it and run `pml accept {}`", self.name)))
    }
}

/// Whether a state is that of the life which `connection` belongs to.
fn is_life(status: &Status, connection: &Arc<Connection>) -> bool {
    matches!(status, Status::Ready(current) if Arc::ptr_eq(current, connection))
}

/// A call that is under way.
#[derive(Debug)]
pub struct InUse(Arc<Slot>);

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.in_use.fetch_sub(1, Ordering::SeqCst);
        self.0.used_ms.store(self.0.since_born(), Ordering::Relaxed);
    }
}

async fn list(connection: &Connection, deadline: Instant) -> Result<Opened, String> {
    let raw = if connection.about().has("tools") {
        connection.list("tools/list", deadline).await.map_err(|failure| printable(&failure.to_string()))?
    } else {
        Vec::new()
    };
    let (mut tools, mut refused) = (Vec::with_capacity(raw.len()), Vec::new());
    for definition in raw {
        match Definition::parse(definition) {
            Ok(definition) => tools.push(definition),
            Err(error) => refused.push(printable(&error.to_string())),
        }
    }
    Ok(Opened { about: connection.about().clone(), tools, refused })
}

/// This program, which guards the processes it starts.
fn guard() -> Option<std::path::PathBuf> {
    if cfg!(unix) { crate::runtime::this_program().ok() } else { None }
}
