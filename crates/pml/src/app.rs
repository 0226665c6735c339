//! The long-lived parts of the program, built once and closed in order.

mod readiness;
mod tasks;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pml_mcp::server::ChangeNotice;
use pml_model::Principal;
use pml_store::{ProcessIdentity, Store};
use tokio::sync::{Semaphore, broadcast};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::accepted::AcceptedCommands;
use crate::approve::Policy;
use crate::clock;
use crate::config::{self, Config, Env, Paths, StoreAddress};
use crate::dry_runs::KeptDryRuns;
use crate::execute::{self, RunRegistry};
use crate::keys::{self, ClientKeys};
use crate::knowledge::{self, Knowledge};
use crate::past_outcomes::PastOutcomes;
use crate::people::People;
use crate::problem::{ErrorCode, Problem};
use crate::settings::AppSettings;
use crate::telemetry::{self, Telemetry};
use crate::tools::Toolset;
use readiness::ReadinessProbe;

/// All state of the program. Each kind of state has exactly one owner here.
pub struct App {
    /// The configuration in force.
    pub settings: Arc<AppSettings>,
    /// The tool catalogue and the connections to the servers behind it.
    pub tools: Arc<Toolset>,
    /// What earlier runs taught: traces, embeddings, caches and the tool graph.
    pub knowledge: Arc<Knowledge>,
    /// The runs that this process executes.
    pub runs: Arc<RunRegistry>,
    /// The keys that authenticate clients.
    pub keys: Arc<ClientKeys>,
    /// The people who sign in beside the operator.
    pub people: Arc<People>,
    /// The dry runs that can still be confirmed.
    pub dry_runs: KeptDryRuns,
    /// The ends of runs that people looked at lately.
    pub past_outcomes: PastOutcomes,
    /// Whether the store answers, for those who ask whether this gateway takes requests.
    pub(crate) readiness: ReadinessProbe,
    /// The database.
    pub store: Store,
    /// The principal of requests whose entry point authenticates nobody.
    pub principal: Principal,
    /// Turns for trying paths of explorations.
    pub(crate) explorations: Semaphore,
    /// The registration of this process in the database; `None` unless it serves clients.
    process: Option<ProcessIdentity>,
    stop: CancellationToken,
    /// The background tasks, which live as long as the program.
    tasks: Mutex<JoinSet<()>>,
}

/// 5 s: how long background tasks may take to finish at shutdown, for example a reload that is ending servers.
const FAREWELL: Duration = Duration::from_secs(5);

/// Paths of explorations that are tried at the same time; the others queue, so that exploring does not crowd out runs.
const EXPLORATIONS: usize = 2;

/// How a process treats the configured servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessRole {
    /// Serves clients: follows configuration changes, starts eager servers and publishes the tool lists it sees.
    Gateway,
    /// Carries out one command and ends.
    Command,
}

impl App {
    /// Reads the configuration, opens the database and loads what is known. Servers start on first use, except those
    /// configured to run always.
    ///
    /// # Errors
    /// The configuration or the database cannot be used.
    pub async fn open(paths: Paths, env: Env, cwd: PathBuf, role: ProcessRole) -> Result<Arc<App>, Problem> {
        let settings = Arc::new(AppSettings::load(paths, env, cwd)?);
        let store = open_store(&settings.paths, settings.config().store.as_ref()).await?;
        let process = store.current_process().map_err(|error| {
            Problem::new(ErrorCode::Config, format!("the process table cannot be read: {error}"))
        })?;
        let stop = CancellationToken::new();
        let is_gateway = role == ProcessRole::Gateway;
        if is_gateway {
            // By starting the gateway, the operator consents to the commands that its configuration names.
            let commands = settings.config();
            AcceptedCommands::open(&settings.paths)
                .accept(commands.servers.iter().map(config::launch_digest))?;
        }
        let collector = settings.config().telemetry.clone();
        let (telemetry, spans) = Telemetry::new(collector.is_some());
        let shared = (Arc::clone(&settings), telemetry);
        let tools = Toolset::open(shared, store.clone(), process.clone(), is_gateway, &stop).await?;
        let knowledge =
            Knowledge::new(Arc::clone(&settings), Arc::clone(&tools), store.clone(), stop.clone());
        let owners = (Arc::clone(&settings), Arc::clone(&tools), Arc::clone(&knowledge));
        let keys = Arc::<ClientKeys>::default();
        let app = Arc::new(App {
            runs: RunRegistry::new(owners, Arc::clone(&keys), store.clone(), process.clone(), stop.clone()),
            keys,
            people: Arc::default(),
            dry_runs: KeptDryRuns::default(),
            past_outcomes: PastOutcomes::default(),
            readiness: ReadinessProbe::default(),
            principal: Principal::local(),
            explorations: Semaphore::new(EXPLORATIONS),
            process: is_gateway.then_some(process),
            settings,
            tools,
            knowledge,
            store,
            stop,
            tasks: Mutex::default(),
        });
        app.keys.refresh(&app.store).await?;
        app.people.refresh(&app.store).await?;
        app.start_tasks(role);
        if let (Some(collector), Some(spans)) = (collector, spans) {
            app.spawn_task(telemetry::export_task(collector, spans, app.stop.clone()));
        }
        Ok(app)
    }

    fn start_tasks(self: &Arc<Self>, role: ProcessRole) {
        let mut tasks = self.tasks.lock();
        tasks.spawn(execute::upkeep_task(Arc::clone(&self.runs), role == ProcessRole::Gateway));
        tasks.spawn(clock::follow_clock(self.store.clone(), self.stop.clone()));
        tasks.spawn(execute::lease_renewal_task(Arc::clone(&self.runs)));
        tasks.spawn(knowledge::learning_task(Arc::clone(&self.knowledge)));
        if role == ProcessRole::Gateway {
            tasks.spawn(execute::follow_runs_task(Arc::clone(&self.runs)));
            tasks.spawn(knowledge::checking_task(Arc::clone(&self.knowledge)));
            tasks.spawn(knowledge::embedding_task(Arc::clone(&self.knowledge)));
            tasks.spawn(tasks::follow_config(Arc::clone(self)));
            tasks.spawn(tasks::follow_store(Arc::clone(self)));
            tasks.spawn(keys::follow_stored_keys(
                (Arc::clone(&self.keys), Arc::clone(&self.people)),
                self.store.clone(),
                self.stop.clone(),
            ));
            tasks.spawn(keys::exchange_counts_task(
                Arc::clone(&self.keys),
                self.store.clone(),
                self.stop.clone(),
            ));
            tasks.spawn(tasks::load_manifests(Arc::clone(self)));
            tasks.spawn(tasks::warm_up(Arc::clone(self)));
            tasks.spawn(tasks::check_database_after_crash(Arc::clone(self)));
            self.tools.start_eager();
        }
    }

    /// Runs a task until the app is closed; it ends when [`App::stopped`] does.
    pub(crate) fn spawn_task(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.lock().spawn(task);
    }

    /// Waits until the program ends.
    pub(crate) async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        self.settings.config()
    }

    /// The policy for tool calls, from the configuration in force.
    pub fn policy(&self) -> Arc<Policy> {
        self.settings.policy()
    }

    /// Subscribes to the changes that clients may want to know about.
    pub fn changes(&self) -> broadcast::Receiver<ChangeNotice> {
        self.tools.changes()
    }

    /// The token that is cancelled when the program ends.
    pub fn stopping(&self) -> &CancellationToken {
        &self.stop
    }

    /// Suspends the runs of this process, so that another process can resume them. No new run is accepted afterwards.
    pub async fn suspend_runs(&self) {
        self.store.begin_closing();
        self.runs.close().await;
        // After the runs, so that watchers hear how those were left.
        self.runs.feed.close();
    }

    /// Ends every server and every background task.
    pub async fn close(&self) {
        self.store.begin_closing();
        self.runs.close().await;
        // Nothing is learned from traces that are only queued, and they are lost if the process ends before they are
        // written.
        if let Err(error) = self.store.flush().await {
            tracing::warn!(%error, "the last changes could not be stored");
        }
        knowledge::learn_all(&self.knowledge).await;
        self.knowledge.write_mocks().await;
        self.stop.cancel();
        // Tasks end before the servers: a reload under way could otherwise start another server.
        self.end_tasks().await;
        self.tools.close().await;
        self.runs.end_workers().await;
        self.store.end_change_feed().await;
    }

    /// Waits up to [`FAREWELL`] for the background tasks, which were asked to stop, and aborts the rest.
    async fn end_tasks(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        let ending = async {
            while let Some(ended) = tasks.join_next().await {
                if let Err(error) = ended {
                    tracing::error!(%error, "a background task failed");
                }
            }
        };
        if tokio::time::timeout(FAREWELL, ending).await.is_err() {
            tracing::warn!("background tasks were aborted at the end");
            tasks.shutdown().await;
        }
    }

    /// Applies a changed configuration. If the new one is invalid, the old one stays in force.
    pub(crate) async fn reload(&self) -> Result<(), Problem> {
        let config = self.settings.read_again()?;
        let commands = AcceptedCommands::open(&self.settings.paths).read()?;
        // The secrets must be known before any server starts with them.
        self.knowledge.learn_secrets(&config);
        self.tools.reload(config, &commands).await?;
        self.knowledge.reload();
        Ok(())
    }
}

/// Opens the database: the one at `address`, or else the file in the data directory.
pub(crate) async fn open_store(paths: &Paths, address: Option<&StoreAddress>) -> Result<Store, Problem> {
    Ok(match address {
        Some(address) => {
            let store = Store::open_postgres(address.url.reveal(), paths.database()).await?;
            clock::follow(&store);
            store
        }
        None => Store::open(paths.database()).await?,
    })
}
