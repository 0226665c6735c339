//! The capability memory: learned capabilities, indexed for search.
//!
//! Traces are written with the end of their run; a background task learns from them. The capabilities are indexed in
//! memory and read again when the database version changes.

mod index;
mod indexed;
mod published;
mod segment;
mod sessions;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, RwLock};
use pml_model::capability::{CapabilityState, ToolUse};
use pml_model::learning::CallCounts;
use pml_model::{CapabilityId, Digest, Principal, ToolId};
use pml_store::{ObservedSchema, Store};
use tokio::sync::Notify;

use super::embeddings::{Embeddings, IntentReading};
use crate::catalogue::ToolSnapshot;
use crate::runtime::{compute, run_blocking};
use crate::sanitise::{KnownSecret, Sanitiser};
pub use index::CapabilityCandidate;
pub(super) use index::order_by_fit;
use index::{CapabilityIndex, CapabilityRequest, ServedIntentVectors};
pub(crate) use indexed::IndexedCapability;
use sessions::SessionHistory;
pub(crate) use sessions::SessionResult;

/// The learned capabilities, as this process has them.
#[derive(Debug)]
pub struct CapabilityMemory {
    store: Store,
    /// All secrets that this process has ever known.
    secrets: Mutex<BTreeSet<KnownSecret>>,
    sanitiser: RwLock<Arc<Sanitiser>>,
    pub(super) index: RwLock<CapabilityIndex>,
    /// The database version that the index was last compared with.
    compared: RwLock<Option<i64>>,
    /// Notified when there are new traces to learn from.
    pub(super) learning_due: Notify,
    sessions: SessionHistory,
    meanings: Mutex<Option<Arc<ServedIntentVectors>>>,
}

/// The observed result schemas of tools without a declared one, by tool and definition digest.
pub type ObservedSchemas = HashMap<(String, Digest), ObservedSchema>;

/// How often each tool was called and failed, by tool id.
pub type ToolUseCounts = HashMap<String, CallCounts>;

/// The calls and failures of each tool by pattern of arguments.
pub type ArgumentPatternCounts = HashMap<String, HashMap<String, CallCounts>>;

impl CapabilityMemory {
    /// The memory in `store`; `secrets` are never stored.
    pub fn new(store: Store, secrets: impl IntoIterator<Item = KnownSecret>) -> CapabilityMemory {
        let secrets: BTreeSet<KnownSecret> = secrets.into_iter().collect();
        CapabilityMemory {
            store,
            sanitiser: RwLock::new(Arc::new(Sanitiser::new(secrets.iter().cloned()))),
            secrets: Mutex::new(secrets),
            index: RwLock::default(),
            compared: RwLock::default(),
            learning_due: Notify::new(),
            sessions: SessionHistory::default(),
            meanings: Mutex::default(),
        }
    }

    /// Records that these tools were used in a session and returned these results, most recent last.
    pub(crate) fn record_session_use(
        &self,
        session: (&Principal, &str),
        tools: &[&str],
        results: Vec<SessionResult>,
    ) {
        self.sessions.used(session, tools, results, Instant::now());
    }

    /// What the calls of a session returned, most recent last.
    pub(crate) fn recent_session_results(&self, principal: &Principal, session: &str) -> Vec<SessionResult> {
        self.sessions.results(principal, session, Instant::now())
    }

    /// The tools just used in a session, most recent last.
    pub(crate) fn recent_session_tools(&self, principal: &Principal, session: &str) -> Vec<String> {
        self.sessions.of(principal, session, Instant::now())
    }

    /// Every capability.
    pub(super) async fn all(self: &Arc<Self>) -> Result<Vec<Arc<IndexedCapability>>, pml_store::Error> {
        self.refresh().await?;
        Ok(self.index.read().all())
    }

    /// The sanitiser that removes all known secrets.
    pub fn sanitiser(&self) -> Arc<Sanitiser> {
        Arc::clone(&self.sanitiser.read())
    }

    /// Adds secrets. A secret stays one for the life of the process, because runs that received it may still be
    /// executing.
    pub fn add_secrets(&self, secrets: impl IntoIterator<Item = KnownSecret>) {
        let mut all = self.secrets.lock();
        all.extend(secrets);
        let sanitiser = Arc::new(Sanitiser::new(all.iter().cloned()));
        *self.sanitiser.write() = sanitiser;
    }

    /// Notifies the learning task of new traces.
    pub(crate) fn notify_learning(&self) {
        self.learning_due.notify_one();
    }

    /// The capabilities of `principal` that match `intent` best.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn find(
        self: &Arc<Self>,
        principal: &Principal,
        intent: &str,
        wanted: &IntentReading,
        meaning: Option<&Embeddings>,
    ) -> Result<Vec<CapabilityCandidate>, pml_store::Error> {
        self.refresh().await?;
        let masked = match meaning.filter(|_| !self.index.read().is_empty()) {
            Some(meaning) => meaning.embed_masked(intent).await,
            None => None,
        };
        Ok(compute(|| {
            let index = self.index.read();
            let meanings = meaning.map(|meaning| self.meanings(&index, meaning));
            let request = CapabilityRequest { intent, wanted, masked: masked.as_deref() };
            index.find(principal, &request, meanings.as_deref())
        }))
    }

    /// The database version of the index.
    pub(crate) fn version(&self) -> i64 {
        self.index.read().version()
    }

    /// The usable capabilities of `principal` that are evidence of how its tools are used, in a stable order.
    pub(crate) fn active_capabilities(&self, principal: &Principal) -> Vec<Arc<IndexedCapability>> {
        let index = self.index.read();
        let mut all = index.all();
        let is_evidence = |known: &IndexedCapability| {
            known.state == CapabilityState::Active && known.is_current() && !known.is_unproven()
        };
        all.retain(|known| known.owner == *principal && is_evidence(known));
        all.sort_by(|one, other| one.id.cmp(&other.id));
        all
    }

    /// The capabilities in force that last worked with other definitions of their tools than those of `snapshot`.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(crate) async fn with_other_tools(
        self: &Arc<Self>,
        snapshot: &ToolSnapshot,
    ) -> Result<Vec<(Principal, CapabilityId)>, pml_store::Error> {
        let differs = |used: &ToolUse| {
            let id = ToolId::parse(&used.id).ok();
            id.is_some_and(|id| snapshot.tool(&id).map_or(true, |tool| tool.definition.digest != used.digest))
        };
        let mut all = self.all().await?;
        all.retain(|known| {
            known.is_current() && known.state != CapabilityState::Planned && known.tools.iter().any(differs)
        });
        Ok(all.iter().map(|known| (known.owner.clone(), known.id.clone())).collect())
    }

    /// The most used indexed capability that calls that tool.
    pub(crate) fn most_used_with_tool(
        &self,
        principal: &Principal,
        tool: &str,
    ) -> Option<Arc<IndexedCapability>> {
        self.index.read().that_uses(principal, tool)
    }

    /// The embeddings of the served intents, as far as they exist.
    fn meanings(&self, index: &CapabilityIndex, meaning: &Embeddings) -> Arc<ServedIntentVectors> {
        let now = (index.version(), meaning.version());
        let mut meanings = self.meanings.lock();
        match &*meanings {
            Some(known) if known.of == now => Arc::clone(known),
            _ => {
                let new = Arc::new(ServedIntentVectors::new(now, index, meaning));
                *meanings = Some(Arc::clone(&new));
                new
            }
        }
    }

    /// The texts of the served intents that are embedded, by principal.
    pub(super) fn intents(&self) -> BTreeMap<Principal, Vec<String>> {
        let mut intents: BTreeMap<Principal, Vec<String>> = BTreeMap::new();
        for known in self.index.read().all() {
            let read = known.intents.embedded().iter().cloned();
            intents.entry(known.owner.clone()).or_default().extend(read);
        }
        intents
    }

    /// The usable capability with that name or id.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(crate) async fn find_by_name(
        self: &Arc<Self>,
        principal: &Principal,
        name: &str,
    ) -> Result<Option<Arc<IndexedCapability>>, pml_store::Error> {
        self.refresh().await?;
        Ok(self.index.read().named(principal, name))
    }

    /// The indexed capability with that id, if it is usable.
    pub(crate) fn active_by_id(
        &self,
        principal: &Principal,
        id: &CapabilityId,
    ) -> Option<Arc<IndexedCapability>> {
        let index = self.index.read();
        index.get(principal, id).filter(|known| known.state == CapabilityState::Active).cloned()
    }

    /// Whether the principal has that capability and it is usable. One that was deleted this very moment may count as
    /// present: the next run creates it again.
    pub(crate) async fn is_active(self: &Arc<Self>, principal: &Principal, id: &CapabilityId) -> bool {
        if self.active_by_id(principal, id).is_some() {
            return true;
        }
        if let Err(error) = self.refresh().await {
            tracing::debug!(%error, "which capabilities there are could not be read");
            return false;
        }
        self.active_by_id(principal, id).is_some()
    }

    /// The indexed capability with that name.
    pub(crate) fn cached_by_name(&self, principal: &Principal, name: &str) -> Option<Arc<IndexedCapability>> {
        self.index.read().named(principal, name)
    }

    /// What a name stands for in a program of `owner` that `principal` runs.
    pub(crate) fn cached_by_name_within(
        &self,
        principal: &Principal,
        owner: &Principal,
        name: &str,
    ) -> Option<Arc<IndexedCapability>> {
        self.index.read().named_within(principal, owner, name)
    }

    /// The indexed capabilities that `source`, a program of `owner` that `principal` runs, may name, and the names of the
    /// others.
    pub(crate) fn mentioned(
        &self,
        principal: &Principal,
        owner: &Principal,
        source: &str,
    ) -> (Vec<Arc<IndexedCapability>>, Vec<String>) {
        self.index.read().mentioned(principal, owner, source)
    }

    /// The capabilities that others published for `principal`, by name.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(crate) async fn published_for(
        self: &Arc<Self>,
        principal: &Principal,
    ) -> Result<Vec<Arc<IndexedCapability>>, pml_store::Error> {
        self.refresh().await?;
        Ok(self.index.read().published.visible_to(principal).into_iter().cloned().collect())
    }

    /// Brings the index up to date.
    pub async fn refresh(self: &Arc<Self>) -> Result<(), pml_store::Error> {
        let now = self.store.data_version()?;
        if *self.compared.read() == Some(now) {
            return Ok(());
        }
        let known = self.index.read().version();
        // This reads one number, which takes less time than handing it to another thread.
        if self.store.capability_version()? != known {
            let (memory, changes) = (Arc::clone(self), self.store.capabilities_since(known).await?);
            // After a start, these are all capabilities.
            run_blocking(move || memory.index.write().take(changes)).await;
        }
        *self.compared.write() = Some(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sanitise::Certainty;

    #[test]
    fn a_secret_that_was_replaced_stays_one() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::from(pml_store::BlockingStore::open(&dir.path().join("pml.db")).unwrap());
        let memory = CapabilityMemory::new(store, [KnownSecret::new(Certainty::Certain, "first-Zq81kP")]);
        memory.add_secrets([KnownSecret::new(Certainty::Certain, "second-Wm37xT")]);
        let text = memory.sanitiser().clean_text("first-Zq81kP and second-Wm37xT").into_owned();
        assert_eq!(text, "[REDACTED] and [REDACTED]");
    }
}
