//! The long-lived parts of the program, built once and closed in order.

mod tasks;

use std::path::PathBuf;
use std::sync::Arc;

use pml_mcp::server::Change;
use pml_model::Principal;
use pml_store::{Process, Store};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::accepted::Accepted;
use crate::approve::Policy;
use crate::config::{self, Config, Env, Paths};
use crate::execute::{self, Runs};
use crate::keys::{self, Keys};
use crate::knowledge::{self, Knowledge};
use crate::problem::{Code, Problem};
use crate::settings::Settings;
use crate::tools::Toolset;

/// Everything a request may need: one owner for each kind of state.
pub struct App {
    /// The configuration in force.
    pub settings: Arc<Settings>,
    /// The tools there are and the servers behind them.
    pub tools: Arc<Toolset>,
    /// What runs left behind, what texts mean, and what follows from both.
    pub knowledge: Arc<Knowledge>,
    /// The runs of this process.
    pub runs: Arc<Runs>,
    /// The keys by which clients are known.
    pub keys: Arc<Keys>,
    /// The database.
    pub store: Store,
    /// Who acts, where a door knows nobody else.
    pub principal: Principal,
    /// This process, where it serves clients.
    process: Option<Process>,
    stop: CancellationToken,
}

/// How a process treats the servers of its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It serves clients: follows changes, starts eager servers, publishes what it sees.
    Gateway,
    /// It does one thing and ends.
    Command,
}

impl App {
    /// Reads the configuration, opens the database and arranges what is known. No server is started
    /// before somebody needs it, save those configured to run always.
    ///
    /// # Errors
    /// The configuration or the database cannot be used.
    pub async fn open(paths: Paths, env: Env, cwd: PathBuf, role: Role) -> Result<Arc<App>, Problem> {
        let settings = Arc::new(Settings::load(paths, env, cwd)?);
        let store = open_store(&settings.paths).await?;
        let process = Process::current().map_err(|error| {
            Problem::new(Code::Config, format!("the process table cannot be read: {error}"))
        })?;
        let stop = CancellationToken::new();
        let is_gateway = role == Role::Gateway;
        if is_gateway {
            // Starting the gateway is the operator's word for what its configuration names.
            let commands = settings.config();
            Accepted::open(&settings.paths).accept(commands.servers.iter().map(config::launch_digest))?;
        }
        let tools =
            Toolset::open(Arc::clone(&settings), store.clone(), process.clone(), is_gateway, &stop).await?;
        let knowledge =
            Knowledge::new(Arc::clone(&settings), Arc::clone(&tools), store.clone(), stop.clone());
        let owners = (Arc::clone(&settings), Arc::clone(&tools), Arc::clone(&knowledge));
        let app = Arc::new(App {
            runs: Runs::new(owners, store.clone(), process.clone(), stop.clone()),
            keys: Arc::default(),
            principal: Principal::local(),
            process: is_gateway.then_some(process),
            settings,
            tools,
            knowledge,
            store,
            stop,
        });
        app.keys.refresh(&app.store).await?;
        app.start_tasks(role);
        Ok(app)
    }

    fn start_tasks(self: &Arc<Self>, role: Role) {
        tokio::spawn(execute::keep(Arc::clone(&self.runs), role == Role::Gateway));
        tokio::spawn(execute::keep_leases(Arc::clone(&self.runs)));
        tokio::spawn(knowledge::learning_task(Arc::clone(&self.knowledge)));
        if role == Role::Gateway {
            tokio::spawn(knowledge::checking_task(Arc::clone(&self.knowledge)));
            tokio::spawn(knowledge::embedding_task(Arc::clone(&self.knowledge)));
            tokio::spawn(tasks::follow_config(Arc::clone(self)));
            tokio::spawn(tasks::follow_store(Arc::clone(self)));
            tokio::spawn(keys::follow(Arc::clone(&self.keys), self.store.clone(), self.stop.clone()));
            tokio::spawn(tasks::load_manifests(Arc::clone(self)));
            tokio::spawn(tasks::warm_up(Arc::clone(self)));
            tokio::spawn(tasks::look_after_database(Arc::clone(self)));
            self.tools.start_eager();
        }
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        self.settings.config()
    }

    /// What programs may do with tools, by the configuration in force.
    pub fn policy(&self) -> Arc<Policy> {
        self.settings.policy()
    }

    /// Tells of changes that clients may want to know.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.tools.changes()
    }

    /// Cancelled when the program ends.
    pub fn stopping(&self) -> &CancellationToken {
        &self.stop
    }

    /// Puts the runs of this process aside, for another to go on with; nothing new is taken on.
    pub async fn leave_runs(&self) {
        self.runs.close().await;
    }

    /// Ends every server and everything that runs in the background.
    pub async fn close(&self) {
        self.runs.close().await;
        // What is only queued would not be learned from, and is lost where the process ends before it is written.
        if let Err(error) = self.store.flush().await {
            tracing::warn!(%error, "the last changes could not be stored");
        }
        knowledge::learn_all(&self.knowledge).await;
        self.stop.cancel();
        self.tools.close().await;
    }

    /// Takes over a changed configuration. The old one stays in force where the new one is broken.
    pub(crate) async fn reload(&self) -> Result<(), Problem> {
        let config = self.settings.read_again()?;
        let commands = Accepted::open(&self.settings.paths).read()?;
        // Before any server is started with them.
        self.knowledge.learn_secrets(&config);
        self.tools.reload(config, &commands).await?;
        self.knowledge.reload();
        Ok(())
    }
}

async fn open_store(paths: &Paths) -> Result<Store, Problem> {
    Ok(Store::open(paths.database()).await?)
}
