//! What is known beside the tools themselves: what runs left behind, what texts mean, how tools and capabilities hang
//! together, and results that need not be computed again.
//!
//! What one principal's runs taught is never used for another: everything that follows from runs is kept by principal,
//! that of the least recently seen ones goes first.

pub(crate) mod cache;
mod catalogue;
mod check;
mod embedding_task;
pub mod embeddings;
pub(crate) mod experience;
pub(crate) mod graph;
pub(crate) mod intents;
mod learning;
mod memory;
mod next;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lru::LruCache;
use parking_lot::{Mutex, RwLock};
use pml_graph::past::Advice;
use pml_model::Principal;
use pml_store::Store;
use tokio_util::sync::CancellationToken;

use crate::catalogue::Snapshot;
use crate::config;
use crate::problem::Problem;
use crate::runtime::blocking;
use crate::settings::Settings;
use crate::tools::Toolset;
use cache::Cache;
use catalogue::Programs;
pub(crate) use catalogue::names_capabilities;
pub(crate) use embedding_task::{embed_for, embedding_task};
use embeddings::{Embeddings, SanitiserOf, Wanted};
use experience::Experience;
use graph::ToolGraph;
pub(crate) use learning::{checking_task, learn_all, learning_task};
pub use memory::Memory;
pub(crate) use memory::{Candidate, Known, Observed, Uses};
pub(crate) use next::{add_next, next_close};

/// How many principals' knowledge is held in memory.
const PRINCIPALS: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");

/// What is known, of whichever principal.
pub struct Knowledge {
    settings: Arc<Settings>,
    tools: Arc<Toolset>,
    store: Store,
    /// What runs left behind.
    pub memory: Arc<Memory>,
    /// What texts mean.
    pub embeddings: Embeddings,
    /// Results that need not be computed again.
    pub(crate) cache: Cache,
    learned: Mutex<LruCache<Principal, Arc<Learned>>>,
    stop: CancellationToken,
}

/// What follows from the runs of one principal.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    experience: RwLock<Option<Experience>>,
    graph: RwLock<Option<Arc<ToolGraph>>>,
    observed: RwLock<Arc<Observed>>,
    uses: RwLock<Arc<Uses>>,
    programs: Mutex<Option<Programs>>,
    /// What became of the calls of tools was read at least once.
    is_read: AtomicBool,
}

impl Learned {
    /// What tools were seen to give.
    pub(crate) fn observed(&self) -> Arc<Observed> {
        Arc::clone(&self.observed.read())
    }

    /// How often tools were called and failed.
    pub(crate) fn uses(&self) -> Arc<Uses> {
        Arc::clone(&self.uses.read())
    }

    /// How tools and capabilities hang together, as it was last looked at.
    pub(crate) fn graph(&self) -> Option<Arc<ToolGraph>> {
        self.graph.read().clone()
    }

    /// What served requests before, where there is any.
    pub(crate) fn with_experience<T>(&self, look: impl FnOnce(&Experience) -> T) -> Option<T> {
        self.experience.read().as_ref().map(look)
    }

    /// What past requests say of the tools of `snapshot`; nothing where they are not known for it yet.
    pub(crate) fn advice(&self, snapshot: &Arc<Snapshot>, wanted: &Wanted) -> Option<Advice> {
        self.with_experience(|experience| experience.advice(snapshot, wanted)).flatten()
    }
}

impl Knowledge {
    pub(crate) fn new(
        settings: Arc<Settings>,
        tools: Arc<Toolset>,
        store: Store,
        stop: CancellationToken,
    ) -> Arc<Knowledge> {
        let config = settings.config();
        let secrets = config::known_secrets(&config, &settings.paths, &settings.env);
        let memory = Arc::new(Memory::new(store.clone(), secrets));
        let knowledge = Arc::new(Knowledge {
            embeddings: Embeddings::new(store.clone(), sanitiser_of(&memory), &config.embedding),
            memory,
            cache: Cache::default(),
            learned: Mutex::new(LruCache::new(PRINCIPALS)),
            settings,
            tools,
            store,
            stop,
        });
        knowledge.of(&Principal::local());
        knowledge
    }

    /// Takes the secrets of a configuration out of what is kept from now on.
    pub(crate) fn learn_secrets(&self, config: &config::Config) {
        self.memory.also_secret(config::known_secrets(config, &self.settings.paths, &self.settings.env));
    }

    /// Takes over the model of a changed configuration.
    pub(crate) fn reload(&self) {
        self.embeddings.choose(&self.settings.config().embedding);
    }

    /// What follows from the runs of a principal.
    pub(crate) fn of(&self, principal: &Principal) -> Arc<Learned> {
        let mut learned = self.learned.lock();
        if let Some(known) = learned.get(principal) {
            return Arc::clone(known);
        }
        let new = Arc::<Learned>::default();
        learned.put(principal.clone(), Arc::clone(&new));
        // What there is to know of a principal is read in the background.
        self.memory.left();
        new
    }

    /// The principals whose knowledge is held in memory.
    fn principals(&self) -> Vec<(Principal, Arc<Learned>)> {
        let learned = self.learned.lock();
        learned.iter().map(|(principal, of)| (principal.clone(), Arc::clone(of))).collect()
    }

    /// The capabilities of `principal` that have most to do with `intent`.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(crate) async fn find(
        &self,
        principal: &Principal,
        intent: &str,
        wanted: &Wanted,
    ) -> Result<Vec<Candidate>, pml_store::Error> {
        self.memory.find(principal, intent, wanted, Some(&self.embeddings)).await
    }

    /// Puts capabilities that are about as likely in the order of how well they fit by all that they served and by their
    /// tools. Takes as long as finding tools.
    pub(crate) fn put_in_order(&self, principal: &Principal, found: &mut [Candidate], wanted: &Wanted) {
        if found.len() > 1 {
            self.of(principal).with_experience(|experience| {
                let fits = experience.fits(&self.embeddings.of_tools(experience.snapshot()), wanted);
                memory::order_by_fit(found, &fits);
            });
        }
    }

    /// How tools and capabilities hang together for a principal, as of now.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(crate) async fn graph(self: &Arc<Self>, principal: &Principal) -> Result<Arc<ToolGraph>, Problem> {
        self.tools.ensure_manifests_loaded().await;
        self.memory.refresh().await?;
        let (knowledge, principal) = (Arc::clone(self), principal.clone());
        Ok(blocking(move || knowledge.bring_graph_up_to_date(&principal)).await?)
    }

    /// Looks again how things hang together, where something changed. Takes its time.
    fn bring_graph_up_to_date(&self, principal: &Principal) -> Result<Arc<ToolGraph>, pml_store::Error> {
        let learned = self.of(principal);
        let of = (self.tools.snapshot(), learned.observed(), self.memory.version());
        if let Some(graph) = learned.graph().filter(|graph| graph.is_of(&of)) {
            return Ok(graph);
        }
        let edges = self.store.blocking().edges(principal)?;
        let graph = Arc::new(ToolGraph::new(of, &self.memory.active(principal), edges));
        *learned.graph.write() = Some(Arc::clone(&graph));
        Ok(graph)
    }
}

fn sanitiser_of(memory: &Arc<Memory>) -> SanitiserOf {
    let memory = Arc::clone(memory);
    SanitiserOf(Box::new(move || memory.sanitiser()))
}
