//! The tools and the servers behind them: manifests, accepted definitions and connections.
//!
//! Keeps the catalogue in sync with the configuration, the database and the running servers. Calls go through
//! [`call`](super::call).

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::RwLock;
use pml_mcp::Era;
use pml_mcp::server::ChangeNotice;
use pml_model::{Definition, Digest, Principal, ServerName, ToolId};
use pml_store::{
    AcceptancePolicy, AcceptedDefinitions, Manifest, ProcessIdentity, ServerListing, Store,
    StoredServerProfile, StoredTool,
};
use tokio::sync::{broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::call_audit::CallAudit;
use crate::approve::Policy;
use crate::builtin;
use crate::catalogue::{self, Offer, ServerOffers, ToolCatalogue, ToolSnapshot};
use crate::clock::now_ms;
use crate::config::{self, Config, DefinitionPolicy, ServerTransport, WideRoot};
use crate::epoch::Epoch;
use crate::problem::{ErrorCode, Problem};
use crate::servers::{
    ServerEvent, ServerEventKind, ServerHandle, ServerSpec, ServerStatus, Servers, ToolListing, resource_uri,
};
use crate::settings::AppSettings;
use crate::sign_in::ServerAuthorizer;
use crate::telemetry::Telemetry;
use crate::validate::Validators;

/// The tools and the servers behind them.
pub struct Toolset {
    settings: Arc<AppSettings>,
    store: Store,
    /// The catalogue of all tools.
    pub catalogue: ToolCatalogue,
    /// The downstream servers.
    pub servers: Servers,
    /// The compiled input schemas.
    pub validators: Validators,
    /// The write epoch, which tells whether anything may have been written since a given moment.
    pub epoch: Epoch,
    /// Makes the spans of requests, runs and calls.
    pub(crate) telemetry: Telemetry,
    /// Writes direct calls to the audit log.
    pub(super) call_audit: CallAudit,
    builtin: ArcSwap<BuiltInServers>,
    changes: broadcast::Sender<ChangeNotice>,
    /// When the tools in the catalogue were listed, by server and launch digest.
    listed: watch::Sender<HashMap<(ServerName, Digest), Instant>>,
    refused: RwLock<HashMap<ServerName, Vec<String>>>,
    /// The manifests of the servers that run in this process.
    live: RwLock<HashMap<ServerName, LiveTools>>,
    /// The identity of this process, if it publishes the status of its servers.
    process: Option<ProcessIdentity>,
    acquainted_by: OnceLock<Instant>,
    /// The tasks that keep the catalogue in sync with the servers.
    following: TaskTracker,
}

type BuiltInServers = HashMap<&'static str, builtin::BuiltinServer>;

/// 5 s: how long the first request waits for servers whose manifests are unknown.
const ACQUAINTANCE: Duration = Duration::from_secs(5);

/// The owner of the catalogue: servers and their definitions belong to the installation, not to one of its users.
pub(crate) fn installation() -> Principal {
    Principal::local()
}

impl Toolset {
    /// Opens the tools of the configuration with the stored manifests. Starts no server.
    ///
    /// # Errors
    /// The built-in servers cannot be created, or the database cannot be read.
    pub(crate) async fn open(
        (settings, telemetry): (Arc<AppSettings>, Telemetry),
        store: Store,
        process: ProcessIdentity,
        publishes: bool,
        stop: &CancellationToken,
    ) -> Result<Arc<Toolset>, Problem> {
        let config = settings.config();
        let (told, hears) = mpsc::channel(256);
        let tools = Arc::new(Toolset {
            catalogue: ToolCatalogue::new(ToolSnapshot::new(Vec::new(), config.names)),
            servers: Servers::new(told),
            validators: Validators::default(),
            epoch: Epoch::new(store.clone(), process.clone()),
            telemetry,
            call_audit: CallAudit::start(store.clone()),
            builtin: ArcSwap::from_pointee(built_in(&config, &settings)?),
            changes: broadcast::Sender::new(256),
            listed: watch::Sender::default(),
            refused: RwLock::default(),
            live: RwLock::default(),
            process: publishes.then_some(process),
            acquainted_by: OnceLock::new(),
            following: TaskTracker::new(),
            settings,
            store,
        });
        let known = tools.known().await?;
        let eras = eras(&known.manifests);
        tools.arrange(known);
        tools.apply_servers(&config, &eras, |_| true).await;
        tools.following.spawn(follow_servers(Arc::clone(&tools), hears, stop.clone()));
        tools.following.close();
        Ok(tools)
    }

    /// The policy for tool calls, from the configuration in force.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.settings.policy()
    }

    /// The current snapshot of all tools.
    pub fn snapshot(&self) -> Arc<ToolSnapshot> {
        self.catalogue.snapshot()
    }

    /// Whether a tool has this definition and may be called before a program asks for it.
    pub(crate) fn may_speculate(&self, id: &ToolId, definition: &Digest) -> bool {
        self.catalogue.snapshot().tool(id).is_ok_and(|tool| {
            tool.definition.digest == *definition
                && self.policy().verdict(id, &tool.definition.annotations).can_speculate()
        })
    }

    /// Whether a tool may reach a network; one that is not known may.
    pub(crate) fn is_open_world(&self, id: &ToolId) -> bool {
        let snapshot = self.catalogue.snapshot();
        snapshot
            .tool(id)
            .map_or(true, |tool| self.policy().verdict(id, &tool.definition.annotations).open_world)
    }

    /// Whether a server has asked to be left alone for a while.
    pub(crate) fn is_rate_limited(&self, server: &ServerName) -> bool {
        self.servers.get(server).is_some_and(|handle| handle.rate_limit_wait().is_some())
    }

    /// The number of calls under way at a server that somebody waits for.
    pub(crate) fn requested_calls(&self, server: &ServerName) -> u32 {
        self.servers.get(server).map_or(0, |handle| handle.requested_calls())
    }

    /// The configured servers whose tools are unknown, each with the reason.
    pub(crate) fn unready_servers(&self) -> Vec<(ServerName, Problem)> {
        let snapshot = self.catalogue.snapshot();
        let unknown = snapshot.servers.iter().filter(|server| !server.tools_known);
        unknown
            .filter_map(|server| Some((server.name.clone(), self.servers.get(&server.name)?.why_unready())))
            .collect()
    }

    /// The built-in server with that name.
    pub fn builtin(&self, name: &str) -> Option<BuiltInServer> {
        let all = self.builtin.load_full();
        all.contains_key(name).then(|| BuiltInServer { all, name: name.to_owned() })
    }

    /// Why the built-in `fs` is off although the configuration does not disable it.
    pub fn why_fs_is_off(&self) -> Option<Problem> {
        fs_root(&self.settings.config(), &self.settings).err()
    }

    /// Subscribes to the changes that clients may want to know about.
    pub fn changes(&self) -> broadcast::Receiver<ChangeNotice> {
        self.changes.subscribe()
    }

    /// Announces a change to all clients.
    pub(crate) fn announce(&self, change: ChangeNotice) {
        // Sending fails only without a subscriber.
        drop(self.changes.send(change));
    }

    /// The definitions of a server that were rejected, each with the reason.
    pub fn refused_definitions(&self, server: &ServerName) -> Vec<String> {
        self.refused.read().get(server).cloned().unwrap_or_default()
    }

    /// Waits a short time until the server's present tools are in the catalogue. Returns whether they are.
    pub async fn wait_until_listed(&self, slot: &ServerHandle) -> bool {
        let mut listed = self.listed.subscribe();
        let told = (slot.name().clone(), slot.launch_digest().clone());
        let changed_at = slot.changed_at();
        let arrived = listed.wait_for(|known| known.get(&told).is_some_and(|asked| *asked >= changed_at));
        let settled = tokio::time::timeout(Duration::from_secs(5), arrived).await.is_ok();
        if !settled {
            tracing::warn!(server = %slot.name(), "its tools did not arrive in the catalogue");
        }
        settled
    }

    /// Starts the servers whose manifests are unknown and waits up to `ACQUAINTANCE` for them. Only the first request
    /// after a start waits, and only if there are such servers: a server that was connected before is known by its
    /// stored manifest.
    pub async fn ensure_manifests_loaded(&self) {
        let snapshot = self.catalogue.snapshot();
        let unknown = snapshot.servers.iter().filter(|server| !server.tools_known);
        let strangers: Vec<Arc<ServerHandle>> =
            unknown.filter_map(|server| self.servers.get(&server.name)).collect();
        if strangers.is_empty() {
            return;
        }
        strangers.iter().for_each(ServerHandle::start);
        let until = *self.acquainted_by.get_or_init(|| Instant::now() + ACQUAINTANCE);
        let meeting = strangers.iter().map(|slot| async {
            if slot.wait_until_started().await {
                self.wait_until_listed(slot).await;
            }
        });
        if tokio::time::timeout_at(until.into(), futures_util::future::join_all(meeting)).await.is_err() {
            tracing::debug!("some servers are not known yet; they are announced when they are");
        }
    }

    /// Applies a changed configuration, of which `commands` may be started. Nothing is replaced if this fails.
    ///
    /// # Errors
    /// The built-in servers cannot be created, or the database cannot be read.
    pub(crate) async fn reload(
        &self,
        config: Arc<Config>,
        commands: &BTreeSet<Digest>,
    ) -> Result<(), Problem> {
        let builtin = built_in(&config, &self.settings)?;
        let known = self.known().await?;
        self.settings.replace(Arc::clone(&config));
        self.builtin.store(Arc::new(builtin));
        self.apply_servers(&config, &eras(&known.manifests), |server| {
            // A command that appears while the gateway runs may come from anybody, and so may an address that would
            // receive credentials.
            matches!(&server.transport, ServerTransport::Http { headers, .. } if headers.is_empty())
                || commands.contains(&config::launch_digest(server))
        })
        .await;
        self.arrange(known);
        self.start_eager();
        Ok(())
    }

    /// Starts the servers that are configured to run always.
    pub(crate) fn start_eager(&self) {
        self.servers.all().iter().for_each(ServerHandle::start_if_eager);
    }

    /// Ends every server and settles pending writes. The stop token must have been cancelled before.
    pub(crate) async fn close(&self) {
        self.servers.close().await;
        self.following.wait().await;
        self.call_audit.close().await;
        self.epoch.flush_writes().await;
        if let Some(process) = &self.process {
            let left = match self.store.clear_server_states(process).await {
                Ok(()) => self.store.unregister_processes(vec![process.clone()]).await,
                Err(error) => Err(error),
            };
            if let Err(error) = left {
                tracing::debug!(%error, "published states stay until the next process clears them");
            }
        }
    }

    async fn apply_servers(
        &self,
        config: &Config,
        eras: &HashMap<ServerName, Era>,
        accepted: impl Fn(&config::ServerConfig) -> bool,
    ) {
        let wanted = config.servers.iter().filter(|server| server.enabled).map(|server| ServerSpec {
            settings: server.clone(),
            env: config::child_env(server, &self.settings.env),
            accepted: accepted(server),
            era: eras.get(&server.name).copied(),
            authorizer: ServerAuthorizer::new(self.store.clone(), installation(), server).map(Arc::new),
        });
        self.servers.apply(wanted.collect()).await;
    }

    /// Rebuilds the catalogue from the stored manifests.
    pub(crate) async fn refresh(&self) -> Result<(), Problem> {
        self.arrange(self.known().await?);
        Ok(())
    }

    async fn known(&self) -> Result<StoredCatalogue, Problem> {
        let principal = installation();
        // In this order: a definition accepted between the two reads then counts as accepted.
        let manifests = self.store.manifests(&principal).await?;
        Ok(StoredCatalogue { manifests, accepted: self.store.accepted_definitions(&principal).await? })
    }

    /// Puts the tools of the built-in servers and of the stored manifests into the catalogue.
    fn arrange(&self, known: StoredCatalogue) {
        let StoredCatalogue { manifests, mut accepted } = known;
        let mut known: HashMap<ServerName, Manifest> =
            manifests.into_iter().map(|manifest| (manifest.server.clone(), manifest)).collect();
        let config = self.settings.config();
        let mut listings: Vec<ServerOffers> = self.built_in_listings();
        let live = self.live.read();
        for server in config.servers.iter().filter(|server| server.enabled) {
            // A manifest of another command under the same name does not describe this server.
            let launch = config::launch_digest(server);
            let manifest = known.remove(&server.name).filter(|m| m.launch == launch);
            let accepted = match server.definitions {
                DefinitionPolicy::Follow => catalogue::UsableDefinitions::All,
                DefinitionPolicy::Pinned => catalogue::UsableDefinitions::Only(
                    accepted.remove(&(server.name.clone(), launch.clone())).unwrap_or_default(),
                ),
            };
            let mut listing = listing(server, manifest, accepted);
            if let Some(told) = live.get(&server.name).filter(|told| told.launch == launch) {
                listing.tools.clone_from(&told.tools);
                listing.server.tools_known = true;
            }
            listings.push(listing);
        }
        drop(live);
        let mut snapshot = ToolSnapshot::new(listings, config.names);
        snapshot.disabled_servers.extend(self.why_fs_is_off().map(|why| (FS.to_owned(), why)));
        let before = self.catalogue.replace(snapshot);
        let now = self.catalogue.snapshot();
        let names = |snapshot: &ToolSnapshot| -> Vec<(String, Digest)> {
            snapshot
                .tools
                .iter()
                .map(|tool| (tool.exposed_name.clone(), tool.definition.digest.clone()))
                .collect()
        };
        if names(&before) != names(&now) {
            self.announce(ChangeNotice::Tools);
        }
    }

    fn built_in_listings(&self) -> Vec<ServerOffers> {
        let all = self.builtin.load();
        let listing = |server: &builtin::BuiltinServer| ServerOffers {
            server: catalogue::CatalogueServer {
                name: ServerName::new(server.name()).expect("built-in servers have plain names"),
                description: Some(server.description().to_owned()),
                tools_known: true,
                capabilities: None,
            },
            tools: catalogue::with_identifiers(server.definitions()),
            accepted: catalogue::UsableDefinitions::All,
        };
        all.values().map(listing).collect()
    }

    /// Handles an event of a server.
    async fn hear(&self, told: ServerEvent) {
        match told.kind {
            ServerEventKind::Listed { launch, asked_at, opened } => {
                self.learn(&told.server, launch, asked_at, *opened).await;
            }
            ServerEventKind::Status => {
                self.forget_if_gone(&told.server).await;
                self.publish(&told.server).await;
            }
            ServerEventKind::Prompts => self.announce(ChangeNotice::Prompts),
            ServerEventKind::Resources => self.announce(ChangeNotice::Resources),
            ServerEventKind::Resource(uri) => {
                let qualified = resource_uri::qualified(&told.server, &uri);
                self.announce(ChangeNotice::Resource(uri));
                self.announce(ChangeNotice::Resource(qualified));
            }
        }
    }

    async fn learn(&self, server: &ServerName, launch: Digest, asked_at: Instant, opened: ToolListing) {
        // A late event of a replaced command does not describe the server in its place.
        let current = |slot: &Arc<ServerHandle>| *slot.launch_digest() == launch;
        let Some(slot) = self.servers.get(server).filter(current) else { return };
        for refused in &opened.refused {
            tracing::warn!(%server, refused, "a tool was left out");
        }
        self.refused.write().insert(server.clone(), opened.refused.clone());
        if let Err(problem) = self.record(&slot, opened).await {
            tracing::error!(%server, %problem, "what a server told could not be stored");
        }
        self.listed.send_modify(|listed| {
            listed.insert((server.clone(), launch), asked_at);
        });
    }

    async fn record(&self, slot: &ServerHandle, opened: ToolListing) -> Result<(), Problem> {
        let listing = ServerListing {
            server: slot.name().clone(),
            launch: slot.launch_digest().clone(),
            profile: StoredServerProfile {
                info: opened.about.implementation.clone(),
                instructions: opened.about.instructions.clone(),
                protocol_version: Some(opened.about.version.clone()),
                era: Some(if opened.about.era == Era::Legacy { "legacy" } else { "modern" }.to_owned()),
                capabilities: Some(opened.about.capabilities.clone()),
            },
            tools: distinct(opened.tools),
            acceptance: match slot.settings().definitions {
                DefinitionPolicy::Pinned => AcceptancePolicy::FirstManifest,
                DefinitionPolicy::Follow => AcceptancePolicy::EveryManifest,
            },
        };
        let principal = installation();
        let own = (listing.server.clone(), listing.launch.clone(), listing.tools.clone());
        let change = self.store.record_manifest(&principal, listing, now_ms()).await?;
        let manifest = self.store.manifest(&principal, slot.name()).await?;
        self.remember_live(own, manifest);
        for changed in &change.changed {
            tracing::warn!(server = %slot.name(), tool = changed.tool, before = changed.before.short(), after = changed.after.short(),
                "the definition of a tool changed; `pml list --changes` shows it");
        }
        for rule in &change.voided_rules {
            tracing::warn!(
                rule = rule.number,
                tool = rule.tool,
                "a standing approval was for another definition and is void"
            );
        }
        self.refresh().await
    }

    /// Stores the manifest of a server of this process. A server of the same name in another process may list other
    /// tools, and calls go to this one.
    fn remember_live(
        &self,
        (server, launch, tools): (ServerName, Digest, Vec<Definition>),
        stored: Option<Manifest>,
    ) {
        let mut known: HashMap<String, Offer> = stored
            .into_iter()
            .flat_map(|m| m.tools)
            .map(|tool| (tool.definition.name.clone(), offer(tool)))
            .collect();
        let named = |definition: Definition| match known.remove(&definition.name) {
            Some(offer) => Offer { definition: Arc::new(definition), ..offer },
            None => {
                let identifier = pml_model::name::js_identifier(&definition.name);
                let now = now_ms();
                Offer { definition: Arc::new(definition), identifier, first_seen_at: now, defined_at: now }
            }
        };
        let mut tools: Vec<Offer> = tools.into_iter().map(named).collect();
        // The order of the stored manifest, so that a mere start does not look like a change.
        tools.sort_by(|a, b| a.definition.name.cmp(&b.definition.name));
        let told = LiveTools { launch, tools };
        self.live.write().insert(server, told);
    }

    /// Drops the live manifest of a server that no longer runs; the stored manifest then applies again.
    async fn forget_if_gone(&self, server: &ServerName) {
        let status = self.servers.get(server).map(|slot| slot.status());
        if matches!(status, Some(ServerStatus::Starting | ServerStatus::Ready(_))) {
            return;
        }
        let known = self.live.write().remove(server);
        if known.is_some()
            && let Err(problem) = self.refresh().await
        {
            tracing::warn!(%problem, "the catalogue could not be read again");
        }
    }

    async fn publish(&self, server: &ServerName) {
        let (Some(process), Some(slot)) = (self.process.clone(), self.servers.get(server)) else { return };
        let state = describe_status(&slot.status());
        let (principal, server, now) = (installation(), server.clone(), now_ms());
        if let Err(error) = self.store.publish_server_state(&principal, &process, &server, &state, now).await
        {
            tracing::debug!(%error, "the state of a server could not be published");
        }
    }
}

/// Keeps the catalogue in sync with the events of servers.
async fn follow_servers(
    tools: Arc<Toolset>,
    mut hears: mpsc::Receiver<ServerEvent>,
    stop: CancellationToken,
) {
    loop {
        tokio::select! {
            Some(told) = hears.recv() => tools.hear(told).await,
            () = stop.cancelled() => return,
        }
    }
}

/// The stored manifests and acceptances of servers.
struct StoredCatalogue {
    manifests: Vec<Manifest>,
    accepted: AcceptedDefinitions,
}

/// The manifest of a running server, with the identifiers its tools keep.
struct LiveTools {
    launch: Digest,
    tools: Vec<Offer>,
}

/// A built-in server in use, kept alive across a reload.
pub struct BuiltInServer {
    all: Arc<BuiltInServers>,
    name: String,
}

impl std::ops::Deref for BuiltInServer {
    type Target = builtin::BuiltinServer;
    fn deref(&self) -> &builtin::BuiltinServer {
        &self.all[self.name.as_str()]
    }
}

/// The status of a server in one word, with the reason if it is down.
pub fn describe_status(status: &ServerStatus) -> String {
    match status {
        ServerStatus::Idle => "idle".to_owned(),
        ServerStatus::Starting => "starting".to_owned(),
        ServerStatus::Ready(connection) => format!("ready ({})", connection.profile().version),
        ServerStatus::Down { reason, .. } => format!("down: {reason}"),
        ServerStatus::AwaitingAcceptance => "waits for `pml accept`".to_owned(),
        ServerStatus::SignInRequired { .. } => "waits for `pml login`".to_owned(),
        ServerStatus::Closed => "closed".to_owned(),
    }
}

/// The name of the built-in file server.
const FS: &str = "fs";

fn built_in(config: &Config, place: &AppSettings) -> Result<BuiltInServers, Problem> {
    let settings = builtin::BuiltinSettings {
        fs_root: fs_root(config, place).unwrap_or(None),
        own_files: config::own_files(config, &place.paths, &place.env),
        http_hosts: config.builtin.http_hosts.clone(),
    };
    let servers =
        builtin::servers(&settings).map_err(|error| Problem::new(ErrorCode::Config, error.to_string()))?;
    let wanted =
        |server: &builtin::BuiltinServer| !config.builtin.disabled.iter().any(|name| name == server.name());
    Ok(servers.into_iter().filter(wanted).map(|server| (server.name(), server)).collect())
}

/// The root directory of `fs`: the configured one, else the working directory at the start. Clients start PML in
/// arbitrary directories, so a directory with all files of a person counts only if it is configured.
fn fs_root(config: &Config, AppSettings { cwd, env, .. }: &AppSettings) -> Result<Option<PathBuf>, Problem> {
    if config.builtin.disabled.iter().any(|name| name == FS) {
        return Ok(None);
    }
    if let Some(named) = &config.builtin.fs_root {
        return Ok(Some(named.clone()));
    }
    let what = match config::wide_root(cwd, env) {
        None => return Ok(Some(cwd.to_owned())),
        Some(WideRoot::Home) => "a home directory",
        Some(WideRoot::Top) => "the whole file system",
    };
    let shown = cwd.display();
    let text = format!(
        "the built-in server `fs` is off: its root would be `{shown}`, {what}, which the configuration does not name"
    );
    let hint = format!(
        "start PML in the directory of a project, or name a directory in `pml.toml`: `[builtin.fs]` with \
         `root = \"~/work\"` (`root = \"{shown}\"` if all of it is meant)"
    );
    Err(Problem::new(ErrorCode::Denied, text).hint(hint))
}

/// The era that each server used last.
fn eras(manifests: &[Manifest]) -> HashMap<ServerName, Era> {
    let era = |text: &str| if text == "legacy" { Era::Legacy } else { Era::Modern };
    manifests.iter().filter_map(|m| Some((m.server.clone(), era(m.profile.era.as_deref()?)))).collect()
}

fn listing(
    server: &config::ServerConfig,
    manifest: Option<Manifest>,
    accepted: catalogue::UsableDefinitions,
) -> ServerOffers {
    let about = manifest.as_ref().map(|manifest| &manifest.profile);
    let description = server.description.clone().or_else(|| about.and_then(in_its_own_words));
    ServerOffers {
        server: catalogue::CatalogueServer {
            name: server.name.clone(),
            description,
            tools_known: manifest.is_some(),
            capabilities: about
                .and_then(|about| about.capabilities.as_ref().map(|json| json.get().to_owned())),
        },
        tools: manifest.into_iter().flat_map(|m| m.tools).map(offer).collect(),
        accepted,
    }
}

fn offer(tool: StoredTool) -> Offer {
    Offer {
        definition: Arc::new(tool.definition),
        identifier: tool.identifier,
        first_seen_at: tool.first_seen_at,
        defined_at: tool.defined_at,
    }
}

/// The server's description of itself, unless the operator configured one.
fn in_its_own_words(about: &StoredServerProfile) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct ServerInfo {
        title: Option<String>,
        description: Option<String>,
    }
    let info: ServerInfo = serde_json::from_str(about.info.as_ref()?.get()).ok()?;
    // In quotes: agents read this text, and it comes from the server, not from PML.
    info.description.or(info.title).map(|words| format!("“{words}”"))
}

/// Removes duplicate names. The last definition wins, as with duplicate keys in JSON.
fn distinct(tools: Vec<Definition>) -> Vec<Definition> {
    let mut by_name: HashMap<String, usize> = HashMap::new();
    let mut kept: Vec<Definition> = Vec::with_capacity(tools.len());
    for tool in tools {
        match by_name.get(&tool.name) {
            Some(index) => kept[*index] = tool,
            None => {
                by_name.insert(tool.name.clone(), kept.len());
                kept.push(tool);
            }
        }
    }
    kept
}
