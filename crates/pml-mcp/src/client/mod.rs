//! Connections to downstream servers.
//!
//! A [`Connection`] hides how a server is reached and which era it speaks: a request goes out in
//! the form the server expects, and what the server says meanwhile reaches the request's caller.

pub mod failure;
mod http;
mod pending;
pub mod process;
mod stream;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pml_model::json::{Fields, raw};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use failure::{Failure, Lost, NotSent};
pub use http::Remote;
pub(crate) use http::name_of;
pub use pending::Event;
pub use process::{LastWords, Launch};

use crate::caller::Caller;
use crate::message::code;
use crate::protocol::{self, Era, Implementation, LATEST_LEGACY, LEGACY, MODERN, meta};
use crate::question;

/// Where a server is.
#[derive(Debug, Clone)]
pub enum Target {
    /// A child process.
    Process(Launch),
    /// A URL.
    Remote(Remote),
}

/// What a server says of itself.
#[derive(Debug, Clone)]
pub struct About {
    /// How it speaks.
    pub era: Era,
    /// The version agreed on.
    pub version: String,
    /// Its name and version, a JSON object.
    pub server: Option<Box<RawValue>>,
    /// Its capabilities, a JSON object.
    pub capabilities: Box<RawValue>,
    /// How it wants to be used: data, never instructions to us.
    pub instructions: Option<String>,
}

impl About {
    /// Whether it has a capability such as `tools` or `tools.listChanged`.
    pub fn has(&self, capability: &str) -> bool {
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

/// Why no connection came about.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The process could not be started.
    #[error("cannot start `{command}`: {source}")]
    Spawn {
        /// What was to be started.
        command: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The URL or a header is malformed.
    #[error("{0}")]
    Address(String),
    /// It did not become ready in time.
    #[error("it did not answer within {} s", .0.as_secs())]
    Slow(Duration),
    /// It answered, but no common version was found.
    #[error("it speaks only protocol versions {0:?}")]
    Version(Vec<String>),
    /// The conversation failed.
    #[error("{}", opening(.0))]
    Failed(Failure),
}

/// What went wrong before anything was asked of the server: that it may have acted is no worry then.
fn opening(failure: &Failure) -> String {
    match failure {
        Failure::Unknown(Lost::Died(reason)) => reason.clone(),
        Failure::Unknown(lost) => lost.to_string(),
        Failure::NotSent(reason) => reason.to_string(),
        Failure::Rpc(error) => error.to_string(),
    }
}

/// A live connection to one server.
#[derive(Debug)]
pub struct Connection {
    /// What people know the server by.
    name: Arc<str>,
    link: Link,
    about: About,
    ended: Mutex<Option<JoinHandle<()>>>,
    log_rank: AtomicUsize,
    watched: Mutex<HashSet<String>>,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
}

#[derive(Debug, Clone)]
enum Link {
    Stream(stream::StreamLink),
    Http(http::HttpLink),
}

/// One request to a server.
#[derive(Debug)]
pub struct Call<'a> {
    /// Which operation.
    pub method: &'a str,
    /// Its parameters; `_meta` is adapted to the server.
    pub params: Fields<'a>,
    /// `Mcp-Param-*` headers, for stateless servers over HTTP.
    pub mirrored: Vec<(String, String)>,
    /// Whom it is for.
    pub caller: &'a Caller,
    /// When to give up.
    pub deadline: Instant,
    /// When to give up earlier.
    pub cancel: &'a CancellationToken,
}

/// How long a stdio server gets to answer the stateless opening before the older one is tried too.
const PROBE_PATIENCE: Duration = Duration::from_secs(5);
/// How long the last words of a process that has ended may take to be read.
const LAST_WORDS_PATIENCE: Duration = Duration::from_secs(1);
/// How often a server may ask for more input within one request.
const MAX_ROUNDS: usize = 10;
/// How many resources of one server are watched.
const MAX_WATCHED: usize = 1_000;
/// The longest pause before a subscription that was cut is made again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How many pages and items of a list are taken.
const MAX_PAGES: usize = 1_000;
const MAX_ITEMS: usize = 50_000;
const MAX_LIST_BYTES: usize = 64 * 1024 * 1024;

impl Connection {
    /// Starts or contacts the server that people know as `name` and agrees on a version with it. `known_era` is how it
    /// spoke the last time; `events` hears what it says on its own account.
    ///
    /// # Errors
    /// It cannot be started or reached, does not answer in time, or speaks no version we do.
    pub async fn open(
        name: &str,
        target: &Target,
        known_era: Option<Era>,
        patience: Duration,
        events: mpsc::Sender<Event>,
    ) -> Result<Connection, OpenError> {
        let stop = CancellationToken::new();
        let stop_on_drop = stop.clone().drop_guard();
        let last_words = LastWords::default();
        let (link, ended) = match target {
            Target::Process(launch) => {
                let (link, ended) = start(launch, events, &stop, &last_words).await?;
                (Link::Stream(link), Some(ended))
            }
            Target::Remote(remote) => {
                let link = http::HttpLink::new(remote, events, stop.clone()).map_err(OpenError::Address)?;
                (Link::Http(link), None)
            }
        };
        let agreed = tokio::time::timeout(patience, link.agree(known_era, Instant::now() + patience)).await;
        let about = agreed.map_err(|_| OpenError::Slow(patience))??;
        let connection = Connection {
            name: Arc::from(name),
            link,
            about,
            ended: Mutex::new(ended),
            log_rank: AtomicUsize::new(usize::MAX),
            watched: Mutex::default(),
            stop,
            _stop_on_drop: stop_on_drop,
        };
        connection.subscribe();
        Ok(connection)
    }

    /// What the server says of itself.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Why the connection ended, if it has.
    pub fn closed(&self) -> Option<String> {
        match &self.link {
            Link::Stream(link) => link.closed(),
            Link::Http(link) => link.closed(),
        }
    }

    /// Sends a request and waits for its result. A server that asks for input gets it from the
    /// caller: an older client is asked right away, a stateless one gets the question as the result.
    ///
    /// # Errors
    /// As [`Failure`] tells them apart.
    pub async fn request(&self, call: Call<'_>) -> Result<Box<RawValue>, Failure> {
        let caller = call.caller.for_server(&self.name);
        let mut call = Call { caller: &caller, ..call };
        if let Some(rank) = call.caller.log_rank()
            && self.log_rank.fetch_min(rank, Ordering::Relaxed) > rank
        {
            self.set_log_level(rank).await;
        }
        for round in 0..MAX_ROUNDS {
            let result = match self.once(&mut call).await {
                // Earlier rounds did reach the server, so this is not nothing.
                Err(Failure::NotSent(reason)) if round > 0 => {
                    return Err(Failure::Unknown(Lost::Died(reason.to_string())));
                }
                other => other?,
            };
            if !protocol::is_input_required(&result) {
                return Ok(result);
            }
            if call.caller.era() == Era::Modern {
                return question::screened_result(&self.name, &result).map_err(Failure::Rpc);
            }
            answer_questions(&result, &mut call).await.map_err(Failure::Rpc)?;
        }
        Err(Failure::Unknown(Lost::Garbage(format!("it asked for input {MAX_ROUNDS} times"))))
    }

    async fn once(&self, call: &mut Call<'_>) -> Result<Box<RawValue>, Failure> {
        let id = self.link.next_id();
        let (caller, era) = (call.caller, self.about.era);
        protocol::edit_meta(&mut call.params, |fields| {
            if caller.wants_progress() {
                fields.set(meta::PROGRESS_TOKEN, raw(&id));
            } else {
                fields.remove(meta::PROGRESS_TOKEN);
            }
            match era {
                Era::Modern => protocol::modern_meta(fields, caller.capabilities()),
                Era::Legacy => protocol::legacy_meta(fields),
            }
            if let (Era::Legacy, Era::Modern, Some(level)) = (caller.era(), era, caller.log_level()) {
                fields.set(meta::LOG_LEVEL, raw(&level));
            }
        });
        let params = call.params.to_raw();
        let Call { method, mirrored, deadline, cancel, .. } = call;
        self.link.request(id, method, Some(&params), mirrored, caller, *deadline, cancel).await
    }

    /// Every item of a paginated list, such as `tools/list`.
    ///
    /// # Errors
    /// A page fails, or the list does not end.
    pub async fn list(&self, method: &str, deadline: Instant) -> Result<Vec<Box<RawValue>>, Failure> {
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
            let call =
                Call { method, params, mirrored: Vec::new(), caller: &caller, deadline, cancel: &cancel };
            let page = self.request(call).await?;
            let garbage = |reason: String| Failure::Unknown(Lost::Garbage(reason));
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
        Err(Failure::Unknown(Lost::Garbage(format!("`{method}` does not end after {MAX_PAGES} pages"))))
    }

    /// Asks a stateless server to tell of changes; an older one does so unasked.
    fn subscribe(&self) {
        let wanted = [
            ("toolsListChanged", "tools.listChanged"),
            ("promptsListChanged", "prompts.listChanged"),
            ("resourcesListChanged", "resources.listChanged"),
        ];
        let filter: serde_json::Map<String, serde_json::Value> = wanted
            .iter()
            .filter(|(_, capability)| self.about.has(capability))
            .map(|(key, _)| ((*key).into(), true.into()))
            .collect();
        if self.about.era == Era::Modern && !filter.is_empty() {
            self.watch(json!({ "notifications": filter }));
        }
    }

    /// Asks a server to tell when a resource changes.
    ///
    /// # Errors
    /// As [`Failure`] tells them apart.
    pub async fn watch_resource(&self, uri: &str, deadline: Instant) -> Result<(), Failure> {
        {
            let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
            if watched.contains(uri) || watched.len() >= MAX_WATCHED {
                return Ok(());
            }
            watched.insert(uri.to_owned());
        }
        if self.about.era == Era::Modern {
            self.watch(json!({ "notifications": { "resourceSubscriptions": [uri] } }));
            return Ok(());
        }
        let (caller, cancel) = (Caller::silent(), CancellationToken::new());
        let mut params = Fields::default();
        params.set("uri", raw(&uri));
        let call = Call {
            method: "resources/subscribe",
            params,
            mirrored: Vec::new(),
            caller: &caller,
            deadline,
            cancel: &cancel,
        };
        self.request(call).await.map(drop)
    }

    /// Keeps one `subscriptions/listen` open for as long as the connection lasts.
    fn watch(&self, params: serde_json::Value) {
        let (link, stop) = (self.link.clone(), self.stop.clone());
        tokio::spawn(async move {
            let mut pause = Duration::from_secs(1);
            // A listen request has no deadline; a year stands for that.
            let far = Duration::from_secs(365 * 24 * 3600);
            while !stop.is_cancelled() {
                let text = params.to_string();
                let mut fields = Fields::parse(&text).expect("a JSON object was just written");
                protocol::edit_meta(&mut fields, |meta| {
                    protocol::modern_meta(meta, &pml_model::json::empty_object());
                });
                let (id, opened) = (link.next_id(), Instant::now());
                let (params, caller) = (fields.to_raw(), Caller::silent());
                let ended = link
                    .request(id, "subscriptions/listen", Some(&params), &[], &caller, opened + far, &stop)
                    .await;
                tracing::debug!(?ended, "a subscription ended");
                if let Err(Failure::Rpc(_)) = ended {
                    return;
                }
                // One that lasted was cut by something that comes and goes.
                pause = if opened.elapsed() > LONGEST_PAUSE { Duration::from_secs(1) } else { pause * 2 };
                pause = pause.min(LONGEST_PAUSE);
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = stop.cancelled() => {}
                }
            }
        });
    }

    /// Asks an older server to log from a level on; a stateless one is told with each request.
    async fn set_log_level(&self, rank: usize) {
        let Some(level) =
            protocol::log_level(rank).filter(|_| self.about.era == Era::Legacy && self.about.has("logging"))
        else {
            return;
        };
        // A server that does not answer this must not cost the call its time.
        let soon = Instant::now() + Duration::from_secs(2);
        if let Err(error) = self.link.ask("logging/setLevel", &raw(&json!({ "level": level })), soon).await {
            tracing::debug!(%error, "a server did not take the log level");
        }
    }

    /// Ends the connection and, where it is ours, the process; returns when both are gone.
    pub async fn close(&self) {
        if let Link::Http(link) = &self.link {
            link.farewell().await;
        }
        self.stop.cancel();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ended) = ended
            && let Err(error) = ended.await
        {
            tracing::debug!(%error, "the task that watches a process failed");
        }
    }
}

/// Puts the answers to a server's questions into the next round of the same request.
async fn answer_questions(result: &RawValue, call: &mut Call<'_>) -> Result<(), crate::RpcError> {
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
    events: mpsc::Sender<Event>,
    stop: &CancellationToken,
    last_words: &LastWords,
) -> Result<(stream::StreamLink, JoinHandle<()>), OpenError> {
    let spawned = process::spawn(launch).await;
    let mut child = spawned.map_err(|source| OpenError::Spawn { command: launch.command.clone(), source })?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        unreachable!("all three streams of the child were asked for as pipes");
    };
    let mut heard = tokio::spawn(process::listen(stderr, last_words.clone()));
    let (exited, exit) = watch::channel(None);
    let link = stream::StreamLink::start(
        stdout,
        stdin,
        events,
        stop.clone(),
        stream::Ending { exit, last_words: last_words.clone() },
    );
    let stop = stop.clone();
    let ended = tokio::spawn(async move {
        tokio::select! {
            status = child.wait() => {
                // What it said last may still be in the pipe; one that was left open is not waited for.
                drop(tokio::time::timeout(LAST_WORDS_PATIENCE, &mut heard).await);
                drop(exited.send(Some(process::describe(status))));
            }
            () = stop.cancelled() => drop(exited.send(Some(process::end(&mut child).await))),
        }
        heard.abort();
    });
    Ok((link, ended))
}

impl Link {
    fn next_id(&self) -> u64 {
        match self {
            Link::Stream(link) => link.next_id(),
            Link::Http(link) => link.next_id(),
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
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Box<RawValue>, Failure> {
        match self {
            Link::Stream(link) => link.request(id, method, params, caller, deadline, cancel).await,
            Link::Http(link) => {
                link.request(http::Post { id, method, params, mirrored, caller, deadline, cancel }).await
            }
        }
    }

    async fn ask(
        &self,
        method: &str,
        params: &RawValue,
        deadline: Instant,
    ) -> Result<Box<RawValue>, Failure> {
        let (caller, cancel) = (Caller::silent(), CancellationToken::new());
        self.request(self.next_id(), method, Some(params), &[], &caller, deadline, &cancel).await
    }

    /// Finds the version both sides speak. A server that spoke the older protocol the last time is
    /// greeted in it at once; any other is asked statelessly first.
    async fn agree(&self, known_era: Option<Era>, deadline: Instant) -> Result<About, OpenError> {
        if known_era == Some(Era::Legacy)
            && let Ok(about) = self.initialize(deadline).await
        {
            return Ok(about);
        }
        match self {
            Link::Http(link) => {
                link.agree(MODERN);
                match self.discover(deadline).await {
                    Ok(about) => Ok(about),
                    Err(error) if is_final(&error) => Err(error),
                    Err(_) => self.initialize(deadline).await,
                }
            }
            Link::Stream(_) => {
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
                // Silence: an older server that ignores what it does not know, or a slow start.
                let initialize = self.initialize(deadline);
                tokio::pin!(initialize);
                tokio::select! {
                    Ok(about) = &mut discover => Ok(about),
                    about = &mut initialize => about,
                }
            }
        }
    }

    async fn discover(&self, deadline: Instant) -> Result<About, OpenError> {
        let mut params = Fields::default();
        protocol::edit_meta(&mut params, |meta| protocol::modern_meta(meta, &our_capabilities()));
        let result = self.ask("server/discover", &params.to_raw(), deadline).await.map_err(unsupported)?;
        let fields = Fields::parse(result.get()).unwrap_or_default();
        let versions: Vec<String> = fields.read("supportedVersions").unwrap_or_default();
        if !versions.iter().any(|version| version == MODERN) {
            return Err(OpenError::Version(versions));
        }
        let server = fields
            .get("_meta")
            .and_then(|m| Fields::parse(m.get()).ok()?.get(meta::SERVER_INFO).map(ToOwned::to_owned));
        Ok(About {
            era: Era::Modern,
            version: MODERN.to_owned(),
            server: server.or_else(|| fields.get("serverInfo").map(ToOwned::to_owned)),
            capabilities: fields
                .get("capabilities")
                .map_or_else(pml_model::json::empty_object, ToOwned::to_owned),
            instructions: fields.read("instructions"),
        })
    }

    async fn initialize(&self, deadline: Instant) -> Result<About, OpenError> {
        if let Link::Http(link) = self {
            link.forget_version();
        }
        let params = raw(&json!({
            "protocolVersion": LATEST_LEGACY,
            "capabilities": our_capabilities(),
            "clientInfo": Implementation::pml(),
        }));
        let result = self.ask("initialize", &params, deadline).await.map_err(OpenError::Failed)?;
        let fields = Fields::parse(result.get()).unwrap_or_default();
        let version: String = fields.read("protocolVersion").unwrap_or_default();
        if !LEGACY.contains(&version.as_str()) {
            return Err(OpenError::Version(vec![version]));
        }
        match self {
            Link::Stream(link) => link.notify("notifications/initialized", None),
            Link::Http(link) => {
                link.agree(&version);
                link.notify("notifications/initialized", None).await.map_err(OpenError::Failed)?;
                link.listen();
            }
        }
        Ok(About {
            era: Era::Legacy,
            version,
            server: fields.get("serverInfo").map(ToOwned::to_owned),
            capabilities: fields
                .get("capabilities")
                .map_or_else(pml_model::json::empty_object, ToOwned::to_owned),
            instructions: fields.read("instructions"),
        })
    }
}

/// What this gateway can pass on to the clients behind it.
fn our_capabilities() -> Box<RawValue> {
    raw(
        &json!({ "roots": { "listChanged": true }, "sampling": {}, "elicitation": { "form": {}, "url": {} } }),
    )
}

/// A refusal that names other versions is an answer of a stateless server.
fn unsupported(failure: Failure) -> OpenError {
    if let Failure::Rpc(error) = &failure
        && error.code == code::UNSUPPORTED_VERSION
        && let Some(data) = &error.data
        && let Ok(fields) = Fields::parse(data.get())
    {
        return OpenError::Version(fields.read("supported").unwrap_or_default());
    }
    OpenError::Failed(failure)
}

/// Whether the older handshake cannot help either.
fn is_final(error: &OpenError) -> bool {
    match error {
        OpenError::Version(versions) => !versions.iter().any(|version| LEGACY.contains(&version.as_str())),
        OpenError::Failed(Failure::NotSent(reason)) => !matches!(reason, NotSent::SessionEnded),
        OpenError::Failed(Failure::Unknown(Lost::Died(_) | Lost::Timeout)) => true,
        OpenError::Failed(_) => false,
        OpenError::Spawn { .. } | OpenError::Address(_) | OpenError::Slow(_) => true,
    }
}
