//! Everything known beside the tools themselves: capabilities, embeddings, the tool graph and cached results.
//!
//! What one principal's runs taught is never used for another: everything learned is kept by principal. The knowledge
//! of the least recently seen principal is evicted first.

pub(crate) mod cache;
mod catalogue;
mod check;
mod embedding_task;
pub mod embeddings;
pub mod experience;
mod gate;
pub mod graph;
pub(crate) mod intents;
mod learning;
mod memory;
mod mocks;
mod next;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lru::LruCache;
use parking_lot::{Mutex, RwLock};
use pml_graph::past::PastAdvice;
use pml_model::Principal;
use pml_store::Store;
use tokio_util::sync::CancellationToken;

use crate::catalogue::ToolSnapshot;
use crate::config;
use crate::problem::Problem;
use crate::runtime::run_blocking;
use crate::settings::AppSettings;
use crate::tools::Toolset;
use cache::ResultCache;
use catalogue::ProgramCatalogue;
pub(crate) use catalogue::may_call_capabilities;
pub(crate) use embedding_task::{embed_for, embedding_task};
use embeddings::{Embeddings, IntentReading, SanitiserSource};
use experience::Experience;
pub(crate) use gate::Gate;
pub use gate::{LearnedPart, PartState, PartVerdict};
use graph::ToolGraph;
pub(crate) use learning::{checking_task, judge_calls, learn_all, learning_task};
pub use memory::{
    ArgumentPatternCounts, CapabilityCandidate, CapabilityMemory, ObservedSchemas, ToolUseCounts,
};
pub(crate) use memory::{IndexedCapability, SessionResult};
pub use mocks::{MockRegistry, RecordedMock};
pub(crate) use next::{add_next, next_related};

/// The number of principals whose knowledge is in memory.
const PRINCIPALS: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");

/// The knowledge of all principals.
pub struct Knowledge {
    settings: Arc<AppSettings>,
    tools: Arc<Toolset>,
    store: Store,
    /// The learned capabilities.
    pub memory: Arc<CapabilityMemory>,
    /// The embeddings of tools and intents.
    pub embeddings: Embeddings,
    /// The cached results.
    pub(crate) cache: ResultCache,
    /// The recorded results of tools.
    pub mocks: MockRegistry,
    learned: Mutex<LruCache<Principal, Arc<PrincipalKnowledge>>>,
    stop: CancellationToken,
}

/// What is learned from the runs of one principal.
#[derive(Debug, Default)]
pub struct PrincipalKnowledge {
    experience: RwLock<Option<Experience>>,
    graph: RwLock<Option<Arc<ToolGraph>>>,
    /// Held while the graph is rebuilt: requests that come meanwhile wait for the same one.
    rebuilding_graph: Mutex<()>,
    observed: RwLock<Arc<ObservedSchemas>>,
    uses: RwLock<Arc<ToolUseCounts>>,
    patterns: RwLock<Arc<ArgumentPatternCounts>>,
    gate: RwLock<Gate>,
    /// The number of intents and of calls when the parts were judged.
    judged: Mutex<(usize, u64)>,
    programs: Mutex<Option<ProgramCatalogue>>,
    /// Whether the tool call statistics were read at least once.
    is_read: AtomicBool,
}

impl PrincipalKnowledge {
    /// The observed result schemas of tools.
    pub(crate) fn observed(&self) -> Arc<ObservedSchemas> {
        Arc::clone(&self.observed.read())
    }

    /// How often each tool was called and failed.
    pub(crate) fn uses(&self) -> Arc<ToolUseCounts> {
        Arc::clone(&self.uses.read())
    }

    /// How often the calls of each tool worked, by pattern of arguments.
    pub(crate) fn patterns(&self) -> Arc<ArgumentPatternCounts> {
        Arc::clone(&self.patterns.read())
    }

    /// Whether a learned part is on.
    pub(crate) fn is_on(&self, part: LearnedPart) -> bool {
        self.gate.read().is_on(part)
    }

    /// What is known of the worth of each learned part.
    pub(crate) fn verdicts(&self) -> Vec<PartVerdict> {
        self.gate.read().verdicts().to_vec()
    }

    /// The latest tool graph, if one was built.
    pub(crate) fn graph(&self) -> Option<Arc<ToolGraph>> {
        self.graph.read().clone()
    }

    /// Calls `look` with the experience, if there is one.
    pub(crate) fn with_experience<T>(&self, look: impl FnOnce(&Experience) -> T) -> Option<T> {
        self.experience.read().as_ref().map(look)
    }

    /// The advice of past intents about the tools of `snapshot`; `None` if it is not built for that yet.
    pub fn advice(&self, snapshot: &Arc<ToolSnapshot>, wanted: &IntentReading) -> Option<PastAdvice> {
        if !self.is_on(LearnedPart::PastIntents) {
            return None;
        }
        self.with_experience(|experience| experience.advice(snapshot, wanted)).flatten()
    }
}

impl Knowledge {
    pub(crate) fn new(
        settings: Arc<AppSettings>,
        tools: Arc<Toolset>,
        store: Store,
        stop: CancellationToken,
    ) -> Arc<Knowledge> {
        let config = settings.config();
        let secrets = config::known_secrets(&config, &settings.paths, &settings.env);
        let memory = Arc::new(CapabilityMemory::new(store.clone(), secrets));
        let knowledge = Arc::new(Knowledge {
            embeddings: Embeddings::new(store.clone(), sanitiser_of(&memory), &config.embedding),
            memory,
            cache: ResultCache::default(),
            mocks: MockRegistry::new(store.clone()),
            learned: Mutex::new(LruCache::new(PRINCIPALS)),
            settings,
            tools,
            store,
            stop,
        });
        knowledge.of_principal(&Principal::local());
        knowledge
    }

    /// Drops the results that this process has in memory, so that the next hit is read from the database.
    pub fn forget_results(&self) {
        self.cache.clear();
    }

    /// Writes the results that were noted for dry runs.
    pub(crate) async fn write_mocks(&self) {
        self.mocks.flush(&self.memory.sanitiser()).await;
    }

    /// Adds the secrets of a configuration to the sanitiser of everything stored from now on.
    pub(crate) fn learn_secrets(&self, config: &config::Config) {
        self.memory.add_secrets(config::known_secrets(config, &self.settings.paths, &self.settings.env));
    }

    /// Applies the embedding model of a changed configuration.
    pub(crate) fn reload(&self) {
        self.embeddings.set_model(&self.settings.config().embedding);
    }

    /// The knowledge of a principal.
    pub(crate) fn of_principal(&self, principal: &Principal) -> Arc<PrincipalKnowledge> {
        let mut learned = self.learned.lock();
        if let Some(known) = learned.get(principal) {
            return Arc::clone(known);
        }
        let new = Arc::<PrincipalKnowledge>::default();
        learned.put(principal.clone(), Arc::clone(&new));
        // The background task reads the knowledge of a new principal.
        self.memory.notify_learning();
        new
    }

    /// For each learned part, the number of principals in memory for whom it is off.
    pub(crate) fn parts_off(&self) -> Vec<(LearnedPart, usize)> {
        let principals = self.principals();
        let off = |part: LearnedPart| principals.iter().filter(|(_, learned)| !learned.is_on(part)).count();
        LearnedPart::ALL.map(|part| (part, off(part))).to_vec()
    }

    /// The principals whose knowledge is in memory.
    fn principals(&self) -> Vec<(Principal, Arc<PrincipalKnowledge>)> {
        let learned = self.learned.lock();
        learned.iter().map(|(principal, of)| (principal.clone(), Arc::clone(of))).collect()
    }

    /// The capabilities of `principal` that match `intent` best.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(crate) async fn find(
        &self,
        principal: &Principal,
        intent: &str,
        wanted: &IntentReading,
    ) -> Result<Vec<CapabilityCandidate>, pml_store::Error> {
        self.memory.find(principal, intent, wanted, Some(&self.embeddings)).await
    }

    /// Orders equally likely capabilities by how well they fit the intents they served and their tools. Takes as long
    /// as a tool search.
    pub(crate) fn order_candidates(
        &self,
        principal: &Principal,
        found: &mut [CapabilityCandidate],
        wanted: &IntentReading,
    ) {
        if found.len() > 1 {
            self.of_principal(principal).with_experience(|experience| {
                let fits = experience.fits(&self.embeddings.tool_vectors(experience.snapshot()), wanted);
                memory::order_by_fit(found, &fits);
            });
        }
    }

    /// The current tool graph of a principal.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(crate) async fn graph(self: &Arc<Self>, principal: &Principal) -> Result<Arc<ToolGraph>, Problem> {
        self.tools.ensure_manifests_loaded().await;
        self.memory.refresh().await?;
        let (knowledge, principal) = (Arc::clone(self), principal.clone());
        Ok(run_blocking(move || knowledge.bring_graph_up_to_date(&principal)).await?)
    }

    /// Rebuilds the tool graph if its inputs changed. This takes long.
    fn bring_graph_up_to_date(&self, principal: &Principal) -> Result<Arc<ToolGraph>, pml_store::Error> {
        let learned = self.of_principal(principal);
        let of = (self.tools.snapshot(), learned.observed(), self.memory.version());
        let known = || learned.graph().filter(|graph| graph.is_of(&of));
        if let Some(graph) = known() {
            return Ok(graph);
        }
        let _rebuilding = learned.rebuilding_graph.lock();
        if let Some(graph) = known() {
            return Ok(graph);
        }
        let edges = self.store.blocking().learned_edges(principal)?;
        let (before, capabilities) = (learned.graph(), self.memory.active_capabilities(principal));
        let graph = Arc::new(ToolGraph::new(of, before.as_deref(), &capabilities, edges));
        *learned.graph.write() = Some(Arc::clone(&graph));
        Ok(graph)
    }
}

fn sanitiser_of(memory: &Arc<CapabilityMemory>) -> SanitiserSource {
    let memory = Arc::clone(memory);
    SanitiserSource(Box::new(move || memory.sanitiser()))
}
