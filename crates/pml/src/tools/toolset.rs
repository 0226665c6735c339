//! The tools there are and the servers behind them: what the servers tell, what is accepted of it, and how each is reached.
//!
//! Holds the catalogue in step with configuration, database and running servers. Calls go through
//! [`call`](super::call).

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::RwLock;
use pml_mcp::Era;
use pml_mcp::server::Change;
use pml_model::{Definition, Digest, Principal, ServerName};
use pml_store::{
    AcceptedDefinitions, Listing as StoredListing, Manifest, Process, ServerAbout, Store, StoredTool, Welcome,
};
use tokio::sync::{broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::call_audit::CallAudit;
use crate::approve::Policy;
use crate::builtin;
use crate::catalogue::{self, Catalogue, Listing, Offer, Snapshot};
use crate::clock::now_ms;
use crate::config::{self, Config, Definitions, TooWide, Transport};
use crate::epoch::Epoch;
use crate::problem::{Code, Problem};
use crate::servers::{Opened, Servers, Slot, Status, Told, Wanted, What};
use crate::settings::Settings;
use crate::validate::Validators;

/// The tools there are and the servers behind them.
pub struct Toolset {
    settings: Arc<Settings>,
    store: Store,
    /// Which tools there are.
    pub catalogue: Catalogue,
    /// The downstream servers.
    pub servers: Servers,
    /// Compiled schemas.
    pub validators: Validators,
    /// Tells whether anything may have been written since.
    pub epoch: Epoch,
    /// Has direct calls written into the audit log.
    pub(super) call_audit: CallAudit,
    builtin: ArcSwap<BuiltInServers>,
    changes: broadcast::Sender<Change>,
    /// When the tools in the catalogue were asked for, by server and how it was started.
    listed: watch::Sender<HashMap<(ServerName, Digest), Instant>>,
    refused: RwLock<HashMap<ServerName, Vec<String>>>,
    /// What servers of this very process told while they run.
    live: RwLock<HashMap<ServerName, LiveTools>>,
    /// This process, where it tells others how its servers stand.
    process: Option<Process>,
    acquainted_by: OnceLock<Instant>,
}

type BuiltInServers = HashMap<&'static str, builtin::Server>;

/// How long the first request that needs them waits for servers whose tools nobody knows yet.
const ACQUAINTANCE: Duration = Duration::from_secs(5);

/// Whose the catalogue is: servers and their definitions are those of the installation, not of one of its users.
fn installation() -> Principal {
    Principal::local()
}

impl Toolset {
    /// The tools of the configuration, as far as they are known from earlier. No server is started.
    ///
    /// # Errors
    /// The built-in servers cannot be made, or the database cannot be read.
    pub(crate) async fn open(
        settings: Arc<Settings>,
        store: Store,
        process: Process,
        publishes: bool,
        stop: &CancellationToken,
    ) -> Result<Arc<Toolset>, Problem> {
        let config = settings.config();
        let (told, hears) = mpsc::channel(256);
        let tools = Arc::new(Toolset {
            catalogue: Catalogue::new(Snapshot::new(Vec::new(), config.names)),
            servers: Servers::new(told),
            validators: Validators::default(),
            epoch: Epoch::new(store.clone(), process.clone()),
            call_audit: CallAudit::start(store.clone()),
            builtin: ArcSwap::from_pointee(built_in(&config, &settings)?),
            changes: broadcast::Sender::new(256),
            listed: watch::Sender::default(),
            refused: RwLock::default(),
            live: RwLock::default(),
            process: publishes.then_some(process),
            acquainted_by: OnceLock::new(),
            settings,
            store,
        });
        let known = tools.known().await?;
        let eras = eras(&known.manifests);
        tools.arrange(known);
        tools.apply_servers(&config, &eras, |_| true).await;
        tokio::spawn(follow_servers(Arc::clone(&tools), hears, stop.clone()));
        Ok(tools)
    }

    /// What programs may do with tools, by the configuration in force.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.settings.policy()
    }

    /// The tools of this moment.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.catalogue.snapshot()
    }

    /// The configured servers whose tools are not known, each with why.
    pub(crate) fn unready(&self) -> Vec<(ServerName, Problem)> {
        let snapshot = self.catalogue.snapshot();
        let unknown = snapshot.servers.iter().filter(|server| !server.known);
        unknown
            .filter_map(|server| Some((server.name.clone(), self.servers.get(&server.name)?.unready())))
            .collect()
    }

    /// The built-in server of that name.
    pub fn builtin(&self, name: &str) -> Option<BuiltIn> {
        let all = self.builtin.load_full();
        all.contains_key(name).then(|| BuiltIn { all, name: name.to_owned() })
    }

    /// Why the built-in `fs` is off although the configuration does not say so.
    pub fn fs_off(&self) -> Option<Problem> {
        fs_root(&self.settings.config(), &self.settings).err()
    }

    /// Tells of changes that clients may want to know.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Announces a change to all clients.
    pub(crate) fn announce(&self, change: Change) {
        // Without a listener there is nobody to tell.
        drop(self.changes.send(change));
    }

    /// Definitions of a server that could not be taken in, and why.
    pub fn refused(&self, server: &ServerName) -> Vec<String> {
        self.refused.read().get(server).cloned().unwrap_or_default()
    }

    /// Waits, for a moment at most, until the tools a server has now are in the catalogue; says whether they are.
    pub async fn settled(&self, slot: &Slot) -> bool {
        let mut listed = self.listed.subscribe();
        let told = (slot.name().clone(), slot.launch().clone());
        let changed_at = slot.changed_at();
        let arrived = listed.wait_for(|known| known.get(&told).is_some_and(|asked| *asked >= changed_at));
        let settled = tokio::time::timeout(Duration::from_secs(5), arrived).await.is_ok();
        if !settled {
            tracing::warn!(server = %slot.name(), "its tools did not arrive in the catalogue");
        }
        settled
    }

    /// Starts the servers whose tools nobody knows yet and waits a little for them. Only the first
    /// request after a start waits, and only if there are such servers: a server that was ever seen
    /// is known by what it told then.
    pub async fn ensure_manifests_loaded(&self) {
        let snapshot = self.catalogue.snapshot();
        let unknown = snapshot.servers.iter().filter(|server| !server.known);
        let strangers: Vec<Arc<Slot>> = unknown.filter_map(|server| self.servers.get(&server.name)).collect();
        if strangers.is_empty() {
            return;
        }
        strangers.iter().for_each(Slot::start);
        let until = *self.acquainted_by.get_or_init(|| Instant::now() + ACQUAINTANCE);
        let meeting = strangers.iter().map(|slot| async {
            if slot.tried().await {
                self.settled(slot).await;
            }
        });
        if tokio::time::timeout_at(until.into(), futures_util::future::join_all(meeting)).await.is_err() {
            tracing::debug!("some servers are not known yet; they are announced when they are");
        }
    }

    /// Takes over a changed configuration, of which `commands` may be started. Nothing is replaced where this fails.
    ///
    /// # Errors
    /// The built-in servers cannot be made, or the database cannot be read.
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
            // A command that appeared while we run may be anybody's, and so may an address that would be
            // sent credentials.
            matches!(&server.transport, Transport::Http { headers, .. } if headers.is_empty())
                || commands.contains(&config::launch_digest(server))
        })
        .await;
        self.arrange(known);
        self.start_eager();
        Ok(())
    }

    /// Starts the servers that are configured to run always.
    pub(crate) fn start_eager(&self) {
        self.servers.all().iter().for_each(Slot::start_if_eager);
    }

    /// Ends every server; what was written is settled.
    pub(crate) async fn close(&self) {
        self.servers.close().await;
        self.call_audit.close().await;
        self.epoch.settle().await;
        if let Some(process) = &self.process {
            let left = match self.store.clear_states(process).await {
                Ok(()) => self.store.leave(vec![process.clone()]).await,
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
        accepted: impl Fn(&config::Server) -> bool,
    ) {
        let wanted = config.servers.iter().filter(|server| server.enabled).map(|server| Wanted {
            settings: server.clone(),
            env: config::child_env(server, &self.settings.env),
            accepted: accepted(server),
            era: eras.get(&server.name).copied(),
        });
        self.servers.apply(wanted.collect()).await;
    }

    /// Makes the catalogue anew from what is stored.
    pub(crate) async fn refresh(&self) -> Result<(), Problem> {
        self.arrange(self.known().await?);
        Ok(())
    }

    async fn known(&self) -> Result<Known, Problem> {
        let principal = installation();
        // In this order: what is accepted in between is accepted.
        let manifests = self.store.manifests(&principal).await?;
        Ok(Known { manifests, accepted: self.store.accepted_definitions(&principal).await? })
    }

    /// Puts the tools of the built-in servers and of what is stored in force.
    fn arrange(&self, known: Known) {
        let Known { manifests, mut accepted } = known;
        let mut known: HashMap<ServerName, Manifest> =
            manifests.into_iter().map(|manifest| (manifest.server.clone(), manifest)).collect();
        let config = self.settings.config();
        let mut listings: Vec<Listing> = self.built_in_listings();
        let live = self.live.read();
        for server in config.servers.iter().filter(|server| server.enabled) {
            // What another command told under this name says nothing about this one.
            let launch = config::launch_digest(server);
            let manifest = known.remove(&server.name).filter(|m| m.launch == launch);
            let accepted = match server.definitions {
                Definitions::Follow => catalogue::Accepted::All,
                Definitions::Pinned => catalogue::Accepted::Only(
                    accepted.remove(&(server.name.clone(), launch.clone())).unwrap_or_default(),
                ),
            };
            let mut listing = listing(server, manifest, accepted);
            if let Some(told) = live.get(&server.name).filter(|told| told.launch == launch) {
                listing.tools.clone_from(&told.tools);
                listing.server.known = true;
            }
            listings.push(listing);
        }
        drop(live);
        let mut snapshot = Snapshot::new(listings, config.names);
        snapshot.off.extend(self.fs_off().map(|why| (FS.to_owned(), why)));
        let before = self.catalogue.replace(snapshot);
        let now = self.catalogue.snapshot();
        let names = |snapshot: &Snapshot| -> Vec<(String, Digest)> {
            snapshot.tools.iter().map(|tool| (tool.exposed.clone(), tool.definition.digest.clone())).collect()
        };
        if names(&before) != names(&now) {
            self.announce(Change::Tools);
        }
    }

    fn built_in_listings(&self) -> Vec<Listing> {
        let all = self.builtin.load();
        let listing = |server: &builtin::Server| Listing {
            server: catalogue::Server {
                name: ServerName::new(server.name()).expect("built-in servers have plain names"),
                description: Some(server.description().to_owned()),
                known: true,
                capabilities: None,
            },
            tools: catalogue::with_identifiers(server.definitions()),
            accepted: catalogue::Accepted::All,
        };
        all.values().map(listing).collect()
    }

    /// Takes in what happened to a server.
    async fn hear(&self, told: Told) {
        match told.what {
            What::Listed { launch, asked_at, opened } => {
                self.learn(&told.server, launch, asked_at, *opened).await;
            }
            What::Status => {
                self.forget_if_gone(&told.server).await;
                self.publish(&told.server).await;
            }
            What::Prompts => self.announce(Change::Prompts),
            What::Resources => self.announce(Change::Resources),
            What::Resource(uri) => self.announce(Change::Resource(uri)),
        }
    }

    async fn learn(&self, server: &ServerName, launch: Digest, asked_at: Instant, opened: Opened) {
        // What a replaced command told late says nothing about the one in its place.
        let current = |slot: &Arc<Slot>| *slot.launch() == launch;
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

    async fn record(&self, slot: &Slot, opened: Opened) -> Result<(), Problem> {
        let listing = StoredListing {
            server: slot.name().clone(),
            launch: slot.launch().clone(),
            about: ServerAbout {
                info: opened.about.server.clone(),
                instructions: opened.about.instructions.clone(),
                protocol_version: Some(opened.about.version.clone()),
                era: Some(if opened.about.era == Era::Legacy { "legacy" } else { "modern" }.to_owned()),
                capabilities: Some(opened.about.capabilities.clone()),
            },
            tools: distinct(opened.tools),
            welcome: match slot.settings().definitions {
                Definitions::Pinned => Welcome::First,
                Definitions::Follow => Welcome::Always,
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
        for rule in &change.voided {
            tracing::warn!(
                rule = rule.number,
                tool = rule.tool,
                "a standing approval was for another definition and is void"
            );
        }
        self.refresh().await
    }

    /// Keeps what a server of this process told: another process's server of the same name may tell
    /// something else, and what we call is ours.
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
                let identifier = pml_model::name::identifier(&definition.name);
                let now = now_ms();
                Offer { definition: Arc::new(definition), identifier, since: now, defined_at: now }
            }
        };
        let mut tools: Vec<Offer> = tools.into_iter().map(named).collect();
        // The order of the stored manifest, so that a start alone does not look like a change.
        tools.sort_by(|a, b| a.definition.name.cmp(&b.definition.name));
        let told = LiveTools { launch, tools };
        self.live.write().insert(server, told);
    }

    /// Forgets what a server told when it no longer runs: from then on the stored manifest speaks for it.
    async fn forget_if_gone(&self, server: &ServerName) {
        let status = self.servers.get(server).map(|slot| slot.status());
        if matches!(status, Some(Status::Starting | Status::Ready(_))) {
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
        if let Err(error) = self.store.publish_state(&principal, &process, &server, &state, now).await {
            tracing::debug!(%error, "the state of a server could not be published");
        }
    }
}

/// Keeps the catalogue in step with what servers tell.
async fn follow_servers(tools: Arc<Toolset>, mut hears: mpsc::Receiver<Told>, stop: CancellationToken) {
    loop {
        tokio::select! {
            Some(told) = hears.recv() => tools.hear(told).await,
            () = stop.cancelled() => return,
        }
    }
}

/// What the database knows of servers.
struct Known {
    manifests: Vec<Manifest>,
    accepted: AcceptedDefinitions,
}

/// What a running server told, with the identifiers its tools keep.
struct LiveTools {
    launch: Digest,
    tools: Vec<Offer>,
}

/// A built-in server in use; holds on to it across a reload.
pub struct BuiltIn {
    all: Arc<BuiltInServers>,
    name: String,
}

impl std::ops::Deref for BuiltIn {
    type Target = builtin::Server;
    fn deref(&self) -> &builtin::Server {
        &self.all[self.name.as_str()]
    }
}

/// A server's state in one word and, where it is down, why.
pub fn describe_status(status: &Status) -> String {
    match status {
        Status::Idle => "idle".to_owned(),
        Status::Starting => "starting".to_owned(),
        Status::Ready(connection) => format!("ready ({})", connection.about().version),
        Status::Down { reason, .. } => format!("down: {reason}"),
        Status::Held => "waits for `pml accept`".to_owned(),
        Status::Closed => "closed".to_owned(),
    }
}

/// The built-in server of files.
const FS: &str = "fs";

fn built_in(config: &Config, place: &Settings) -> Result<BuiltInServers, Problem> {
    let settings = builtin::Settings {
        fs_root: fs_root(config, place).unwrap_or(None),
        own: config::own_files(config, &place.paths, &place.env),
        http_hosts: config.builtin.http_hosts.clone(),
    };
    let servers =
        builtin::servers(&settings).map_err(|error| Problem::new(Code::Config, error.to_string()))?;
    let wanted = |server: &builtin::Server| !config.builtin.disabled.iter().any(|name| name == server.name());
    Ok(servers.into_iter().filter(wanted).map(|server| (server.name(), server)).collect())
}

/// The directory `fs` works below: the one the configuration names, else the one PML was started in. Clients start PML
/// wherever they like, so a directory that holds everything of a person counts only where it is named.
fn fs_root(config: &Config, Settings { cwd, env, .. }: &Settings) -> Result<Option<PathBuf>, Problem> {
    if config.builtin.disabled.iter().any(|name| name == FS) {
        return Ok(None);
    }
    if let Some(named) = &config.builtin.fs_root {
        return Ok(Some(named.clone()));
    }
    let what = match config::too_wide(cwd, env) {
        None => return Ok(Some(cwd.to_owned())),
        Some(TooWide::Home) => "a home directory",
        Some(TooWide::Top) => "the whole file system",
    };
    let shown = cwd.display();
    let text = format!(
        "the built-in server `fs` is off: its root would be `{shown}`, {what}, which the configuration does not name"
    );
    let hint = format!(
        "start PML in the directory of a project, or name a directory in `pml.toml`: `[builtin.fs]` with \
         `root = \"~/work\"` (`root = \"{shown}\"` if all of it is meant)"
    );
    Err(Problem::new(Code::Denied, text).hint(hint))
}

/// How servers spoke the last time.
fn eras(manifests: &[Manifest]) -> HashMap<ServerName, Era> {
    let era = |text: &str| if text == "legacy" { Era::Legacy } else { Era::Modern };
    manifests.iter().filter_map(|m| Some((m.server.clone(), era(m.about.era.as_deref()?)))).collect()
}

fn listing(server: &config::Server, manifest: Option<Manifest>, accepted: catalogue::Accepted) -> Listing {
    let about = manifest.as_ref().map(|manifest| &manifest.about);
    let description = server.description.clone().or_else(|| about.and_then(in_its_own_words));
    Listing {
        server: catalogue::Server {
            name: server.name.clone(),
            description,
            known: manifest.is_some(),
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
        since: tool.first_seen_at,
        defined_at: tool.defined_at,
    }
}

/// What a server calls itself, where the operator did not say what it is for.
fn in_its_own_words(about: &ServerAbout) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Info {
        title: Option<String>,
        description: Option<String>,
    }
    let info: Info = serde_json::from_str(about.info.as_ref()?.get()).ok()?;
    // In quotes: it stands in what agents read, and is not our word.
    info.description.or(info.title).map(|words| format!("“{words}”"))
}

/// A server that lists a name twice means the last one, as JSON does.
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
